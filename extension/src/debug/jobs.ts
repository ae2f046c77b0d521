/** The jobs of this window: one per root session, with what its hub tells of the ranks and breakpoints. */

import * as vscode from "vscode";

import { DEBUG_TYPE } from "../contributions.js";
import type { BreakpointStatus, Events, Member, Requests } from "../core/protocol.js";

/** One job. Its facts are the hub's, as of the last event. */
export class Job {
  members: readonly Member[] = [];
  breakpoints: readonly BreakpointStatus[] = [];

  constructor(readonly session: vscode.DebugSession) {}

  get name(): string {
    return this.session.configuration.name;
  }

  /** Ask the hub. Rejects with the hub's own sentence. */
  request<K extends keyof Requests>(command: K, args: Requests[K]["arguments"]): Promise<Requests[K]["result"]> {
    return Promise.resolve(this.session.customRequest(command, args)) as Promise<Requests[K]["result"]>;
  }
}

/** Every job that runs, and the one that is looked at. */
export class Jobs implements vscode.Disposable {
  private readonly known = new Map<string, Job>();
  private readonly disposables: vscode.Disposable[] = [];

  private readonly started = this.emitter<Job>();
  private readonly ended = this.emitter<Job>();
  private readonly ranksChanged = this.emitter<Job>();
  private readonly breakpointsChanged = this.emitter<Job>();
  private readonly childAsked = this.emitter<{ job: Job; child: Events["rankscope/startChild"] }>();
  private readonly focusChanged = this.emitter<Job | undefined>();

  readonly onDidStart = this.started.event;
  readonly onDidEnd = this.ended.event;
  readonly onDidChangeRanks = this.ranksChanged.event;
  readonly onDidChangeBreakpoints = this.breakpointsChanged.event;
  readonly onDidAskForChild = this.childAsked.event;
  readonly onDidChangeFocus = this.focusChanged.event;

  constructor() {
    this.disposables.push(
      vscode.debug.onDidStartDebugSession((session) => {
        this.add(session);
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

  /** The job that a session, root or child, belongs to. */
  jobOf(session: vscode.DebugSession): Job | undefined {
    for (let at: vscode.DebugSession | undefined = session; at; at = at.parentSession) {
      const job = this.known.get(at.id);
      if (job) return job;
    }
    return undefined;
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private emitter<T>(): vscode.EventEmitter<T> {
    const emitter = new vscode.EventEmitter<T>();
    this.disposables.push(emitter);
    return emitter;
  }

  private add(session: vscode.DebugSession): Job | undefined {
    if (session.type !== DEBUG_TYPE || session.configuration.session !== undefined) return undefined;
    let job = this.known.get(session.id);
    if (!job) {
      job = new Job(session);
      this.known.set(session.id, job);
      this.started.fire(job);
    }
    return job;
  }

  private remove(session: vscode.DebugSession): void {
    const job = this.known.get(session.id);
    if (!job) return;
    this.known.delete(session.id);
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
        this.ranksChanged.fire(job);
        break;
      case "rankscope/breakpointsChanged":
        job.breakpoints = (body as Events["rankscope/breakpointsChanged"]).breakpoints;
        this.breakpointsChanged.fire(job);
        break;
      case "rankscope/startChild":
        this.childAsked.fire({ job, child: body as Events["rankscope/startChild"] });
        break;
    }
  }
}
