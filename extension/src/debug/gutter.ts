/** Marks in Python editors: the ranks of each breakpoint, how it is bound, and which ranks stand at a line. */

import * as vscode from "vscode";

import { SETTINGS } from "../contributions.js";
import { iconText, lineText, type ShownBreakpoint, shownBreakpoints, type Tone } from "../core/breakpointText.js";
import { breakpointHover } from "./breakpointHover.js";
import { GutterIcons } from "./gutterIcons.js";
import type { Job } from "./job.js";
import type { Jobs } from "./jobs.js";
import { rankSetNames } from "./rankSetNames.js";
import { StoppedFrames } from "./stoppedFrames.js";

const DEBOUNCE_MS = 50;
const TONES: Readonly<Record<Tone, { color: string; ruler: string }>> = {
  quiet: { color: "editorCodeLens.foreground", ruler: "debugIcon.breakpointForeground" },
  warning: { color: "editorWarning.foreground", ruler: "editorWarning.foreground" },
  standing: { color: "debugTokenExpression.name", ruler: "debugIcon.breakpointCurrentStackframeForeground" },
};

/** What an editor shows: decorations by tone and by icon. */
interface Marks {
  readonly texts: Map<Tone, vscode.DecorationOptions[]>;
  readonly icons: Map<string, vscode.Range[]>;
}

/**
 * Marks the visible Python editors for the job that is looked at; without a job only what breakpoints say of ranks. An
 * icon stands on no line but that of a breakpoint: elsewhere it would take the click that sets one. Owns its decoration
 * types and its timer.
 */
export class Gutter implements vscode.Disposable {
  private readonly icons = new GutterIcons();
  private readonly types = new Map<Tone, vscode.TextEditorDecorationType>();
  private readonly frames: StoppedFrames;
  /** What an editor has been given, and for which text: the same is not given again, which would end a hover. */
  private readonly shown = new Map<vscode.TextEditor, { icons: ReadonlySet<string>; key: string }>();
  private readonly disposables: vscode.Disposable[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly jobs: Jobs) {
    this.frames = new StoppedFrames(jobs);
    for (const [tone, { color, ruler }] of Object.entries(TONES)) this.types.set(tone as Tone, textType(color, ruler));
    const soon = (): void => {
      this.updateSoon();
    };
    this.disposables.push(
      this.icons,
      this.frames,
      ...this.types.values(),
      jobs.onDidStart(soon),
      jobs.onDidEnd(soon),
      jobs.onDidChangeRanks(soon),
      jobs.onDidChangeBreakpoints(soon),
      jobs.onDidChangeFocus(soon),
      this.frames.onDidChange(soon),
      vscode.debug.onDidChangeBreakpoints(soon),
      vscode.window.onDidChangeVisibleTextEditors(soon),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (vscode.window.visibleTextEditors.some((editor) => editor.document === document)) soon();
      }),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration(`${SETTINGS}.gutter`) || change.affectsConfiguration("launch")) soon();
      }),
    );
    soon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const disposable of this.disposables) disposable.dispose();
  }

  /** Not put off by further changes: a job that tells something all the time is shown all the same. */
  private updateSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.update();
    }, DEBOUNCE_MS);
  }

  private update(): void {
    const editors = vscode.window.visibleTextEditors;
    for (const editor of [...this.shown.keys()]) if (!editors.includes(editor)) this.shown.delete(editor);
    const job = this.jobs.focused;
    for (const editor of editors) {
      const isEnabled = vscode.workspace
        .getConfiguration(SETTINGS, editor.document)
        .get<boolean>("gutter.enabled", true);
      if (isEnabled && editor.document.languageId === "python") this.show(editor, this.marksOf(editor.document, job));
      else if (this.shown.has(editor)) this.show(editor, { texts: new Map(), icons: new Map() });
    }
    this.icons.keepOnly(new Set([...this.shown.values()].flatMap(({ icons }) => [...icons])));
  }

  private show(editor: vscode.TextEditor, { texts, icons }: Marks): void {
    const { uri, version } = editor.document;
    const key = JSON.stringify([uri.toString(), version, [...texts], [...icons]], (_, value: unknown) =>
      value instanceof vscode.MarkdownString ? value.value : value,
    );
    const before = this.shown.get(editor);
    if (before?.key === key) return;
    for (const [tone, type] of this.types) editor.setDecorations(type, texts.get(tone) ?? []);
    for (const text of before?.icons ?? []) {
      if (!icons.has(text)) editor.setDecorations(this.icons.typeOf(text), []);
    }
    for (const [text, ranges] of icons) editor.setDecorations(this.icons.typeOf(text), ranges);
    this.shown.set(editor, { icons: new Set(icons.keys()), key });
  }

  private marksOf(document: vscode.TextDocument, job: Job | undefined): Marks {
    const marks: Marks = { texts: new Map(), icons: new Map() };
    const breakpoints = this.breakpointsOf(document, job);
    const isOnDisk = document.uri.scheme === "file";
    const standing = job && isOnDisk ? this.frames.inFile(job, document.uri.fsPath) : new Map<number, never[]>();
    for (const line of new Set([...breakpoints.keys(), ...standing.keys()])) {
      if (line < 1 || line > document.lineCount) continue;
      const here = breakpoints.get(line) ?? [];
      const members = standing.get(line) ?? [];
      const end = document.lineAt(line - 1).range.end;
      const text = lineText(here, members, job);
      if (text) {
        const range = new vscode.Range(end.translate(0, end.character > 0 ? -1 : 0), end);
        const hoverMessage = breakpointHover(document.uri, line, here, members, job);
        const renderOptions = { after: { contentText: text.text } };
        put(marks.texts, text.tone, { range, hoverMessage, renderOptions });
      }
      const icon = iconText(here, job);
      if (icon !== undefined) put(marks.icons, icon, new vscode.Range(line - 1, 0, line - 1, 0));
    }
    return marks;
  }

  /** By line, from 1. */
  private breakpointsOf(document: vscode.TextDocument, job: Job | undefined): Map<number, ShownBreakpoint[]> {
    const uri = document.uri.toString();
    const asked = vscode.debug.breakpoints
      .filter((breakpoint) => breakpoint instanceof vscode.SourceBreakpoint)
      .filter(({ location }) => location.uri.toString() === uri)
      .map(({ location, enabled, condition }) => ({
        line: location.range.start.line + 1,
        isEnabled: enabled,
        condition,
      }));
    const statuses = (job?.breakpoints ?? []).filter(
      ({ path }) => vscode.Uri.file(path).fsPath === document.uri.fsPath && document.uri.scheme === "file",
    );
    const byLine = new Map<number, ShownBreakpoint[]>();
    for (const shown of shownBreakpoints(asked, statuses, rankSetNames(document.uri, job)))
      put(byLine, shown.line, shown);
    return byLine;
  }
}

function textType(color: string, ruler: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    after: { margin: "0 0 0 2em", color: new vscode.ThemeColor(color), textDecoration: "none" },
    overviewRulerColor: new vscode.ThemeColor(ruler),
    overviewRulerLane: vscode.OverviewRulerLane.Center,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
}

function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}
