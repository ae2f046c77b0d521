/** One job: its root session, what its hub tells, and questions to the hub with a bound. */

import type * as vscode from "vscode";

import { isLive } from "../core/memberText.js";
import type { BreakpointStatus, Member, PausedFacts, Requests, Skews, TopFrame } from "../core/protocol.js";

/** Longer than any deadline of the hub's own. */
const ANSWER_SECONDS = 15;
/** Frames are asked for again and again: a silent hub is to show soon. */
const FRAMES_SECONDS = 6;

export type Asked = "all" | "changed";

/** The facts are the hub's, as of its last event; `Jobs` keeps them. */
export class Job {
  breakpoints: readonly BreakpointStatus[] = [];
  /** How far apart the ranks of a group stopped, where they stop together. */
  skews: Skews = {};
  /** Which time-outs run on while somebody is paused; as old as the members' facts. */
  paused: PausedFacts = {};
  /** Its child sessions by the rank set that names them. */
  readonly children = new Map<string, vscode.DebugSession>();

  private known: readonly Member[] = [];
  private toldAt = 0;
  private places = new Map<string, TopFrame | null>();
  private silent: ReadonlySet<string> = new Set();
  private asking: Promise<void> | undefined;
  /** Whether the hub has told facts since the last question for frames. */
  private hasNews = true;
  private readonly atEnd = new Set<(why: Error) => void>();
  private isOver = false;

  constructor(readonly session: vscode.DebugSession) {}

  get id(): string {
    return this.session.id;
  }

  get name(): string {
    return this.session.configuration.name;
  }

  get hasEnded(): boolean {
    return this.isOver;
  }

  get members(): readonly Member[] {
    return this.known;
  }

  /** New facts; the frame of whoever is in another state than before is forgotten. */
  set members(members: readonly Member[]) {
    const before = new Map(this.known.map((member) => [member.id, member.state]));
    for (const { id, state } of members) if (before.get(id) !== state) this.places.delete(id);
    this.known = members;
    this.toldAt = Date.now();
    this.hasNews = true;
  }

  /** How old the members' facts are, seconds. */
  get age(): number {
    return (Date.now() - this.toldAt) / 1000;
  }

  /** Where members stand, by id, as of the last `refreshFrames`: `null` where none of the person's code runs. */
  get frames(): ReadonlyMap<string, TopFrame | null> {
    return this.places;
  }

  /** Ids of those that did not tell their frame in time. */
  get late(): ReadonlySet<string> {
    return this.silent;
  }

  /** Ask the hub, by the root session unless another's ids are in it. Rejects with the hub's own sentence, when the job ends, or after a bound. */
  async request<K extends keyof Requests>(
    command: K,
    args: Requests[K]["arguments"],
    seconds = ANSWER_SECONDS,
    session = this.session,
  ): Promise<Requests[K]["result"]> {
    if (this.isOver) throw new Error(`The job '${this.name}' has ended.`);
    let stop: (() => void) | undefined;
    const bound = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`The hub of '${this.name}' did not answer '${command}' within ${seconds} s.`));
      }, seconds * 1000);
      this.atEnd.add(reject);
      stop = (): void => {
        clearTimeout(timer);
        this.atEnd.delete(reject);
      };
    });
    try {
      return (await Promise.race([session.customRequest(command, args), bound])) as Requests[K]["result"];
    } finally {
      stop?.();
    }
  }

  /**
   * Ask where members stand: `all` that may have gone on, or those that `changed`, which were not asked since or have
   * stopped anew. One question at a time; who asks meanwhile waits for the same answer, and for another one when there
   * is news. Resolves to whether there was anything to ask.
   */
  async refreshFrames(whom: Asked = "all"): Promise<boolean> {
    while (this.asking) {
      await this.asking;
      if (!this.hasNews) return true;
    }
    const live = this.known.filter((member) => isLive(member) && member.role !== "idle");
    const asked = live.filter((member) => this.isAsked(member, whom)).map(({ id }) => id);
    if (asked.length === 0) return false;
    this.hasNews = false;
    this.asking = this.askFrames(asked, asked.length === live.length)
      .catch((error: unknown) => {
        this.hasNews = true;
        throw error;
      })
      .finally(() => {
        this.asking = undefined;
      });
    await this.asking;
    return true;
  }

  private isAsked({ id, state }: Member, whom: Asked): boolean {
    if (!this.places.has(id)) return true;
    return state === "paused" ? this.hasNews : whom === "all";
  }

  private async askFrames(asked: readonly string[], isEverybody: boolean): Promise<void> {
    const states = new Map(this.known.map((member) => [member.id, member.state]));
    const answer = await this.request("rankscope/frames", isEverybody ? {} : { members: asked }, FRAMES_SECONDS);
    // Who has gone on meanwhile is somewhere else.
    const isSame = new Set(this.known.filter(({ id, state }) => states.get(id) === state).map(({ id }) => id));
    for (const [id, frame] of Object.entries(answer.frames)) if (isSame.has(id)) this.places.set(id, frame);
    const others = new Set(this.silent);
    for (const id of asked) others.delete(id);
    this.silent = new Set([...others, ...answer.late]);
  }

  /** The root session has ended: nothing is waited for any more. */
  end(): void {
    this.isOver = true;
    for (const reject of this.atEnd) reject(new Error(`The job '${this.name}' has ended.`));
  }
}
