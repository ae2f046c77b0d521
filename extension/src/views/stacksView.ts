/** The Stacks view: where all ranks stand, as one tree, the odd ones out first. */

import * as vscode from "vscode";

import { COMMANDS, CONTEXTS, VIEWS } from "../contributions.js";
import { filterInWords, NO_FILTER } from "../core/memberFilter.js";
import { countOf } from "../core/memberNames.js";
import type { MergedStacks, StackNode } from "../core/protocol.js";
import { type StackRow, StackRows } from "../core/stackRows.js";
import { readFromOutside, stacksAsText } from "../core/stackText.js";
import { countPlaces } from "../core/stackTree.js";
import type { Jobs } from "../debug/jobs.js";
import type { Log } from "../log.js";
import { pickFilter } from "./filterPicker.js";
import { goTo } from "./goTo.js";
import { rowItem } from "./rowItem.js";
import type { Shown, StackSource } from "./stackSource.js";

const MAX_LOCALS = 16;
const LOCALS_SECONDS = 20;
const STATUS_MILLISECONDS = 4000;

export class StacksView implements vscode.Disposable, vscode.TreeDataProvider<StackRow> {
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly view: vscode.TreeView<StackRow>;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly jobs: Jobs,
    private readonly source: StackSource,
    private readonly log: Log,
  ) {
    this.view = vscode.window.createTreeView<StackRow>(VIEWS.stacks, { treeDataProvider: this, showCollapseAll: true });
    source.watch(() => this.view.visible);
    const draw = (): void => {
      this.draw();
    };
    this.disposables.push(
      this.view,
      this.changed,
      source.onDidChange(draw),
      this.view.onDidChangeVisibility(() => {
        if (this.view.visible) source.wake();
      }),
    );
    this.register(COMMANDS.refreshStacks, () => this.inProgress(() => this.source.refresh()));
    this.register(COMMANDS.nativeStacks, () => this.inProgress(() => this.source.refresh(true)));
    this.register(COMMANDS.copyStacks, () => this.inProgress(() => this.copy()));
    this.register(COMMANDS.filterStacks, () => this.filter());
    this.register(COMMANDS.clearStacksFilter, () => {
      this.source.filter = NO_FILTER;
    });
    this.register(COMMANDS.openStackFrame, (row) => this.open(row));
    this.register(COMMANDS.showStackLocals, (row) => this.showLocals(row));
    this.draw();
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private register(command: string, run: (row?: StackRow) => unknown): void {
    const handler = async (row?: StackRow): Promise<void> => {
      try {
        await run(row);
      } catch (error) {
        await this.log.showError(error instanceof Error ? error.message : String(error));
      }
    };
    this.disposables.push(vscode.commands.registerCommand(command, handler));
  }

  private inProgress<T>(run: () => Promise<T>): Thenable<T> {
    return vscode.window.withProgress({ location: { viewId: VIEWS.stacks } }, run);
  }

  // --- the tree ----------------------------------------------------------------------------------

  getChildren(row?: StackRow): readonly StackRow[] & StackRow[] {
    const { shown } = this.source;
    if (row) return [...row.children()];
    return shown ? new StackRows(shown.answer, shown.stacks, shown.names).roots() : [];
  }

  getTreeItem(row: StackRow): vscode.TreeItem {
    const item = rowItem(row, collapsible(row));
    if (row.frame || row.members.length === 1) {
      item.command = { command: COMMANDS.openStackFrame, title: "Go to Line", arguments: [row] };
    }
    return item;
  }

  resolveTreeItem(item: vscode.TreeItem, row: StackRow): vscode.TreeItem {
    item.tooltip = new vscode.MarkdownString(row.tooltip());
    return item;
  }

  // --- drawing -----------------------------------------------------------------------------------

  private draw(): void {
    this.view.description = this.summary();
    this.view.message = this.message();
    this.changed.fire();
    void vscode.commands.executeCommand(
      "setContext",
      CONTEXTS.hasStacksFilter,
      filterInWords(this.source.filter) !== "",
    );
  }

  /** `4 ranks in 2 places`. */
  private summary(): string {
    const { shown } = this.source;
    if (!shown) return "";
    const { stretches } = shown.stacks;
    const members = new Set(stretches.flatMap(({ members }) => members));
    return `${shown.names.amount(members)} in ${countOf(countPlaces(stretches), "place")}`;
  }

  private message(): string {
    const { shown, filter, isNative, error } = this.source;
    const filtered = filterInWords(filter);
    const sentences = [filtered, error];
    if (shown?.stacks.stretches.length === 0 && error === "") {
      sentences.push(filtered === "" ? "No process has answered yet" : "Nobody is in it now");
    }
    if (isNative) sentences.push("With native frames, as of when you asked. Refresh to follow the ranks again.");
    if (shown) sentences.push(readFromOutside(shown.answer));
    const said = sentences.filter((sentence) => sentence !== "");
    return said.map((sentence) => (/[.!?]$/.test(sentence) ? sentence : `${sentence}.`)).join(" ");
  }

  // --- commands ----------------------------------------------------------------------------------

  private async filter(): Promise<void> {
    const filter = await pickFilter(
      "Filter Stacks",
      this.source.filter,
      ["paused", "blocked", "running"],
      this.jobs.focused,
    );
    if (filter) this.source.filter = filter;
  }

  private async copy(): Promise<void> {
    // native frames were asked for: they are what is meant
    if (!this.source.isNative) await this.source.refresh();
    const { shown } = this.source;
    if (!shown) {
      void vscode.window.showInformationMessage("No job runs: there are no stacks to copy.");
      return;
    }
    const { answer, names, job } = shown;
    const title = `Stacks of ${job.name}, ${new Date().toLocaleString()}`;
    await vscode.env.clipboard.writeText(stacksAsText(answer, names, title));
    const whose = names.amount(answer.tree.members);
    vscode.window.setStatusBarMessage(`The stacks of ${whose} are in the clipboard.`, STATUS_MILLISECONDS);
  }

  private async open(row?: StackRow): Promise<void> {
    const { shown } = this.source;
    if (row && shown) await goTo(shown.job, row.members, row.frame);
  }

  private async showLocals(row?: StackRow): Promise<void> {
    const { shown } = this.source;
    if (!row || !shown) return;
    const members = row.members.slice(0, MAX_LOCALS);
    const answer = await this.inProgress(() =>
      shown.job.request("rankscope/stacks", { members, withLocals: true }, LOCALS_SECONDS),
    );
    const items = localsIn(answer, shown);
    const left = row.members.length - members.length;
    await vscode.window.showQuickPick(items, {
      title: `Locals of ${row.label}${left > 0 ? ` (of the first ${members.length} of ${row.members.length} ranks)` : ""}`,
      placeHolder:
        items.length > 0 ? "Name or value to look for" : "No frame of your code has answered with its locals.",
      matchOnDescription: true,
    });
  }
}

/** Under each rank its names and values. */
function localsIn({ tree }: MergedStacks, { names }: Shown): vscode.QuickPickItem[] {
  const found = new Map<string, vscode.QuickPickItem[]>();
  const collect = ({ locals = {}, children }: StackNode): void => {
    for (const [id, variables] of Object.entries(locals)) {
      const items = variables.map(({ name, text }) => ({ label: name, description: text }));
      found.set(id, [...(found.get(id) ?? []), ...items]);
    }
    children.forEach(collect);
  };
  collect(tree);
  return [...found]
    .sort(([one], [other]) => names.order(one, other))
    .flatMap(([id, items]) => [{ label: names.label(id), kind: vscode.QuickPickItemKind.Separator }, ...items]);
}

function collapsible({ isExpanded }: StackRow): vscode.TreeItemCollapsibleState {
  if (isExpanded === undefined) return vscode.TreeItemCollapsibleState.None;
  return isExpanded ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
}
