/** What the editor shows beside a line: the ranks of its breakpoints, how they are bound, and who stands there. */

import { readCondition } from "./breakpointRanks.js";
import { listed } from "./outcome.js";
import type { BreakpointStatus, Member } from "./protocol.js";
import { byRank } from "./rankGroups.js";
import type { RankSetNames } from "./rankSet.js";
import { inWords, namesOf } from "./rankWords.js";

/** A breakpoint of the editor, as far as this matters. */
export interface LineBreakpoint {
  /** From 1. */
  readonly line: number;
  readonly isEnabled: boolean;
  readonly condition: string | undefined;
}

/** One breakpoint with the hub's account of it; `undefined`: no job runs, or the hub has not been told of it. */
export interface ShownBreakpoint extends LineBreakpoint {
  readonly ranks: string | undefined;
  readonly isBarrier?: boolean;
  readonly fault: string | undefined;
  readonly status: BreakpointStatus | undefined;
}

/** What matters of the job that is looked at. */
export interface ShownJob {
  readonly members: readonly Member[];
}

export type Tone = "quiet" | "warning" | "standing";

export interface LineText {
  readonly text: string;
  readonly tone: Tone;
}

const MOST_LISTED = 20;
const MOST_AWAITED = 4;

/** A file's breakpoints with the hub's account of each; `statuses` are those of the file. */
export function shownBreakpoints(
  breakpoints: readonly LineBreakpoint[],
  statuses: readonly BreakpointStatus[],
  names: RankSetNames,
): ShownBreakpoint[] {
  const read = breakpoints.map((breakpoint) => {
    const { ranks, isBarrier, fault } = readCondition(breakpoint.condition, names);
    return { ...breakpoint, ranks, isBarrier, fault: fault?.message, status: undefined };
  });
  const matches = matched(
    read.filter(({ isEnabled }) => isEnabled),
    statuses,
  );
  return read.map((breakpoint) => {
    const status = matches.get(breakpoint);
    // a breakpoint's "mode" limits its ranks, or makes a barrier of it, as well; only the hub sees it
    const ranks = breakpoint.ranks ?? (status?.ranks === "" ? undefined : status?.ranks);
    return { ...breakpoint, ranks, isBarrier: breakpoint.isBarrier || status?.isBarrier === true, status };
  });
}

interface Asked {
  readonly line: number;
  readonly ranks: string | undefined;
}

/**
 * By line where it is the asked one. The editor moves a breakpoint when the hub answers with another line, and when text
 * above it is edited; then by their order in the file, else by the nearest line with the same ranks.
 */
function matched<T extends Asked>(
  asked: readonly T[],
  statuses: readonly BreakpointStatus[],
): Map<T, BreakpointStatus> {
  const matches = new Map<T, BreakpointStatus>();
  const mine = [...asked].sort((a, b) => a.line - b.line);
  const theirs = [...statuses].sort((a, b) => a.line - b.line);
  const isSame = (one: T, other: BreakpointStatus) => one.ranks === undefined || one.ranks === other.ranks.trim();
  const areInOrder = mine.length === theirs.length && mine.every((one, at) => theirs[at] && isSame(one, theirs[at]));
  if (areInOrder) {
    for (const [at, one] of mine.entries()) if (theirs[at]) matches.set(one, theirs[at]);
    return matches;
  }
  const left = new Set(theirs);
  const take = (one: T, fits: (other: BreakpointStatus) => boolean) => {
    const distance = (other: BreakpointStatus) => Math.abs(other.line - one.line);
    const [best] = [...left].filter(fits).sort((a, b) => distance(a) - distance(b));
    if (!best) return;
    matches.set(one, best);
    left.delete(best);
  };
  for (const one of mine) take(one, (other) => other.line === one.line && isSame(one, other));
  for (const one of mine) if (!matches.has(one)) take(one, (other) => isSame(one, other));
  return matches;
}

/** At most four characters for the icon beside the breakpoints of a line; `undefined`: no icon. */
export function iconText(breakpoints: readonly ShownBreakpoint[], job: ShownJob | undefined): string | undefined {
  const texts = new Set(breakpoints.map(({ ranks }) => (ranks === undefined ? (job ? "≡" : "") : shortened(ranks))));
  texts.delete("");
  return texts.size > 1 ? "…" : [...texts][0];
}

function shortened(ranks: string): string {
  const set = ranks.replaceAll(/\s/g, "");
  if (set === "all") return "≡";
  if (set === "driver") return "D";
  const scope = /^(local|node):(.*)$/.exec(set);
  const text = scope
    ? `${scope[1] === "local" ? "L" : "N"}${scope[2] ?? ""}`
    : set.replace(/^[^,]*\/(?=[0-9][^/]*$)/, "");
  if (text.length <= 3 || /^[0-9]+-[0-9]+$/.test(text)) return text.length <= 5 ? text : `${text.slice(0, 2)}…`;
  return `${/^[0-9]+/.exec(text)?.[0].slice(0, 2) ?? text.slice(0, 2)}…`;
}

/** What stands behind the end of a line; `undefined`: nothing. */
export function lineText(
  breakpoints: readonly ShownBreakpoint[],
  standing: readonly Member[],
  job: ShownJob | undefined,
): LineText | undefined {
  const parts = breakpoints
    .map((breakpoint) => breakpointText(breakpoint, job, standing.length > 0))
    .filter((part) => part.text !== "");
  const isWarning = parts.some(({ tone }) => tone === "warning");
  const texts = parts.map(({ text }) => text);
  const held = standing.find(({ barrier }) => barrier)?.barrier ?? [];
  const waiting = held.length > 0 ? ` · waits for ${listed(held, MOST_AWAITED)}` : "";
  if (standing.length > 0) texts.unshift(`◀ ${namesOf([...standing].sort(byRank))}${waiting}`);
  if (texts.length === 0) return undefined;
  return { text: texts.join(" │ "), tone: standing.length > 0 ? "standing" : isWarning ? "warning" : "quiet" };
}

/** `isBrief`: what is as it should be is left to the hover. */
function breakpointText(
  { ranks, isBarrier = false, fault, status, isEnabled }: ShownBreakpoint,
  job: ShownJob | undefined,
  isBrief: boolean,
): LineText {
  const set = ranks === undefined ? "" : `@${ranks}${isBarrier ? " barrier" : ""}`;
  if (fault !== undefined) return { text: fault, tone: "warning" };
  if (!isEnabled || !job || !status) return { text: set, tone: "quiet" };
  if (status.error) return { text: said(set, oneLine(status.error)), tone: "warning" };
  const { joined, verified, pending } = status;
  if (joined.length === 0 && pending === 0) {
    if (!hasRanks(job)) return { text: said(set, "no rank has joined yet"), tone: "quiet" };
    return ranks === undefined ? { text: "", tone: "quiet" } : { text: nobodyIn(ranks), tone: "warning" };
  }
  const isAsItShouldBe = verified.length === joined.length && pending === 0;
  const bound =
    joined.length > 0 && !(isBrief && isAsItShouldBe) ? `bound on ${verified.length} of ${joined.length}` : "";
  const waiting = pending > 0 ? `${pending} pending` : "";
  const hits = sum(status.hits);
  return { text: said(set, bound, waiting, hits > 0 ? `hit ${hits}×` : ""), tone: "quiet" };
}

/** Said where a set holds no rank of the job. */
export function nobodyIn(ranks: string): string {
  return `no rank of this job is in @${ranks}`;
}

/** What a hover over the line lists, as plain sentences; a line that is an item of a list begins with `- `. */
export function hoverLines(
  breakpoints: readonly ShownBreakpoint[],
  standing: readonly Member[],
  job: ShownJob | undefined,
): string[] {
  const lines: string[] = [];
  if (standing.length > 0) {
    lines.push(
      "Stopped here:",
      ...capped([...standing].sort(byRank).map((member) => `- ${member.label}${reasonOf(member)}`)),
    );
  }
  for (const { ranks, isBarrier = false, fault, status, isEnabled } of breakpoints) {
    const words = fault === undefined ? inWords(ranks) : (ranks ?? "");
    lines.push(
      `${isBarrier ? "Barrier" : "Breakpoint"} of ${words}${isEnabled ? "" : " (disabled)"}${status || fault !== undefined ? ":" : ""}`,
    );
    if (fault !== undefined) lines.push(`- ${fault}`);
    if (!status || !isEnabled) continue;
    if (status.error) lines.push(`- ${oneLine(status.error)}`);
    lines.push(...capped(memberLines(status, job?.members ?? [])));
    if (status.pending > 0) lines.push(`- ${status.pending} still to join or to answer`);
    else if (status.joined.length === 0 && ranks !== undefined) lines.push(`- ${nobodyIn(ranks)}`);
  }
  return lines;
}

/** Those that were hit first, then those where it is not bound. */
function memberLines(status: BreakpointStatus, members: readonly Member[]): string[] {
  const known = new Map(members.map((member) => [member.id, member]));
  const verified = new Set(status.verified);
  const ids = [...new Set([...status.joined, ...Object.keys(status.hits)])];
  const hits = (id: string) => status.hits[id] ?? 0;
  const order = (a: string, b: string) => {
    const [one, other] = [known.get(a), known.get(b)];
    const ranks = one && other ? byRank(one, other) : Number(!one) - Number(!other);
    return hits(b) - hits(a) || Number(verified.has(a)) - Number(verified.has(b)) || ranks;
  };
  return ids.sort(order).map((id) => {
    const member = known.get(id);
    const isHere = status.joined.includes(id);
    const state = verified.has(id) ? "bound" : !isHere ? "gone" : status.error ? "failed" : "pending";
    return `- ${member?.label ?? id}: ${state}${hits(id) > 0 ? `, hit ${hits(id)}×` : ""}`;
  });
}

function capped(lines: readonly string[]): string[] {
  if (lines.length <= MOST_LISTED) return [...lines];
  return [...lines.slice(0, MOST_LISTED), `- … and ${lines.length - MOST_LISTED} more`];
}

function reasonOf(member: Member): string {
  const reason = member.stopped?.description ?? member.stopped?.reason;
  return reason ? `: ${oneLine(reason)}` : "";
}

function hasRanks(job: ShownJob): boolean {
  return job.members.some(({ role }) => role === "rank");
}

function said(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

function sum(hits: Readonly<Record<string, number>>): number {
  return Object.values(hits).reduce((total, count) => total + count, 0);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
