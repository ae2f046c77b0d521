/** All ranks' stacks as one tree of the person's own frames: folded, filtered, and put together to what can be read. */

import type { MemberNames } from "./memberNames.js";
import type { StackNode, StackState } from "./protocol.js";

/** An own frame, or the head of another thread, that members have in common. */
export interface Frame {
  readonly name: string;
  readonly path: string;
  readonly line: number;
  readonly kind: StackNode["kind"];
  /** What of installed code it calls, as it came. */
  readonly library: readonly StackNode[];
}

/** Where a member's stack ends. */
export interface End {
  readonly member: string;
  readonly state: StackState;
  /** The blocking call; empty when it is in none. */
  readonly call: string;
}

/** A stretch of frames without a fork: all its members go through all of them. */
export interface Stretch {
  /** The same as long as its first frame is the same. */
  readonly id: string;
  /** Outermost first; never empty. */
  readonly frames: readonly Frame[];
  readonly members: readonly string[];
  /** Those whose stack ends in the last frame, or in what it calls of installed code. */
  readonly ends: readonly End[];
  /** Those with the fewest members first; without any rank last. */
  readonly children: readonly Stretch[];
}

export interface Stacks {
  /** Of the main threads. */
  readonly stretches: readonly Stretch[];
  /** Of the others, each headed by its thread. */
  readonly threads: readonly Stretch[];
  /** Frames of installed code outside the person's. */
  readonly outside: readonly StackNode[];
}

export type Shows = (end: End) => boolean;

/** A frame while the tree is made. */
interface Draft {
  readonly frame: Frame & { readonly library: StackNode[] };
  readonly ends: End[];
  readonly children: Map<string, Draft>;
}

/** What a node's members do unless a node below says it. */
export interface Told {
  readonly state: StackState | undefined;
  readonly call: string;
}

/** The tree for those of whom `shows` is true. Installed code between two own frames is kept in the outer one. */
export function foldStacks(root: StackNode, names: MemberNames, shows: Shows = () => true): Stacks {
  const top = draft(root);
  fold(root, top, { state: undefined, call: "" }, names, shows);
  const drafts = [...top.children.values()];
  const others = { ...draft(NO_OWN_FRAME), ends: top.ends };
  const isThread = ({ frame }: Draft): boolean => frame.kind === "thread";
  const main = stretchesOf(
    drafts.filter((each) => !isThread(each)),
    "",
    names,
  );
  return {
    stretches: [...main, ...stretchesOf([others], "", names)],
    threads: stretchesOf(drafts.filter(isThread), "", names),
    outside: top.frame.library,
  };
}

function draft({ name, path, line, kind }: StackNode): Draft {
  return { frame: { name, path, line, kind, library: [] }, ends: [], children: new Map() };
}

/** Where those stand who run none of the person's code. */
const NO_OWN_FRAME = { name: "", path: "", line: 0, kind: "library", members: [], ranks: "", children: [] } as const;

function fold(node: StackNode, into: Draft, above: Told, names: MemberNames, shows: Shows): void {
  const deeper = new Set(node.children.flatMap(({ members }) => members));
  for (const member of node.members) {
    if (deeper.has(member)) continue;
    const end = endOf(member, above, names);
    if (shows(end)) into.ends.push(end);
  }
  for (const child of node.children) {
    const does = { state: child.state ?? above.state, call: child.call ?? above.call };
    if (isShown(child)) {
      const key = keyOf(child);
      const next = into.children.get(key) ?? draft(child);
      into.children.set(key, next);
      fold(child, next, does, names, shows);
    } else {
      if (isShown(node) || node.name === "") into.frame.library.push(child);
      fold(child, into, does, names, shows);
    }
  }
}

/** What one member does, where a node tells of all that stand there. */
export function endOf(member: string, told: Told, names: MemberNames): End {
  const isPaused = names.member(member)?.state === "paused";
  if (isPaused) return { member, state: "paused", call: "" };
  const state = told.state === "paused" && names.member(member) ? undefined : told.state;
  return { member, state: state ?? (told.call === "" ? "running" : "blocked"), call: told.call };
}

function isShown({ kind }: StackNode): boolean {
  return kind === "own" || kind === "thread";
}

function keyOf({ name, path, line }: { name: string; path: string; line: number }): string {
  return `${path}:${line}:${name}`;
}

function stretchesOf(drafts: Iterable<Draft>, parent: string, names: MemberNames): Stretch[] {
  const found: Stretch[] = [];
  for (const first of drafts) {
    const id = `${parent}\n${keyOf(first.frame)}`;
    const frames: Frame[] = [first.frame];
    let ends: readonly End[] = first.ends;
    let children: readonly Stretch[] = stretchesOf(first.children.values(), id, names);
    const [only] = children;
    if (children.length === 1 && only && ends.length === 0) {
      frames.push(...only.frames);
      ({ ends, children } = only);
    }
    const members = new Set([...ends.map(({ member }) => member), ...children.flatMap((each) => each.members)]);
    if (members.size > 0) found.push({ id, frames, members: [...members].sort(names.order), ends, children });
  }
  const isOfRanks = ({ members }: Stretch): boolean => members.some((id) => names.member(id)?.role === "rank");
  return found.sort(
    (a, b) =>
      Number(isOfRanks(b)) - Number(isOfRanks(a)) ||
      a.members.length - b.members.length ||
      names.order(a.members[0] ?? "", b.members[0] ?? ""),
  );
}

/** The innermost frame of a stretch. */
export function lastFrame({ frames }: Stretch): Frame {
  const frame = frames.at(-1);
  if (!frame) throw new Error("a stretch has a frame");
  return frame;
}

/** More siblings than this are put together. */
const MAX_SIBLINGS = 24;
const OUTLIERS_SHOWN = 12;
const BIGGEST_SHOWN = 4;

/** Siblings in three parts: the outliers, those between, which are shown on demand, and the biggest. */
export function gathered(siblings: readonly Stretch[]): [readonly Stretch[], readonly Stretch[], readonly Stretch[]] {
  if (siblings.length <= MAX_SIBLINGS) return [siblings, [], []];
  const from = siblings.length - BIGGEST_SHOWN;
  return [siblings.slice(0, OUTLIERS_SHOWN), siblings.slice(OUTLIERS_SHOWN, from), siblings.slice(from)];
}

/** In how many places of the person's code members stand. */
export function countPlaces(stretches: readonly Stretch[]): number {
  const own = stretches.filter((stretch) => lastFrame(stretch).name !== "");
  return own.reduce((sum, { ends, children }) => sum + Number(ends.length > 0) + countPlaces(children), 0);
}
