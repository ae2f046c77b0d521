/** How one member of the job reads: in the Ranks view, in the list to find it, as the name of its session. */

import { listed, pendingText } from "./outcome.js";
import type { Member, TopFrame } from "./protocol.js";

/** What is known of a member beside the hub's facts. */
export interface Standing {
  /** `undefined`: not asked yet; `null`: it runs none of the person's code. */
  readonly frame?: TopFrame | null | undefined;
  /** It was asked where it is and has not answered in time. */
  readonly isLate?: boolean;
  /** How old the hub's facts are, seconds. */
  readonly age?: number;
}

/** A codicon and the id of its theme colour. */
export interface Icon {
  readonly name: string;
  readonly color?: string;
}

export function isLive(member: Member): boolean {
  return member.state === "starting" || member.state === "running" || member.state === "paused";
}

/** `actor 2`: the node has its own level, or its own line in the tooltip. */
export function shortLabel(member: Member): string {
  return member.node === null ? member.label : member.label.replace(` · node-${member.node}`, "");
}

/**
 * `train.py:42 in step · breakpoint`, `in all_reduce · train.py:42`, `crashed: ValueError: bad batch`. What the icon does
 * not say comes first: a narrow view cuts the end.
 */
export function describe(member: Member, standing: Standing = {}): string {
  const frame = isLive(member) ? standing.frame : undefined;
  const parts = [stateOf(member, standing)];
  if (frame && member.state === "paused" && !member.barrier) {
    parts.splice(0, 1, placeOf(frame, false), reasonOf(member) || "paused");
  } else if (
    frame &&
    member.state === "running" &&
    !isBlocked(member, standing) &&
    !member.pending &&
    !isStuck(member)
  ) {
    parts.splice(0, 1, placeOf(frame, false));
  } else if (frame) {
    parts.push(placeOf(frame, isBlocked(member, standing) || isStuck(member)));
  }
  if (member.heldSeconds) parts.push(`goes on in ${duration(Math.max(0, member.heldSeconds - (standing.age ?? 0)))}`);
  if (standing.isLate && isLive(member)) parts.push("no answer");
  if (member.isGreyed && isLive(member)) parts.push("never stops");
  if (!member.isFinal && member.role === "rank") parts.push("provisional");
  return parts.join(" · ");
}

/** `45 s`, `29 min`. */
export function duration(seconds: number): string {
  return seconds < 60 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}

function stateOf(member: Member, standing: Standing): string {
  switch (member.state) {
    case "paused":
      return member.barrier ? reasonOf(member) : ["paused", reasonOf(member)].filter(Boolean).join(" · ");
    case "running":
      if (member.pending) return pendingOf(member, standing);
      if (member.stuck) return member.stuck;
      return isBlocked(member, standing) ? `in ${standing.frame?.call ?? ""}` : "running";
    case "crashed":
      return member.ending ? `crashed: ${member.ending}` : "crashed";
    case "starting":
      return "starting";
    default:
      return member.ending ? `${member.state}: ${member.ending}` : member.state;
  }
}

/** `in all_reduce, waits for 3 · step pending`. */
function pendingOf(member: Member, standing: Standing): string {
  const call = isBlocked(member, standing) ? `in ${standing.frame?.call ?? ""}` : "";
  const where = [call, waitsFor(member, member.pending?.waitsFor ?? [])].filter(Boolean).join(", ");
  return [where, pendingText(member.pending?.action ?? "")].filter(Boolean).join(" · ");
}

/** `waits for 1, 3`: of the member's own group the numbers are enough. */
function waitsFor({ group }: Member, labels: readonly string[]): string {
  if (labels.length === 0) return "";
  const names = labels.map((label) => (label.startsWith(`${group} `) ? label.slice(group.length + 1) : label));
  const short = names.map((name) => name.replace(/ · node-\d+$/, ""));
  return `waits for ${listed(short, MAX_AWAITED)}`;
}

/** Whether it hangs, or hangs others. */
export function isStuck(member: Member): boolean {
  return member.state === "running" && Boolean(member.stuck);
}

/** Whether it was told to stop or step, and has not yet. */
export function isPending(member: Member): boolean {
  return member.state === "running" && Boolean(member.pending);
}

/** Whether it waits in a call that others have to join or to answer. */
export function isBlocked(member: Member, standing: Standing): boolean {
  return member.state === "running" && Boolean(standing.frame?.call);
}

/** Why it is paused; empty for a plain pause. */
function reasonOf(member: Member): string {
  const { stopped, barrier } = member;
  if (barrier) return ["at barrier", waitsFor(member, barrier)].filter(Boolean).join(", ");
  if (!stopped) return "";
  if (stopped.reason === "exception") return stopped.text ?? stopped.description ?? "exception";
  return stopped.reason === "pause" ? "" : stopped.reason;
}

function placeOf(frame: TopFrame, isShort: boolean): string {
  const place = `${fileName(frame.path)}:${frame.line}`;
  return isShort || frame.name.startsWith("<") ? place : `${place} in ${frame.name}`;
}

function fileName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}

/** The same in words, for a screen reader. */
export function speak(member: Member, standing: Standing = {}): string {
  const frame = isLive(member) ? standing.frame : undefined;
  const parts = [shortLabel(member), stateOf(member, standing).replace(" · ", ", ")];
  if (frame) parts.push(`${fileName(frame.path)} line ${frame.line}`);
  if (frame && !frame.name.startsWith("<")) parts.push(`in ${frame.name}`);
  if (standing.isLate && isLive(member)) parts.push("no answer");
  if (member.isGreyed) parts.push("never stops");
  if (!member.isFinal && member.role === "rank") parts.push("rank is provisional");
  return parts.join(", ");
}

const ICONS: Readonly<Record<Member["state"], Icon>> = {
  starting: { name: "circle-outline", color: "disabledForeground" },
  running: { name: "play-circle", color: "debugIcon.startForeground" },
  paused: { name: "debug-pause", color: "debugIcon.pauseForeground" },
  exited: { name: "circle-slash", color: "disabledForeground" },
  crashed: { name: "error", color: "problemsErrorIcon.foreground" },
  lost: { name: "debug-disconnect", color: "problemsWarningIcon.foreground" },
};
const STUCK: Icon = { name: "warning", color: "problemsWarningIcon.foreground" };
const BLOCKED: Icon = { name: "watch", color: "charts.yellow" };
const MAX_AWAITED = 4;

export function iconOf(member: Member, standing: Standing = {}): Icon {
  const isWaiting = isBlocked(member, standing) || isPending(member);
  const icon = isStuck(member) ? STUCK : isWaiting ? BLOCKED : ICONS[member.state];
  return member.isGreyed ? { name: icon.name, color: "disabledForeground" } : icon;
}

/** Words for `when` clauses: what it is, and what it does. */
export function contextOf(member: Member): string {
  const does = {
    starting: "starting",
    running: "running",
    paused: "paused",
    exited: "ended",
    crashed: "ended",
    lost: "ended",
  };
  if (member.isGreyed && isLive(member)) return `${member.role} greyed`;
  return `${member.role} ${isPending(member) ? "pending" : does[member.state]}`;
}

/** The facts as a Markdown list; what a job's programs chose is escaped. */
export function factsOf(member: Member, standing: Standing = {}): string {
  const { frame } = standing;
  const of = member.worldSize === null ? "" : ` of ${member.worldSize}`;
  const facts: [string, string | number | null | undefined][] = [
    ["state", stateOf(member, standing)],
    ["group", member.group],
    ["rank", member.rank === null ? null : `${member.rank}${of}${member.isFinal ? "" : " (provisional)"}`],
    ["local rank", member.localRank],
    ["node", member.node === null ? member.host : `${member.node} · ${member.host}`],
    ["pid", member.pid],
    ["debugger", isLive(member) ? (member.isArmed ? "attached" : "not attached: full speed") : null],
    ["stops", member.isGreyed ? "never: it is outside `ranks` of launch.json" : null],
    ["incarnation", member.incarnation || null],
    ["frame", frame ? `${frame.name} · ${frame.path}:${frame.line}${frame.call && ` · in ${frame.call}`}` : null],
  ];
  const lines = facts
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `- ${name}: ${name === "stops" ? String(value) : escaped(String(value))}`);
  return [`**${escaped(member.label)}**`, "", ...lines].join("\n");
}

function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!|<>&~$]/g, "\\$&").replace(/\s*\n\s*/g, " ");
}
