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
  /** What hangs at it, in a few words; null or absent: nothing does. */
  readonly stuck?: string | null;
  /** Held since its failure: seconds until it is let go by itself; null or absent: not held. */
  readonly heldSeconds?: number | null;
  /** Told to pause, to step or to run somewhere a while ago, and not there yet; whom it waits for, by label. */
  readonly pending?: { readonly action: string; readonly waitsFor: readonly string[] } | null;
  /** Held at a barrier breakpoint: whom that waits for, by label; null or absent: not held. */
  readonly barrier?: readonly string[] | null;
}

/** How far apart the ranks of a group stopped that stops together: `stopped` of `size` ranks did. */
export interface Skew {
  readonly milliseconds: number;
  readonly stopped: number;
  readonly size: number;
}

/** By group, of those that stopped together and stand still. */
export type Skews = Readonly<Record<string, Skew>>;

/** Something that deserves attention at a line: a failure, ranks that wait for each other, ranks that disagree. */
export interface Finding {
  /** One that comes again with the same id takes the place of the earlier one. */
  readonly id: string;
  readonly kind: "crash" | "hang" | "mismatch" | "divergence";
  /** `information` for failures that followed from another, `warning` where only random states differ. */
  readonly severity: "error" | "warning" | "information";
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
  /** Of a hang: `resolved after 16 s`, once it has ended by itself. */
  readonly how: string;
  /** Of a hang and a mismatch. A divergence has other ones, which the language server reads from the record. */
  readonly details?: Hang;
}

/** One hang: a stall that waits for nobody who waits, a circle of stalls, or ranks that disagree. */
export interface Hang {
  /** One sentence; of a finding the whole page, with lines and stacks. */
  readonly text: string;
  readonly isDeadlock: boolean;
  /** In what ranks differ; empty when in nothing. */
  readonly mismatch: "" | "op" | "size" | "dtype";
  readonly seconds: number;
  readonly stalls: readonly Stall[];
}

/** One collective, send or receive that has not ended; members are ids. */
export interface Stall {
  readonly group: string;
  readonly desc: string;
  readonly op: string;
  readonly seq: number;
  /** Of a send or receive the other side's rank in its world, -1: any. */
  readonly peer: number | null;
  readonly waiting: readonly string[];
  readonly missing: readonly string[];
  readonly variants: readonly { readonly what: string; readonly members: readonly string[] }[];
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
  /** Who gets there is held until all of the set have. */
  readonly isBarrier?: boolean;
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

export type Action = "continue" | "pause" | "next" | "stepIn" | "stepOut" | "runToCursor";

/** What a control request came to: labels of members. */
export interface Outcome {
  readonly done: readonly string[];
  readonly late: readonly string[];
  readonly failed: Readonly<Record<string, string>>;
  /** Told, and yet to arrive, which they do by themselves: the blocking call they are in, and whom that waits for. */
  readonly pending?: readonly {
    readonly label: string;
    readonly member: string;
    readonly call: string;
    readonly waitsFor: readonly string[];
  }[];
  /** What the rank set names that is not in the job. */
  readonly absent?: readonly string[];
}

export interface Requests {
  "rankscope/ranks": {
    arguments: Record<string, never>;
    result: { members: readonly Member[]; skews?: Skews } & PausedFacts;
  };
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
    arguments: {
      action: Action;
      /** Whom: by id, by rank set, or a scope; without any: everybody. `member` is one of the group that is meant. */
      members?: readonly string[];
      ranks?: string;
      scope?: "stopped" | "session" | "group";
      member?: string;
      /** The member whose next stop takes the editor's focus. */
      focus?: string;
      /** Where `runToCursor` goes; the line from 1. */
      path?: string;
      line?: number;
      /** Seconds that they have to arrive. */
      timeout?: number;
    };
    result: Outcome;
  };
  /** Open a session that does not open by itself (beyond `maxSessions`). */
  "rankscope/openSession": { arguments: { session: string }; result: Record<string, never> };
  /**
   * Let the editor's focus go to a stopped member: its `stopped` event comes again without `preserveFocusHint`, after that of
   * `from` (the member focused now) came with one. An editor has no other way to be told.
   */
  "rankscope/focus": { arguments: { member: string; from?: string }; result: Record<string, never> };
  /** The stacks of the members asked for (all when absent) as one tree; nobody is stopped or armed for it. */
  "rankscope/stacks": { arguments: StacksQuestion; result: MergedStacks };
  /** What waits for what now, however short: a page, and a sentence and the facts of each hang. */
  "rankscope/whyStuck": {
    arguments: Record<string, never>;
    result: { text: string; findings: readonly string[]; groups: readonly Hang[] };
  };
  /** One expression on many ranks, each in its own stopped frame. */
  "rankscope/compare": { arguments: CompareQuestion; result: Comparison };
}

export type StackState = "paused" | "blocked" | "running";

/** A frame that ranks have in common; the root has the name "". Children: those with the fewest members first. */
export interface StackNode {
  readonly name: string;
  readonly path: string;
  /** From 1; 0 where it is not known. */
  readonly line: number;
  readonly kind: "own" | "library" | "native" | "thread";
  /** Ids of the members whose stack goes through it. */
  readonly members: readonly string[];
  /** The same as a rank set. */
  readonly ranks: string;
  readonly state?: StackState;
  /** The blocking call that it is in, such as `all_reduce`. */
  readonly call?: string;
  /** Of the innermost own frame, when they were asked for, by member id. */
  readonly locals?: Readonly<Record<string, readonly { readonly name: string; readonly text: string }[]>>;
  readonly children: readonly StackNode[];
}

export interface StacksQuestion {
  readonly members?: readonly string[];
  readonly ranks?: string;
  readonly withLocals?: boolean;
  /** With the frames of native code, by py-spy. */
  readonly native?: boolean;
}

export interface MergedStacks {
  readonly tree: StackNode;
  readonly late: readonly { readonly member: string; readonly label: string; readonly why: string }[];
  /** Why a member's stack, or its native frames, are not there, by label. */
  readonly failed: Readonly<Record<string, string>>;
  /** Labels of members whose stack py-spy has read: their interpreter did not answer. */
  readonly native: readonly string[];
  /** How many members have answered. */
  readonly count: number;
  readonly seconds: number;
}

export interface CompareQuestion {
  readonly expression: string;
  readonly ranks?: string;
  readonly members?: readonly string[];
  /** The frame that is looked at, of the session that asks: each rank answers in its own frame of that function. */
  readonly frameId?: number;
  /** Whose tensor the others are compared with, element by element, `withDelta`. */
  readonly reference?: string;
  readonly withDelta?: boolean;
  /** Seconds that a rank has for its answer. */
  readonly timeout?: number;
}

/** A number; what JSON cannot hold is spelt out. */
export type Numeric = number | "NaN" | "Infinity" | "-Infinity" | null;

/** What stands for a tensor, an array or a table. */
export interface TensorSummary {
  readonly kind: string;
  readonly shape?: readonly number[] | null;
  readonly dtype?: string | null;
  readonly device?: string | null;
  readonly placement?: string | null;
  readonly mesh?: string | null;
  readonly min?: Numeric;
  readonly max?: Numeric;
  readonly mean?: Numeric;
  readonly std?: Numeric;
  readonly norm?: Numeric;
  readonly nan?: number | null;
  readonly inf?: number | null;
  readonly count?: number | null;
  readonly note?: string | null;
  readonly isPartial?: boolean;
  readonly digest?: string | null;
}

/** What one member answered. */
export interface CompareRow {
  readonly member: string;
  readonly label: string;
  readonly rank: number | null;
  readonly group: string;
  readonly node: number | null;
  readonly state: string;
  readonly kind: "number" | "tensor" | "text" | "error" | "late" | "running";
  readonly text: string;
  readonly type: string;
  readonly value?: Numeric;
  readonly tensor?: TensorSummary | null;
  /** Against the reference: the largest |Δ|, the index where, and the mean. */
  readonly delta?: {
    readonly max: Numeric;
    readonly index?: readonly number[] | number | null;
    readonly mean?: Numeric;
    /** What is to be known besides, or why there is none. */
    readonly note?: string | null;
  } | null;
  readonly error?: string | null;
}

/** Members that answered the same. */
export interface CompareGroup {
  readonly text: string;
  readonly kind: CompareRow["kind"];
  readonly ranks: string;
  readonly members: readonly string[];
  readonly count: number;
  readonly isMajority: boolean;
}

export interface CompareStats {
  readonly min: Numeric;
  readonly max: Numeric;
  readonly mean: Numeric;
  readonly std?: Numeric;
  readonly nan: number;
  readonly inf: number;
  /** Ids of members whose number is far from the others'. */
  readonly outliers: readonly string[];
}

export interface Comparison {
  readonly expression: string;
  readonly rows: readonly CompareRow[];
  readonly groups: readonly CompareGroup[];
  readonly stats?: CompareStats | null;
  /** Labels of members that did not answer in time. */
  readonly late: readonly string[];
  /** The part of the set that nobody is in; empty: none. */
  readonly absent?: string;
  /** What the expression may change in the ranks. */
  readonly warning?: string | null;
  /** Whose tensor the others were compared with. */
  readonly reference?: string;
  readonly message: string;
}

/** A time-out that runs on while somebody is paused. */
export interface PauseLimit {
  /** `ray.get(timeout=60)`. */
  readonly what: string;
  /** Whose: a member's label, and its id. */
  readonly label: string;
  readonly member: string;
  /** As of the message that told it; null: nobody knows when it ends. */
  readonly secondsLeft: number | null;
  /** Whether an option or a variable could raise it; `text` says which. */
  readonly canRaise: boolean;
  /** Whether it raises an error when it ends. */
  readonly fails: boolean;
  readonly isOver: boolean;
  readonly text: string;
}

/** Told while somebody is paused and a time-out runs. */
export interface PausedFacts {
  readonly pausedSeconds?: number;
  /** Those that fail soonest first. */
  readonly limits?: readonly PauseLimit[];
  /** How many more there are. */
  readonly limitsLeftOut?: number;
}

export interface Events {
  "rankscope/ranksChanged": { members: readonly Member[]; skews?: Skews } & PausedFacts;
  "rankscope/breakpointsChanged": { breakpoints: readonly BreakpointStatus[] };
  "rankscope/startChild": { configuration: ChildConfiguration };
  /** Something was noted; of one episode of failures the latest with `isFirst` counts. */
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
