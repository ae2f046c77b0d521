/** The Ranks view: every rank of every job, where it is and what it does. */

import * as vscode from "vscode";

import { COMMANDS, CONTEXTS, SETTINGS, VIEWS } from "../contributions.js";
import { isLive } from "../core/memberText.js";
import { RankModel, type RankNode } from "../core/rankModel.js";
import type { Asked } from "../debug/job.js";
import type { Jobs } from "../debug/jobs.js";
import { type RankAddress, RankOpener } from "../debug/rankOpener.js";
import type { ScopeChoice } from "../debug/scopeChoice.js";
import type { Log } from "../log.js";
import { PauseLimits } from "./pauseLimits.js";
import { RanksFilter } from "./ranksFilter.js";
import { rowItem } from "./rowItem.js";

/** A burst of events is drawn once. */
const GAP_MILLISECONDS = 50;
/**
 * In a job of a size to read, a new state is drawn with the frame that belongs to it: VS Code holds back for 200 ms
 * what comes after the first change.
 */
const WITH_FRAMES_MILLISECONDS = 80;
const MAX_WITH_FRAMES = 128;
const LEAST_SECONDS = 0.2;

/** Owns two timers: to draw, and to ask for frames while the view is visible and somebody lives. */
export class RanksView implements vscode.Disposable, vscode.TreeDataProvider<RankNode> {
  private readonly model = new RankModel();
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<RankNode[] | undefined>();
  private readonly view: vscode.TreeView<RankNode>;
  private readonly contexts = new Map<string, boolean>();
  private readonly limits: PauseLimits;
  private readonly filter: RanksFilter;
  private drawTimer: NodeJS.Timeout | undefined;
  private drawAt = 0;
  private lastDraw = 0;
  private askTimer: NodeJS.Timeout | undefined;
  private isSilent = false;
  private revealed = "";
  private readonly unfoldedFor = new Set<string>();

  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
    private readonly scope: ScopeChoice,
  ) {
    this.view = vscode.window.createTreeView<RankNode>(VIEWS.ranks, {
      treeDataProvider: this,
      showCollapseAll: true,
      canSelectMany: false,
    });
    const draw = (): void => {
      this.drawWithin(0);
    };
    this.limits = new PauseLimits(jobs, log);
    this.filter = new RanksFilter(jobs);
    this.disposables.push(
      this.view,
      this.changed,
      this.limits,
      this.limits.onDidChange(() => {
        this.head();
      }),
      this.filter,
      this.filter.onDidChange(draw),
      new RankOpener(jobs, log),
      scope.onDidChange(draw),
      jobs.onDidStart(draw),
      jobs.onDidEnd(draw),
      jobs.onDidChangeFrames(draw),
      jobs.onDidChangeFocus(draw),
      jobs.onDidChangeRanks((job) => {
        const isWaiting = this.view.visible && job.members.length <= MAX_WITH_FRAMES;
        this.drawWithin(isWaiting ? WITH_FRAMES_MILLISECONDS : 0);
        this.askNow("changed");
      }),
      this.view.onDidChangeVisibility(() => {
        draw();
        this.askNow("all");
      }),
    );
    this.draw();
  }

  dispose(): void {
    clearTimeout(this.drawTimer);
    clearTimeout(this.askTimer);
    for (const disposable of this.disposables) disposable.dispose();
  }

  // --- the tree ----------------------------------------------------------------------------------

  getChildren(node?: RankNode): RankNode[] {
    return [...(node?.children ?? this.model.roots)];
  }

  getParent(node: RankNode): RankNode | undefined {
    return node.parent;
  }

  getTreeItem(node: RankNode): vscode.TreeItem {
    const item = rowItem(node, collapsible(node));
    if (node.memberId !== "") {
      const address: RankAddress = { jobId: node.jobId, memberId: node.memberId };
      item.command = { command: COMMANDS.openRank, title: "Open Rank", arguments: [address] };
    }
    return item;
  }

  /** Tooltips are made when they are shown. */
  resolveTreeItem(item: vscode.TreeItem, node: RankNode): vscode.TreeItem {
    const text = node.tooltip();
    item.tooltip = text === "" ? `${node.label} ${node.description}` : new vscode.MarkdownString(text);
    return item;
  }

  // --- drawing -----------------------------------------------------------------------------------

  private drawWithin(milliseconds: number): void {
    const at = Math.max(Date.now() + milliseconds, this.lastDraw + GAP_MILLISECONDS);
    if (this.drawTimer && this.drawAt <= at) return;
    clearTimeout(this.drawTimer);
    this.drawAt = at;
    this.drawTimer = setTimeout(() => {
      this.draw();
    }, at - Date.now());
  }

  private draw(): void {
    clearTimeout(this.drawTimer);
    this.drawTimer = undefined;
    this.lastDraw = Date.now();
    const jobs = this.jobs.all;
    const change = this.model.update(jobs, this.filter.shows(jobs));
    if (change === "all") this.changed.fire(undefined);
    else if (change.length > 0) this.changed.fire([...change]);
    this.head();
    this.context(CONTEXTS.hasJob, jobs.length > 0);
    this.context(CONTEXTS.hasStopped, this.model.stoppedCount > 0);
    this.context(CONTEXTS.hasRanksFilter, this.filter.words !== "");
    void this.revealFocused();
  }

  private head(): void {
    const { summary, stoppedCount } = this.model;
    // beside the title, where it is drawn with the rows and seen while the view is folded; a message comes 200 ms later
    const description = summary && [this.scope.heading, summary].filter(Boolean).join(" · ");
    if (this.view.description !== description) this.view.description = description;
    const fact = this.isSilent && summary !== "" ? "The hub does not answer." : this.limits.line;
    const message = [summary ? this.filter.words : "", fact].filter(Boolean).join(" ");
    if ((this.view.message ?? "") !== message) this.view.message = message;
    if (this.view.badge?.value !== (stoppedCount || undefined)) {
      const tooltip = `${stoppedCount} paused process${stoppedCount === 1 ? "" : "es"}`;
      this.view.badge = stoppedCount > 0 ? { value: stoppedCount, tooltip } : undefined;
    }
  }

  private context(key: string, value: boolean): void {
    if (this.contexts.get(key) === value) return;
    this.contexts.set(key, value);
    void vscode.commands.executeCommand("setContext", key, value);
  }

  /** Select the row of the focused rank when it is another than before; the keyboard stays where it is. */
  private async revealFocused(): Promise<void> {
    const member = this.jobs.focusedMember;
    const job = this.jobs.focused;
    const node = member && job && this.model.find(job.id, member.id);
    if (!node || this.revealed === node.id) return;
    // the first stop of a job unfolds the view; who folds it after that wants it so
    const isFirstStop = member.state === "paused" && !this.unfoldedFor.has(job.id);
    if (!this.view.visible && !isFirstStop) return;
    if (isFirstStop) this.unfoldedFor.add(job.id);
    this.revealed = node.id;
    try {
      await this.view.reveal(node, { select: true, focus: false, expand: false });
    } catch (error) {
      // The tree was drawn anew meanwhile, without that row.
      this.log.channel.debug(`Ranks view: ${node.label} was not revealed: ${String(error)}`);
    }
  }

  // --- asking ------------------------------------------------------------------------------------

  /**
   * Ask for frames now, and again and again while the view is visible and somebody lives. A job is asked one question
   * at a time; a hub that is silent does not hold up the others.
   */
  private askNow(whom: Asked): void {
    if (!this.view.visible || !this.jobs.all.some((job) => job.members.some(isLive))) return;
    void this.ask(whom);
    this.askTimer ??= setTimeout(() => {
      this.askTimer = undefined;
      this.askNow("all");
    }, refreshMilliseconds());
  }

  private async ask(whom: Asked): Promise<void> {
    const wasSilent = this.isSilent;
    try {
      await this.jobs.refreshFrames(whom);
      this.isSilent = false;
    } catch (error) {
      // A job that has ended meanwhile is no silence.
      this.isSilent = this.jobs.all.length > 0;
      if (!wasSilent && this.isSilent) this.log.channel.warn(`Ranks view: ${String(error)}`);
    }
    if (this.isSilent !== wasSilent) this.drawWithin(0);
  }
}

function collapsible(node: RankNode): vscode.TreeItemCollapsibleState {
  if (node.children.length === 0) return vscode.TreeItemCollapsibleState.None;
  return node.isExpanded ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
}

function refreshMilliseconds(): number {
  const seconds = vscode.workspace.getConfiguration(SETTINGS).get<number>("ranksView.refreshSeconds", 1);
  return 1000 * Math.max(LEAST_SECONDS, Number.isFinite(seconds) ? seconds : 1);
}
