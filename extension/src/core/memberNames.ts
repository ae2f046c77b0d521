/** How the members of a job are named in few words, whatever number of them. */

import type { Member } from "./protocol.js";
import { byRank, groupsOf, type KnownGroup, type KnownRank, setOf } from "./rankGroups.js";

/** Of one moment: made anew when the members change. */
export class MemberNames {
  private readonly byId: ReadonlyMap<string, Member>;
  private readonly places: ReadonlyMap<string, number>;
  private readonly groups: readonly KnownGroup[];

  constructor(members: readonly Member[]) {
    this.byId = new Map(members.map((member) => [member.id, member]));
    this.places = new Map([...members].sort(byRank).map(({ id }, at) => [id, at]));
    this.groups = groupsOf(members);
  }

  member(id: string): Member | undefined {
    return this.byId.get(id);
  }

  /** What the member is called; its id where it is not known. */
  label(id: string): string {
    return this.byId.get(id)?.label ?? id;
  }

  /** `0-2,5`, `actor/0-3` where there are several groups, `all`, `driver`; what has no rank by its label. */
  setOf(ids: Iterable<string>): string {
    const picked: KnownRank[] = [];
    const others: string[] = [];
    let hasDriver = false;
    for (const id of ids) {
      const member = this.byId.get(id);
      if (member?.role === "rank" && member.rank !== null) {
        picked.push({ group: member.group, rank: member.rank, member });
      } else if (member?.role === "driver") hasDriver = true;
      else others.push(this.label(id));
    }
    const set = setOf(picked, this.groups, hasDriver);
    return [...(set === "" ? [] : [set]), ...others].join(",");
  }

  /** `0-2,5 (4)`: the set and how many it holds, the set cut to `width` characters. */
  counted(ids: readonly string[], width = Infinity): string {
    const text = cut(this.setOf(ids), width);
    return ids.length === 1 ? text : `${text} (${grouped(ids.length)})`;
  }

  /** `4 ranks`; where none of them is a rank `1 process`. */
  amount(ids: Iterable<string>): string {
    const roles = [...ids].map((id) => this.byId.get(id)?.role);
    const ranks = roles.filter((role) => role === "rank").length;
    if (ranks > 0) return countOf(ranks, "rank");
    return roles.length === 1 ? "1 process" : `${grouped(roles.length)} processes`;
  }

  /** For `sort`: the driver, then by group and rank; whoever is not known comes last. */
  readonly order = (one: string, other: string): number => this.placeOf(one) - this.placeOf(other);

  private placeOf(id: string): number {
    return this.places.get(id) ?? this.places.size;
  }
}

/** A text that is too long ends with `…`. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** `1,024`. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 rank`, `1,024 ranks`. */
export function countOf(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** The last part of a path. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}
