/** The merged stacks of the job that is looked at, as the Stacks view and its graph show them. */

import * as vscode from "vscode";

import { idsIn, type MemberFilter, NO_FILTER } from "../core/memberFilter.js";
import { MemberNames } from "../core/memberNames.js";
import { isLive } from "../core/memberText.js";
import type { MergedStacks } from "../core/protocol.js";
import { foldStacks, type Stacks } from "../core/stackTree.js";
import type { Job, Jobs } from "../debug/jobs.js";
import { rankSetNames } from "../debug/rankSetNames.js";

/** A burst of stops is asked about once. */
const QUIET_MILLISECONDS = 120;
const EVERY_MILLISECONDS = 2000;
/** Of a hub's time no more than a tenth is asked for. */
const REST_PER_ANSWER = 10;
const NATIVE_SECONDS = 60;

export interface Shown {
  readonly job: Job;
  readonly answer: MergedStacks;
  readonly names: MemberNames;
  /** Without what the filter hides. */
  readonly stacks: Stacks;
}

/**
 * Asks the hub while somebody watches and a process lives: after each stop, and from time to time. Owns one timer. What
 * is shown stays until there is a newer answer, or the job has ended.
 */
export class StackSource implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly watchers = new Set<() => boolean>();
  private job: Job | undefined;
  private answer: MergedStacks | undefined;
  private told = "";
  private chosen: MemberFilter = NO_FILTER;
  private folded: Shown | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asking: Promise<void> | undefined;
  /** Native frames were asked for: they stay until the stacks are asked for by hand. */
  private holdsNative = false;
  private fault = "";

  readonly onDidChange = this.changed.event;

  constructor(private readonly jobs: Jobs) {
    const follow = (): void => {
      this.follow();
    };
    this.disposables.push(
      this.changed,
      jobs.onDidStart(follow),
      jobs.onDidEnd(follow),
      jobs.onDidChangeFocus(follow),
      jobs.onDidChangeRanks((job) => {
        if (job === this.jobs.focused) this.askWithin(QUIET_MILLISECONDS);
      }),
    );
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const disposable of this.disposables) disposable.dispose();
  }

  /** As long as one watcher is visible the stacks are kept up to date; call `wake` when one becomes visible. */
  watch(isVisible: () => boolean): void {
    this.watchers.add(isVisible);
  }

  wake(): void {
    this.follow();
    this.askWithin(this.answer ? QUIET_MILLISECONDS : 0);
  }

  /** Why there is no newer answer; empty when there is. */
  get error(): string {
    return this.fault;
  }

  get isNative(): boolean {
    return this.holdsNative;
  }

  get filter(): MemberFilter {
    return this.chosen;
  }

  /** Throws a RankSetError for a set that cannot be read in this job. */
  set filter(filter: MemberFilter) {
    if (this.job) idsIn(filter, this.job.members, rankSetNames(undefined, this.job));
    this.chosen = filter;
    this.folded = undefined;
    this.changed.fire();
  }

  get shown(): Shown | undefined {
    const { job, answer } = this;
    if (!job || !answer) return undefined;
    this.folded ??= this.fold(job, answer);
    return this.folded;
  }

  /** Ask now, by hand. Rejects with the hub's own sentence. */
  async refresh(isNative = false): Promise<void> {
    this.follow();
    const { job } = this;
    if (!job) return;
    this.holdsNative = isNative;
    await this.asking;
    this.told = "";
    await this.ask(job, isNative);
    this.askWithin(EVERY_MILLISECONDS);
    if (this.fault !== "") throw new Error(this.fault);
  }

  private follow(): void {
    const job = this.jobs.focused;
    if (job === this.job) return;
    this.job = job;
    this.answer = this.folded = undefined;
    this.told = this.fault = "";
    this.holdsNative = false;
    this.changed.fire();
    this.askWithin(0);
  }

  private askWithin(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      void this.askAgain();
    }, milliseconds);
  }

  private async askAgain(): Promise<void> {
    const { job } = this;
    if (!job || this.holdsNative || ![...this.watchers].some((isVisible) => isVisible())) return;
    if (!job.members.some((member) => isLive(member) && member.role !== "idle")) return;
    const start = Date.now();
    // one question at a time: what changes meanwhile is asked about when the timer comes again
    if (!this.asking) await this.ask(job, false);
    this.askWithin(Math.max(EVERY_MILLISECONDS, REST_PER_ANSWER * (Date.now() - start)));
  }

  private ask(job: Job, isNative: boolean): Promise<void> {
    const asking = this.takeAnswer(job, isNative).finally(() => {
      if (this.asking === asking) this.asking = undefined;
    });
    this.asking = asking;
    return asking;
  }

  /** Never rejects. */
  private async takeAnswer(job: Job, isNative: boolean): Promise<void> {
    let fault = "";
    try {
      const question = isNative ? { native: true } : {};
      const answer = await job.request("rankscope/stacks", question, isNative ? NATIVE_SECONDS : undefined);
      if (job !== this.job) return;
      const does = job.members.map(({ id, state, stopped }) => [id, state, stopped?.reason]);
      const told = JSON.stringify([answer.tree, answer.late, answer.failed, answer.native, does]);
      if (told === this.told && this.fault === "") return;
      this.answer = answer;
      this.told = told;
      this.folded = undefined;
    } catch (error) {
      if (job.hasEnded || job !== this.job) return;
      fault = error instanceof Error ? error.message : String(error);
    }
    this.fault = fault;
    this.changed.fire();
  }

  private fold(job: Job, answer: MergedStacks): Shown {
    const names = new MemberNames(job.members);
    const { doing } = this.chosen;
    let ids: ReadonlySet<string>;
    try {
      ids = idsIn(this.chosen, job.members, rankSetNames(undefined, job));
    } catch {
      // a name that only the job before has known
      ids = idsIn({ ...this.chosen, ranks: "" }, job.members, {});
    }
    const stacks = foldStacks(answer.tree, names, ({ member, state }) => {
      return ids.has(member) && (doing === "" || state === doing);
    });
    return { job, answer, names, stacks };
  }
}
