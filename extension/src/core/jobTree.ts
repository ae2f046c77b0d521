/** One job's members in the order in which people look for them: who is where, who replaced whom, who is whose child. */

import { isLive, shortLabel } from "./memberText.js";
import type { Member } from "./protocol.js";

/** A rank or driver with what belongs under it. */
export interface Place {
  readonly member: Member;
  /** Older incarnations of the same rank, newest first. */
  readonly replaced: readonly Member[];
  readonly children: Place[];
  /** Children that have ended well, which are only counted. */
  endedChildren: number;
}

export interface NodeOfGroup {
  readonly node: number;
  readonly host: string;
  readonly ranks: readonly Place[];
}

export interface Group {
  readonly name: string;
  readonly label: string;
  readonly ranks: readonly Place[];
  /** Empty while the job has one node. */
  readonly nodes: readonly NodeOfGroup[];
}

export interface JobTree {
  readonly drivers: readonly Place[];
  /** In the order of first joining. */
  readonly groups: readonly Group[];
  /** Children whose parent is not known. */
  readonly orphans: readonly Place[];
  /** Ray workers that are nothing yet. */
  readonly idle: number;
}

export function arrange(members: readonly Member[]): JobTree {
  const joined = [...members].sort((a, b) => a.number - b.number);
  const byRole = (role: Member["role"]): Member[] => joined.filter((member) => member.role === role);
  const drivers = byRole("driver").map((member) => place(member));
  const hasNodes = new Set(joined.map((member) => member.node ?? 0)).size > 1;
  const groups = [...grouped(byRole("rank"), (member) => member.group)].map(([name, found]) =>
    groupOf(name, found, hasNodes),
  );
  const orphans = adopt(byRole("child"), [...drivers, ...groups.flatMap((group) => group.ranks)]);
  return { drivers, groups, orphans, idle: byRole("idle").filter(isLive).length };
}

/** Everybody who is shown as such, from top to bottom. */
export function inOrder({ drivers, groups, orphans }: JobTree): Member[] {
  const withChildren = (places: readonly Place[]): Member[] =>
    places.flatMap(({ member, children }) => [member, ...withChildren(children)]);
  return withChildren([...drivers, ...groups.flatMap((group) => group.ranks), ...orphans]);
}

function place(member: Member, replaced: readonly Member[] = []): Place {
  return { member, replaced, children: [], endedChildren: 0 };
}

function groupOf(name: string, members: readonly Member[], hasNodes: boolean): Group {
  const ranks = [...grouped(members, (member) => member.rank ?? `? ${member.id}`).values()].flatMap(newest);
  ranks.sort((a, b) => (a.member.rank ?? Infinity) - (b.member.rank ?? Infinity) || a.member.number - b.member.number);
  const nodes = hasNodes ? [...grouped(ranks, ({ member }) => member.node ?? 0)] : [];
  return {
    name,
    label: name || labelOfNameless(members),
    ranks,
    nodes: nodes
      .map(([node, found]) => ({ node, host: found[0]?.member.host ?? "", ranks: found }))
      .sort((a, b) => a.node - b.node),
  };
}

function labelOfNameless([first]: readonly Member[]): string {
  return (first && shortLabel(first).replace(/ \d+$/, "")) ?? "ranks";
}

/** Those of one rank that live, else the last one; the others were replaced by the newest. */
function newest(sameRank: readonly Member[]): Place[] {
  const live = sameRank.filter(isLive);
  const heads = live.length > 0 ? live : sameRank.slice(-1);
  const last = heads.at(-1);
  const replaced = sameRank.filter((member) => !heads.includes(member)).reverse();
  return heads.map((member) => place(member, member === last ? replaced : []));
}

/** Put children under their parents, which their labels name (`actor 2 child 4711`); returns those without one. */
function adopt(children: readonly Member[], parents: readonly Place[]): Place[] {
  const byLabel = new Map(parents.map((parent) => [parent.member.label, parent]));
  const orphans: Place[] = [];
  for (const member of children) {
    const at = member.label.lastIndexOf(" child ");
    const parent = at < 0 ? undefined : byLabel.get(member.label.slice(0, at));
    if (parent && member.state === "exited") {
      parent.endedChildren += 1;
      continue;
    }
    const child = place(member);
    byLabel.set(member.label, child);
    (parent?.children ?? orphans).push(child);
  }
  return orphans.filter(({ member }) => member.state !== "exited");
}

function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
