/** The jobs of this window: one per root session, with what its hub tells of the ranks and breakpoints. */

import * as vscode from "vscode";

import { DEBUG_TYPE } from "../contributions.js";
import { memberAt } from "../core/focus.js";
import type { ChildConfiguration, Events, Member, Finding } from "../core/protocol.js";
import { type Asked, Job } from "./job.js";

export { Job } from "./job.js";

/** Every job that runs, and the one that is looked at. */
export class Jobs implements vscode.Disposable {
  private readonly known = new Map<string, Job>();
  private readonly disposables: vscode.Disposable[] = [];

  private readonly started = this.emitter<Job>();
  private readonly ended = this.emitter<Job>();
  private readonly ranksChanged = this.emitter<Job>();
  private readonly framesChanged = this.emitter<Job>();
  private readonly breakpointsChanged = this.emitter<Job>();
  private readonly childAsked = this.emitter<{ job: Job; child: Events["rankscope/startChild"] }>();
  private readonly found = this.emitter<{ job: Job; finding: Finding }>();
  private readonly childStarted = this.emitter<Job>();
  private readonly focusChanged = this.emitter<Job | undefined>();

  readonly onDidStart = this.started.event;
  readonly onDidEnd = this.ended.event;
  readonly onDidChangeRanks = this.ranksChanged.event;
  /** After `refreshFrames`. */
  readonly onDidChangeFrames = this.framesChanged.event;
  readonly onDidChangeBreakpoints = this.breakpointsChanged.event;
  readonly onDidAskForChild = this.childAsked.event;
  readonly onDidFind = this.found.event;
  /** A child session is in `job.children`. */
  readonly onDidStartChild = this.childStarted.event;
  /** Another session, thread or frame is shown. */
  readonly onDidChangeFocus = this.focusChanged.event;

  constructor() {
    this.disposables.push(
      vscode.debug.onDidStartDebugSession((session) => {
        this.begun(session);
      }),
      vscode.debug.onDidTerminateDebugSession((session) => {
        this.remove(session);
      }),
      vscode.debug.onDidReceiveDebugSessionCustomEvent((event) => {
        this.heard(event);
      }),
      vscode.debug.onDidChangeActiveDebugSession(() => {
        this.focusChanged.fire(this.focused);
      }),
      vscode.debug.onDidChangeActiveStackItem(() => {
        this.focusChanged.fire(this.focused);
      }),
    );
  }

  get all(): readonly Job[] {
    return [...this.known.values()];
  }

  /** The job of the session that VS Code shows; else the only, or the newest, job. */
  get focused(): Job | undefined {
    const active = vscode.debug.activeDebugSession;
    return (active && this.jobOf(active)) ?? this.all.at(-1);
  }

  /** The member whose frame, thread or session VS Code shows, where that is one. */
  get focusedMember(): Member | undefined {
    const item = vscode.debug.activeStackItem;
    const session = item?.session ?? vscode.debug.activeDebugSession;
    const job = session && this.jobOf(session);
    return job && memberAt(job.members, rankSetOf(session) ?? "", item?.threadId);
  }

  /** The job that a session, root or child, belongs to. */
  jobOf(session: vscode.DebugSession): Job | undefined {
    for (let at: vscode.DebugSession | undefined = session; at; at = at.parentSession) {
      const job = this.known.get(at.id);
      if (job) return job;
    }
    return undefined;
  }

  find(id: string): Job | undefined {
    return this.known.get(id);
  }

  /** Ask every job where its members stand, and tell. Rejects with what the first hub that fails says. */
  async refreshFrames(whom: Asked = "all"): Promise<void> {
    const refresh = async (job: Job): Promise<void> => {
      if ((await job.refreshFrames(whom)) && !job.hasEnded) this.framesChanged.fire(job);
    };
    const outcomes = await Promise.allSettled(this.all.map(refresh));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  dispose(): void {
    for (const job of this.all) job.end();
    this.known.clear();
    for (const disposable of this.disposables) disposable.dispose();
  }

  private emitter<T>(): vscode.EventEmitter<T> {
    const emitter = new vscode.EventEmitter<T>();
    this.disposables.push(emitter);
    return emitter;
  }

  private begun(session: vscode.DebugSession): void {
    const ranks = rankSetOf(session);
    if (ranks === undefined) {
      this.add(session);
      return;
    }
    const job = this.jobOf(session);
    if (!job) return;
    job.children.set(ranks, session);
    this.childStarted.fire(job);
  }

  private add(session: vscode.DebugSession): Job | undefined {
    if (session.type !== DEBUG_TYPE || rankSetOf(session) !== undefined) return undefined;
    let job = this.known.get(session.id);
    if (!job) {
      job = new Job(session);
      this.known.set(session.id, job);
      this.started.fire(job);
    }
    return job;
  }

  private remove(session: vscode.DebugSession): void {
    const ranks = rankSetOf(session);
    if (ranks !== undefined) {
      const children = this.jobOf(session)?.children;
      if (children?.get(ranks) === session) children.delete(ranks);
      return;
    }
    const job = this.known.get(session.id);
    if (!job) return;
    this.known.delete(session.id);
    job.end();
    this.ended.fire(job);
    this.focusChanged.fire(this.focused);
  }

  /** The hub may speak before VS Code says that the session has started. */
  private heard({ session, event, body }: vscode.DebugSessionCustomEvent): void {
    const job = this.add(session);
    if (!job) return;
    switch (event as keyof Events) {
      case "rankscope/ranksChanged":
        job.members = (body as Events["rankscope/ranksChanged"]).members;
        job.paused = body as Events["rankscope/ranksChanged"];
        job.skews = (body as Events["rankscope/ranksChanged"]).skews ?? {};
        this.ranksChanged.fire(job);
        break;
      case "rankscope/breakpointsChanged":
        job.breakpoints = (body as Events["rankscope/breakpointsChanged"]).breakpoints;
        this.breakpointsChanged.fire(job);
        break;
      case "rankscope/finding":
        this.found.fire({ job, finding: body as Events["rankscope/finding"] });
        break;
      case "rankscope/startChild":
        this.childAsked.fire({ job, child: body as Events["rankscope/startChild"] });
        break;
    }
  }
}

/** The rank set that names a child session; `undefined` for a root. */
function rankSetOf(session: vscode.DebugSession): string | undefined {
  const { session: named } = session.configuration as Partial<ChildConfiguration>;
  return session.type === DEBUG_TYPE ? named?.ranks : undefined;
}
