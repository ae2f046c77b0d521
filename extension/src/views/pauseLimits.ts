/** Time-outs that run on while somebody is paused: counted down for the Ranks view, and warned of in time. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { dueOf, lineOf, warningOf } from "../core/pauseLimits.js";
import type { PauseLimit } from "../core/protocol.js";
import type { Job, Jobs } from "../debug/jobs.js";
import type { Log } from "../log.js";

const TICK_MILLISECONDS = 1000;
const CONTINUE = "Continue Stopped Ranks";

/** Owns a timer, which runs while there is something to count down. */
export class PauseLimits implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[];
  private readonly warned = new Map<string, Set<string>>();
  private timer: NodeJS.Timeout | undefined;
  private text = "";

  /** The line is another than before. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
  ) {
    const tick = (): void => {
      this.tick();
    };
    this.disposables = [this.changed, jobs.onDidChangeRanks(tick), jobs.onDidEnd(tick)];
  }

  /** Empty when nothing runs out. */
  get line(): string {
    return this.text;
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const disposable of this.disposables) disposable.dispose();
  }

  private tick(): void {
    clearTimeout(this.timer);
    const jobs = this.jobs.all.filter((job) => (job.paused.limits ?? []).length > 0);
    for (const id of this.warned.keys()) if (!jobs.some((job) => job.id === id)) this.warned.delete(id);
    for (const job of jobs) for (const limit of dueOf(job.paused, job.age)) this.warn(job, limit);
    const text = jobs.map((job) => lineOf(job.paused, job.age)).join(" · ");
    if (text !== this.text) {
      this.text = text;
      this.changed.fire();
    }
    this.timer = jobs.length > 0 ? setTimeout(this.tick.bind(this), TICK_MILLISECONDS) : undefined;
  }

  /** Once for each pause. */
  private warn(job: Job, limit: PauseLimit): void {
    const told = this.warned.get(job.id) ?? new Set();
    const key = `${limit.member} ${limit.what}`;
    if (told.has(key)) return;
    this.warned.set(job.id, told.add(key));
    const sentence = warningOf(limit, job.age);
    this.log.channel.warn(sentence);
    void vscode.window.showWarningMessage(sentence, CONTINUE).then((chosen) => {
      if (chosen === CONTINUE) void vscode.commands.executeCommand(COMMANDS.continueStopped);
    });
  }
}
