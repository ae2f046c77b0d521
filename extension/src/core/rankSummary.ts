/** The line above the Ranks view: `4 ranks: 1 paused, 3 in all_reduce`. */

import { isBlocked, isLive, isPending, isStuck, type Standing } from "./memberText.js";
import type { Member } from "./protocol.js";

/** Blocking calls told by name; the rest is counted together. */
const MAX_CALLS = 3;

export type StandingOf = (member: Member) => Standing;

/** How the newest incarnations of all ranks stand; the driver when there is no rank. */
export function summarise(ranks: readonly Member[], driver: Member | undefined, standingOf: StandingOf): string {
  if (ranks.length > 0) return `${headOf(ranks)}: ${countsOf(ranks, standingOf).join(", ")}`;
  return driver ? `No rank has joined yet: driver ${driver.state}` : "No rank has joined yet";
}

/** `4 ranks`, `3 of 4 ranks joined`, `4 ranks (2 provisional)`. */
export function headOf(ranks: readonly Member[]): string {
  const groups = new Map<string, { joined: number; world: number }>();
  for (const { group, worldSize } of ranks) {
    const seen = groups.get(group) ?? { joined: 0, world: 0 };
    groups.set(group, { joined: seen.joined + 1, world: Math.max(seen.world, worldSize ?? 0) });
  }
  const expected = [...groups.values()].reduce((sum, { joined, world }) => sum + Math.max(joined, world), 0);
  const provisional = ranks.filter((member) => !member.isFinal && isLive(member)).length;
  const suffix = provisional > 0 ? ` (${provisional} provisional)` : "";
  if (expected > ranks.length) return `${ranks.length} of ${expected} ranks joined${suffix}`;
  return `${ranks.length} rank${ranks.length === 1 ? "" : "s"}${suffix}`;
}

/** What needs a person first. */
function countsOf(ranks: readonly Member[], standingOf: StandingOf): string[] {
  const states = new Map<string, number>();
  const calls = new Map<string, number>();
  for (const member of ranks) {
    const standing = standingOf(member);
    if (isStuck(member)) add(states, "stuck");
    else if (member.barrier) add(states, "at barrier");
    else if (isPending(member)) add(states, "pending");
    else if (isBlocked(member, standing)) add(calls, standing.frame?.call ?? "");
    else add(states, member.state);
  }
  const told = [...calls].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const others = told.slice(MAX_CALLS).reduce((sum, [, count]) => sum + count, 0);
  return [
    ...counted(states, ["stuck", "paused", "at barrier", "pending", "crashed", "lost"]),
    ...told.slice(0, MAX_CALLS).map(([call, count]) => `${count} in ${call}`),
    ...(others > 0 ? [`${others} in other calls`] : []),
    ...counted(states, ["running", "starting", "exited"]),
  ];
}

function counted(states: ReadonlyMap<string, number>, names: readonly string[]): string[] {
  return names.filter((name) => states.has(name)).map((name) => `${states.get(name) ?? 0} ${name}`);
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
