/** What the panels and the extension say to each other, typed once for both ends. */

import type { Doing } from "./memberFilter.js";
import type { Comparison } from "./protocol.js";
import type { GraphNode } from "./stackGraph.js";

/** A script has been loaded and asks for what there is. */
export interface Ready {
  readonly type: "ready";
}

// --- the graph of stacks

export interface StacksState {
  readonly type: "stacks";
  /** The job's name; empty: no job runs. */
  readonly job: string;
  /** `4 ranks in 2 places`. */
  readonly summary: string;
  readonly nodes: readonly GraphNode[];
  /** Of how many members widths are a share. */
  readonly total: number;
  readonly ranks: string;
  readonly doing: Doing | "";
  /** Why a set was refused, the hub does not answer, or who is missing; one sentence each. */
  readonly notes: readonly string[];
  /** What to do where nothing is drawn. */
  readonly empty: string;
}

export type ToStacks = StacksState;

export type FromStacks =
  | Ready
  | { readonly type: "open"; readonly id: string }
  | { readonly type: "expand"; readonly id: string }
  | { readonly type: "filter"; readonly ranks: string; readonly doing: Doing | "" }
  | { readonly type: "refresh" }
  | { readonly type: "copy" };

// --- the comparison

export interface CompareForm {
  readonly expression: string;
  readonly ranks: string;
  /** Ask again whenever ranks stop. */
  readonly isFollowing: boolean;
  /** Id of the member whose tensor the others are compared with; empty: none. */
  readonly reference: string;
}

export interface CompareState {
  readonly type: "state";
  readonly form: CompareForm;
  /** Put the form's own words in the place of what is being typed. */
  readonly isFormNew: boolean;
  readonly job: string;
  /** What to do, where there is nothing to show. */
  readonly empty: string;
  readonly isBusy: boolean;
  /** Why there is no answer. */
  readonly error: string;
  readonly answer: Comparison | undefined;
  /** `14:03:12 · 12 ms`; empty without an answer. */
  readonly when: string;
  /** Why the answer may not be so any more; empty when it may. */
  readonly stale: string;
  /** Whether a running rank could be paused. */
  readonly canPause: boolean;
  /** Rank sets to choose from. */
  readonly sets: readonly string[];
}

export type ToCompare = CompareState;

export type FromCompare =
  | Ready
  | { readonly type: "compare"; readonly form: CompareForm }
  | { readonly type: "form"; readonly form: CompareForm }
  | { readonly type: "open"; readonly member: string }
  | { readonly type: "copy"; readonly text: string }
  | { readonly type: "pause" };
