import type { Member } from "../../../extension/src/core/protocol";

let joined = 0;

/** A running rank, but for what a test says of it. */
export function member(facts: Partial<Member> = {}): Member {
  const number = joined++;
  const group = facts.group ?? "actor";
  const role = facts.role ?? "rank";
  const rank = facts.rank === undefined ? (role === "rank" ? 0 : null) : facts.rank;
  return {
    id: `m${number}`,
    number,
    label: role === "driver" ? "driver" : `${group} ${rank ?? "?"} · node-0`,
    role,
    group: role === "driver" ? "" : group,
    rank,
    isFinal: true,
    localRank: rank,
    worldSize: null,
    node: 0,
    host: "here",
    pid: 1000 + number,
    state: "running",
    isArmed: false,
    isGreyed: false,
    incarnation: 0,
    session: "",
    hasSession: false,
    threadIds: [],
    stopped: null,
    ending: "",
    ...facts,
  };
}

/** Ranks 0 to `size - 1` of a group. */
export function ranksOf(group: string, size: number): Member[] {
  return Array.from({ length: size }, (_, rank) => member({ group, rank }));
}
