/** The groups and ranks that a job is known to have, and rank sets made of them. */

import type { Member } from "./protocol.js";
import type { RankFacts, RankSet } from "./rankSet.js";

/** One rank of a group, joined or not. */
export interface KnownRank {
  readonly group: string;
  readonly rank: number;
  /** The newest incarnation; `undefined`: it is still to join. */
  readonly member: Member | undefined;
}

export interface KnownGroup {
  readonly name: string;
  /** In the order of their numbers; with those that are still to join where the world's size is known. */
  readonly ranks: readonly KnownRank[];
}

/** Larger worlds than this are not filled up with ranks that have not joined. */
const LARGEST_WORLD = 65_536;

/** What `RankSet.contains` asks for. */
export function factsOf(member: Member): RankFacts {
  return {
    role: member.role,
    group: member.group,
    rank: member.rank ?? undefined,
    localRank: member.localRank ?? undefined,
    node: member.node ?? undefined,
    isFinal: member.isFinal,
  };
}

/** The members of a set; those of which it is not known yet whether they are count. */
export function membersIn(set: RankSet, members: readonly Member[]): Member[] {
  return members.filter((member) => set.contains(factsOf(member)) !== false);
}

/** For `sort`: the driver, then by group and rank. */
export function byRank(one: Member, other: Member): number {
  const roles = Number(other.role === "driver") - Number(one.role === "driver");
  return (
    roles || one.group.localeCompare(other.group) || (one.rank ?? -1) - (other.rank ?? -1) || one.number - other.number
  );
}

/** The groups of a job in the order in which they joined. Children and idle workers are no ranks of it. */
export function groupsOf(members: readonly Member[]): KnownGroup[] {
  const groups = new Map<string, Map<number, KnownRank>>();
  for (const member of members) {
    if (member.role !== "rank" || member.rank === null) continue;
    const ranks = groups.get(member.group) ?? new Map<number, KnownRank>();
    groups.set(member.group, ranks);
    const known = ranks.get(member.rank)?.member;
    if (!known || known.incarnation <= member.incarnation) {
      ranks.set(member.rank, { group: member.group, rank: member.rank, member });
    }
    for (let rank = 0; rank < Math.min(member.worldSize ?? 0, LARGEST_WORLD); rank++) {
      if (!ranks.has(rank)) ranks.set(rank, { group: member.group, rank, member: undefined });
    }
  }
  return [...groups].map(([name, ranks]) => ({ name, ranks: [...ranks.values()].sort((a, b) => a.rank - b.rank) }));
}

/**
 * The shortest set of the picked ranks: `2` or `0-3,5` where there is one group, else `actor/0-3,5`; a whole group is
 * `actor/all` and every rank `all`. Empty: nothing is picked.
 */
export function setOf(picked: Iterable<KnownRank>, groups: readonly KnownGroup[], hasDriver = false): string {
  const numbers = new Map<string, Set<number>>();
  for (const { group, rank } of picked) numbers.set(group, (numbers.get(group) ?? new Set()).add(rank));
  const isWhole = (group: KnownGroup) => numbers.get(group.name)?.size === group.ranks.length;
  const driver = hasDriver ? ["driver"] : [];
  if (numbers.size > 0 && groups.every(isWhole)) return ["all", ...driver].join(",");
  const parts = groups
    .filter((group) => numbers.has(group.name))
    .map((group) => {
      const isBare = groups.length === 1 || !canBeNamed(group.name);
      if (isBare || !isWhole(group)) {
        const text = stretches([...(numbers.get(group.name) ?? [])]);
        return isBare ? text : `${group.name}/${text}`;
      }
      return `${group.name}/all`;
    });
  // a bare number after `actor/0` would be one of actor
  const isBare = (part: string) => !part.includes("/");
  return [...parts.filter(isBare), ...parts.filter((part) => !isBare(part)), ...driver].join(",");
}

/** The set that names one member: `actor/2`, `2` where there is one group, `driver`; `undefined`: it has no rank yet. */
export function setOfMember(member: Member, members: readonly Member[]): string | undefined {
  if (member.role === "driver") return "driver";
  if (member.rank === null) return undefined;
  const isOnly = groupsOf(members).every((group) => group.name === member.group);
  return isOnly || !canBeNamed(member.group) ? String(member.rank) : `${member.group}/${member.rank}`;
}

/** `0-3,5`, and `0-28:4` for four and more at the same distance. */
function stretches(numbers: number[]): string {
  numbers.sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < numbers.length;) {
    const first = numbers[at] ?? 0;
    const step = (numbers[at + 1] ?? first) - first;
    let end = at + 1;
    while (end < numbers.length && (numbers[end] ?? 0) - (numbers[end - 1] ?? 0) === step) end++;
    const count = end - at;
    const last = numbers[end - 1] ?? first;
    if (step === 1 && count > 1) parts.push(`${first}-${last}`);
    else if (count >= 4) parts.push(`${first}-${last}:${step}`);
    else {
      parts.push(String(first));
      end = at + 1;
    }
    at = end;
  }
  return parts.join(",");
}

/** Whether a rank set can name the group. */
function canBeNamed(group: string): boolean {
  return group !== "" && group === group.trim() && !/[,\r\n]/.test(group);
}
