/** Where the stopped members of a job stand, asked for when they stop. */

import * as vscode from "vscode";

import type { Member, TopFrame } from "../core/protocol.js";
import type { Job } from "./job.js";
import type { Jobs } from "./jobs.js";

/** Stops come in bursts: one question for those that come within this. */
const QUIET_MS = 50;
/** Whoever is late is asked again, this often at most. */
const TRIES = 3;
const RETRY_MS = 500;

/**
 * Asks a job's hub for the frames of its stopped members after each change of its ranks, and tells when they are there.
 * Owns its timers; one question at a time for each job.
 */
export class StoppedFrames implements vscode.Disposable {
  private readonly frames = new Map<Job, Map<string, TopFrame | null>>();
  private readonly asking = new Set<Job>();
  private readonly timers = new Map<Job, NodeJS.Timeout>();
  private readonly changed = new vscode.EventEmitter<Job>();
  private readonly disposables: vscode.Disposable[];

  readonly onDidChange = this.changed.event;

  constructor(private readonly jobs: Jobs) {
    this.disposables = [
      this.changed,
      jobs.onDidChangeRanks((job) => {
        this.forgetGone(job);
        this.askSoon(job, QUIET_MS, TRIES);
      }),
      // a step may end before the hub tells that the rank has run
      jobs.onDidChangeFocus((job) => {
        if (job) this.askSoon(job, QUIET_MS, TRIES);
      }),
      jobs.onDidEnd((job) => {
        clearTimeout(this.timers.get(job));
        this.timers.delete(job);
        this.frames.delete(job);
      }),
    ];
  }

  /** The members that stand in a file, by line from 1. */
  inFile(job: Job, path: string): Map<number, Member[]> {
    const lines = new Map<number, Member[]>();
    const frames = this.frames.get(job);
    for (const member of job.members) {
      const frame = isStopped(member) ? frames?.get(member.id) : undefined;
      if (!frame || vscode.Uri.file(frame.path).fsPath !== path) continue;
      lines.set(frame.line, [...(lines.get(frame.line) ?? []), member]);
    }
    return lines;
  }

  dispose(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    for (const disposable of this.disposables) disposable.dispose();
  }

  /** Whoever runs stands nowhere: a later stop must not show the old line. */
  private forgetGone(job: Job): void {
    const frames = this.frames.get(job);
    for (const member of job.members) if (!isStopped(member)) frames?.delete(member.id);
  }

  private isRunning(job: Job): boolean {
    return this.jobs.find(job.id) === job;
  }

  private askSoon(job: Job, delay: number, tries: number): void {
    if (!this.isRunning(job) || this.timers.has(job)) return;
    const timer = setTimeout(() => {
      this.timers.delete(job);
      void this.ask(job, tries);
    }, delay);
    this.timers.set(job, timer);
  }

  private async ask(job: Job, tries: number): Promise<void> {
    const members = job.members.filter(isStopped).map(({ id }) => id);
    if (members.length === 0 || !this.isRunning(job)) return;
    if (this.asking.has(job)) {
      this.askSoon(job, QUIET_MS, tries);
      return;
    }
    this.asking.add(job);
    let isLate = true;
    try {
      const answer = await job.request("rankscope/frames", { members });
      if (!this.isRunning(job)) return;
      const stopped = new Set(job.members.filter(isStopped).map(({ id }) => id));
      const known = this.frames.get(job) ?? new Map<string, TopFrame | null>();
      for (const [id, frame] of Object.entries(answer.frames)) if (stopped.has(id)) known.set(id, frame);
      this.frames.set(job, known);
      isLate = answer.late.some((id) => stopped.has(id));
      this.changed.fire(job);
    } catch {
      // a hub that ends or is too busy says so elsewhere; here only a mark at a line is missing
    } finally {
      this.asking.delete(job);
    }
    if (isLate && tries > 1) this.askSoon(job, RETRY_MS, tries - 1);
  }
}

function isStopped(member: Member): boolean {
  return member.stopped !== null;
}
