/**
 * The custom messages between the extension and the hub (`python_adapter/rankscope/dap/`), typed once.
 * Requests and events go over the job's root session.
 */

/** A member of the job: driver, rank, child of a rank, or a Ray worker that is nothing yet. */
export type Role = "driver" | "rank" | "child" | "idle";

export type MemberState = "starting" | "running" | "paused" | "exited" | "crashed" | "lost";

export interface Member {
  readonly id: string;
  /** Order of joining, from 0. */
  readonly number: number;
  /** How people read it: `actor 2 · node-1`. */
  readonly label: string;
  readonly role: Role;
  readonly group: string;
  readonly rank: number | null;
  /** False while the rank is only the order of creation. */
  readonly isFinal: boolean;
  readonly localRank: number | null;
  readonly worldSize: number | null;
  /** Index of its node in the job, from 0. */
  readonly node: number | null;
  readonly host: string;
  readonly pid: number;
  readonly state: MemberState;
  readonly isArmed: boolean;
  /** Outside `ranks` of launch.json: it never stops. */
  readonly isGreyed: boolean;
  readonly incarnation: number;
  /** The rank set that names its session (`actor/2`); empty: the root session presents it. */
  readonly session: string;
  /** Whether that session is open. */
  readonly hasSession: boolean;
  readonly threadIds: readonly number[];
  readonly stopped: { readonly reason: string; readonly description?: string; readonly text?: string } | null;
  /** Why it ended, where that is known: `ValueError: bad batch`, `killed by SIGKILL`. */
  readonly ending: string;
  /** Held since its failure: seconds until it is let go by itself; null or absent: not held. */
  readonly heldSeconds?: number | null;
}

/** Something that deserves attention at a line: so far, a failure. */
export interface Finding {
  readonly kind: "crash";
  /** `error` for the first failure of an episode, `information` for those that followed from it. */
  readonly severity: "error" | "information";
  /** The person's own file; empty where the line is not known. */
  readonly path: string;
  /** From 1; 0 where it is not known. */
  readonly line: number;
  /** `ValueError: bad batch`, `killed by SIGKILL`. */
  readonly text: string;
  /** Whose: a member's label. */
  readonly label: string;
  /** Its member's id. */
  readonly member: string;
  readonly isFirst: boolean;
  /** Failures of one episode have one number, from 1. */
  readonly episode: number;
  /** The folder of the run's record; empty when none is kept. */
  readonly record: string;
}

/** Where a member stands: its innermost frame of the person's own code. */
export interface TopFrame {
  readonly name: string;
  /** The person's own file. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** The blocking call that this frame is in, such as `all_reduce` or `ray.get`; empty when it is in none. */
  readonly call: string;
}

/** One breakpoint of the root session, and how it stands with the members it concerns. */
export interface BreakpointStatus {
  readonly path: string;
  /** As asked, from 1. */
  readonly line: number;
  /** Its rank set; empty: every process. */
  readonly ranks: string;
  /** Why no rank has it; empty when nothing is wrong. */
  readonly error: string;
  /** Ids of the members that it concerns and that have joined, and of those of them where it is bound. */
  readonly joined: readonly string[];
  readonly verified: readonly string[];
  /** How many that it concerns are still to join or to answer. */
  readonly pending: number;
  /** How often it stopped whom, by member id. */
  readonly hits: Readonly<Record<string, number>>;
}

export type Action = "continue" | "pause";

/** What a control request came to: labels of members. */
export interface Outcome {
  readonly done: readonly string[];
  readonly late: readonly string[];
  readonly failed: Readonly<Record<string, string>>;
}

export interface Requests {
  "rankscope/ranks": { arguments: Record<string, never>; result: { members: readonly Member[] } };
  /** Frames of the members asked for (all when absent), within a bound; `late` are ids without an answer yet. */
  "rankscope/frames": {
    arguments: { members?: readonly string[] };
    result: { frames: Readonly<Record<string, TopFrame | null>>; late: readonly string[] };
  };
  "rankscope/breakpoints": {
    arguments: Record<string, never>;
    result: { breakpoints: readonly BreakpointStatus[] };
  };
  "rankscope/control": {
    arguments: { action: Action; ranks?: string; scope?: "stopped" | "session"; members?: readonly string[] };
    result: Outcome;
  };
  /** Open a session that does not open by itself (beyond `maxSessions`). */
  "rankscope/openSession": { arguments: { session: string }; result: Record<string, never> };
  /**
   * Let the editor's focus go to a stopped member: its `stopped` event comes again without `preserveFocusHint`, after that of
   * `from` (the member focused now) came with one. An editor has no other way to be told.
   */
  "rankscope/focus": { arguments: { member: string; from?: string }; result: Record<string, never> };
}

export interface Events {
  "rankscope/ranksChanged": { members: readonly Member[] };
  "rankscope/breakpointsChanged": { breakpoints: readonly BreakpointStatus[] };
  "rankscope/startChild": { configuration: ChildConfiguration };
  /** A failure was noted; of one episode the latest with `isFirst` counts. */
  "rankscope/finding": Finding;
}

/** The session that the hub asks the extension to open. */
export interface ChildConfiguration {
  readonly type: "rankscope";
  readonly request: "attach";
  readonly name: string;
  readonly session: { readonly ranks: string };
}

/** What the extension adds to a launch configuration so that the hub knows whom it serves. */
export interface ExtensionMark {
  readonly version: string;
}
export const EXTENSION_MARK = "__extension";
