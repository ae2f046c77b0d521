/** The commands that limit a line's breakpoints to ranks: from the line-number menu, the palette and hovers. */

import * as path from "node:path";

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { readCondition, withBarrier, withRanks } from "../core/breakpointRanks.js";
import { setOfMember } from "../core/rankGroups.js";
import type { Log } from "../log.js";
import type { Jobs } from "./jobs.js";
import { pickRanks } from "./rankPicker.js";
import { rankSetNames } from "./rankSetNames.js";

/** A line of a file; `line` from 0. */
interface Place {
  readonly uri: vscode.Uri;
  readonly line: number;
}

type Edit = (condition: string | undefined) => string | undefined;

/** Registers the commands. They hold for every breakpoint of the line, and set one where there is none. */
export class BreakpointRanks implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
  ) {
    this.register(COMMANDS.limitToRanks, (place) => this.limitToPicked(place));
    this.register(COMMANDS.limitToRankZero, (place) => this.limit(place, "0"));
    this.register(COMMANDS.limitToFocusedRank, (place) => this.limitToFocused(place));
    this.register(COMMANDS.limitToAllRanks, (place) => this.limit(place, undefined));
    this.register(COMMANDS.toggleBarrier, (place) => this.toggleBarrier(place));
    this.register(COMMANDS.breakOnRanks, (place, argument) => this.limit(place, ranksOf(argument)));
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private register(command: string, run: (place: Place, argument: unknown) => Promise<void>): void {
    const handler = async (argument: unknown): Promise<void> => {
      const place = placeOf(argument);
      if (!place) {
        void vscode.window.showInformationMessage(
          "Open a Python file and put the cursor on the line of the breakpoint.",
        );
        return;
      }
      try {
        await run(place, argument);
      } catch (error) {
        const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
        await this.log.showError("The breakpoint could not be changed.", {}, detail);
      }
    };
    this.disposables.push(vscode.commands.registerCommand(command, handler));
  }

  private async limitToPicked(place: Place): Promise<void> {
    const present = breakpointsAt(place).map(({ condition }) => readCondition(condition).ranks);
    const job = this.jobs.focused;
    const title = `Limit to ranks: ${path.basename(place.uri.fsPath)}:${place.line + 1}`;
    const picked = await pickRanks(title, present[0], rankSetNames(place.uri, job), job);
    if (picked) await this.limit(place, picked.ranks);
  }

  private async limitToFocused(place: Place): Promise<void> {
    const member = this.jobs.focusedMember;
    if (!member) {
      const sentence = "No rank is focused: choose one in the call stack or in the Ranks view.";
      const chosen = await vscode.window.showInformationMessage(sentence, "Limit to ranks…");
      if (chosen !== undefined) await this.limitToPicked(place);
      return;
    }
    const ranks = setOfMember(member, this.jobs.focused?.members ?? []);
    if (ranks === undefined) {
      void vscode.window.showInformationMessage(`${member.label} has no rank yet.`);
      return;
    }
    await this.limit(place, ranks);
  }

  private async limit(place: Place, ranks: string | undefined): Promise<void> {
    await this.change(place, (condition) => withRanks(condition, ranks));
  }

  private async toggleBarrier(place: Place): Promise<void> {
    const isBarrier = breakpointsAt(place).some(({ condition }) => readCondition(condition).isBarrier);
    await this.change(place, (condition) => withBarrier(condition, !isBarrier));
  }

  /**
   * Give the line's breakpoints another condition. The API has no edit: each is removed and added anew with all that it shows of
   * it, in one turn, so that no other change comes between. (A "triggered by" is not in the API and is lost.)
   */
  private async change(place: Place, edit: Edit): Promise<void> {
    const old = breakpointsAt(place);
    const unreadable = old.find(({ condition }) => isUnreadable(condition));
    if (unreadable) {
      const why = readCondition(unreadable.condition).fault?.message ?? "";
      await this.log.showError(why, { "Edit condition": () => editCondition(place) });
      return;
    }
    const changed = old.filter(({ condition }) => edit(condition) !== (condition === "" ? undefined : condition));
    if (changed.length > 0) {
      vscode.debug.removeBreakpoints(changed);
      vscode.debug.addBreakpoints(changed.map((breakpoint) => edited(breakpoint, edit)));
    } else if (old.length === 0) {
      const location = new vscode.Location(place.uri, new vscode.Position(place.line, 0));
      vscode.debug.addBreakpoints([new vscode.SourceBreakpoint(location, true, edit(undefined))]);
    }
  }
}

function edited(old: vscode.SourceBreakpoint, edit: Edit): vscode.SourceBreakpoint {
  return new vscode.SourceBreakpoint(old.location, old.enabled, edit(old.condition), old.hitCondition, old.logMessage);
}

function breakpointsAt({ uri, line }: Place): vscode.SourceBreakpoint[] {
  return vscode.debug.breakpoints.filter(
    (breakpoint): breakpoint is vscode.SourceBreakpoint =>
      breakpoint instanceof vscode.SourceBreakpoint &&
      breakpoint.location.uri.toString() === uri.toString() &&
      breakpoint.location.range.start.line === line,
  );
}

/** A string in it is open: what is put behind it would be a part of the string. */
function isUnreadable(condition: string | undefined): boolean {
  const { fault, ranks } = readCondition(condition);
  return fault !== undefined && ranks === undefined;
}

async function editCondition({ uri, line }: Place): Promise<void> {
  const selection = new vscode.Range(line, 0, line, 0);
  await vscode.window.showTextDocument(uri, { selection });
  await vscode.commands.executeCommand("editor.debug.action.editBreakpoint");
}

/** The line that a menu or a link names (`lineNumber` from 1), else the cursor's. */
function placeOf(argument: unknown): Place | undefined {
  if (typeof argument === "object" && argument !== null && "lineNumber" in argument && "uri" in argument) {
    const uri = uriOf(argument.uri);
    const { lineNumber } = argument;
    if (uri && typeof lineNumber === "number") return { uri, line: Math.max(0, lineNumber - 1) };
  }
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") return undefined;
  return { uri: editor.document.uri, line: editor.selection.active.line };
}

function ranksOf(argument: unknown): string | undefined {
  const ranks = typeof argument === "object" && argument !== null && "ranks" in argument ? argument.ranks : undefined;
  return typeof ranks === "string" ? ranks : undefined;
}

function uriOf(value: unknown): vscode.Uri | undefined {
  if (value instanceof vscode.Uri) return value;
  if (typeof value === "string") return vscode.Uri.parse(value);
  if (typeof value !== "object" || value === null || !("scheme" in value) || !("path" in value)) return undefined;
  return vscode.Uri.from(value as { scheme: string; path: string });
}
