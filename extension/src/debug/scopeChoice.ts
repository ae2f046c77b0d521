/** Which ranks Continue, Pause and the steps act on: shown in the status bar while a job runs, chosen with a click. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { isLive, shortLabel } from "../core/memberText.js";
import { groupsOf, setOf } from "../core/rankGroups.js";
import { inWords } from "../core/rankWords.js";
import { type Focus, type RunScope, scopeText, STOPPED } from "../core/runScope.js";
import type { Jobs } from "./jobs.js";
import { pickRanks } from "./rankPicker.js";
import { rankSetNames } from "./rankSetNames.js";

interface Row extends vscode.QuickPickItem {
  /** `undefined`: a set that is picked or typed next. */
  readonly scope?: RunScope;
}

const TITLE = "Which ranks do Continue, Pause and the steps act on?";
const PICK_ROW: Row = { label: "$(checklist) Pick or type ranks…", description: "0,3-5   0-31:4   node:1   actor/0-3" };

/** Remembered for the window. */
export class ScopeChoice implements vscode.Disposable {
  private scope: RunScope = STOPPED;
  private readonly item = vscode.window.createStatusBarItem("rankscope.scope", vscode.StatusBarAlignment.Left, -10);
  private readonly changed = new vscode.EventEmitter<undefined>();
  private readonly disposables: vscode.Disposable[];

  /** Another one was chosen. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly jobs: Jobs) {
    const show = (): void => {
      this.show();
    };
    this.item.name = "RankScope: ranks to control";
    this.item.command = COMMANDS.chooseRanks;
    this.disposables = [
      this.item,
      this.changed,
      vscode.commands.registerCommand(COMMANDS.chooseRanks, () => this.choose()),
      jobs.onDidStart(show),
      jobs.onDidEnd(show),
      jobs.onDidChangeRanks(show),
      jobs.onDidChangeFocus(show),
    ];
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  get present(): RunScope {
    return this.scope;
  }

  /** As a heading of the Ranks view; empty for the usual choice. */
  get heading(): string {
    return this.scope.kind === "stopped" ? "" : `▸ ${scopeText(this.scope, this.focus)}`;
  }

  private get focus(): Focus {
    return { members: this.jobs.focused?.members ?? [], focused: this.jobs.focusedMember };
  }

  private show(): void {
    if (this.jobs.all.length === 0) {
      this.item.hide();
      return;
    }
    const text = scopeText(this.scope, this.focus);
    this.item.text = `$(target) Control: ${text}`;
    this.item.tooltip = `Continue, Pause and the steps of the Ranks view act on: ${text}. Click to choose others.`;
    this.item.show();
  }

  private async choose(): Promise<void> {
    const scope = await this.pickScope();
    if (!scope) return;
    this.scope = scope;
    this.show();
    this.changed.fire(undefined);
  }

  private async pickScope(): Promise<RunScope | undefined> {
    const rows = this.rows();
    const list = vscode.window.createQuickPick<Row>();
    list.title = TITLE;
    list.placeholder = "Remembered until this window is closed";
    list.matchOnDescription = true;
    list.items = rows;
    list.activeItems = rows.filter(({ scope }) => scope && isSame(scope, this.scope));
    const picked = await new Promise<Row | undefined>((resolve) => {
      list.onDidAccept(() => {
        resolve(list.activeItems[0]);
        list.hide();
      });
      list.onDidHide(() => {
        resolve(undefined);
        list.dispose();
      });
      list.show();
    });
    return picked === PICK_ROW ? this.pickSet() : picked?.scope;
  }

  private rows(): Row[] {
    const { focused, members } = this.focus;
    const stopped = members.filter((member) => member.state === "paused").length;
    const groups = groupsOf(members.filter(isLive));
    const group = focused?.group ? `all of ${focused.group}` : "";
    const names = Object.entries(rankSetNames(undefined, this.jobs.focused));
    return [
      row({ kind: "stopped" }, "Stopped ranks", `${stopped} now; Pause stops all that run`),
      row({ kind: "rank" }, "Focused rank", focused ? `now ${shortLabel(focused)}` : "the one that you look at"),
      row({ kind: "group" }, "Focused rank's group", group && `now ${group}`),
      row({ kind: "set", ranks: "all" }, "All ranks", ""),
      ...(groups.length > 1 ? groups : []).map((each) => {
        const ranks = setOf(each.ranks, groups);
        return row({ kind: "set", ranks }, `All of ${each.name}`, inWords(ranks));
      }),
      ...names.map(([name, set]) => row({ kind: "set", ranks: name }, name, set)),
      ...this.presentSet(names.map(([name]) => name)),
      PICK_ROW,
    ];
  }

  /** What was picked or typed before. */
  private presentSet(names: readonly string[]): Row[] {
    const { scope } = this;
    if (scope.kind !== "set" || scope.ranks === "all" || names.includes(scope.ranks)) return [];
    return [row(scope, scope.ranks, inWords(scope.ranks))];
  }

  private async pickSet(): Promise<RunScope | undefined> {
    const job = this.jobs.focused;
    const present = this.scope.kind === "set" && this.scope.ranks !== "all" ? this.scope.ranks : undefined;
    const picked = await pickRanks(TITLE, present, rankSetNames(undefined, job), job, "Check the ranks to control");
    return picked && { kind: "set", ranks: picked.ranks ?? "all" };
  }
}

function row(scope: RunScope, label: string, description: string): Row {
  return { label, description, scope };
}

function isSame(one: RunScope, other: RunScope): boolean {
  return one.kind === other.kind && (one.kind !== "set" || other.kind !== "set" || one.ranks === other.ranks);
}
