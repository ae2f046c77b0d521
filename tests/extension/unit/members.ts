/** Members of a job, as the hub tells of them. */

import type { Member, TopFrame } from "../../../extension/src/core/protocol";

let joined = 0;

/** A running rank, but for what is said otherwise; each has joined after the one before. */
export function member(facts: Partial<Member> = {}): Member {
  const number = facts.number ?? joined++;
  const group = facts.group ?? "actor";
  const rank = facts.rank === undefined ? 0 : facts.rank;
  return {
    id: `m${number}`,
    number,
    label: rank === null ? group : `${group} ${rank}`,
    role: "rank",
    group,
    rank,
    isFinal: true,
    localRank: rank,
    worldSize: null,
    node: 0,
    host: "host-a",
    pid: 4000 + number,
    state: "running",
    isArmed: false,
    isGreyed: false,
    incarnation: 0,
    session: `${group}/${rank ?? "all"}`,
    hasSession: true,
    threadIds: [],
    stopped: null,
    ending: "",
    ...facts,
  };
}

export function ranks(count: number, facts: Partial<Member> = {}): Member[] {
  return Array.from({ length: count }, (_, rank) => member({ rank, ...facts }));
}

export function driver(facts: Partial<Member> = {}): Member {
  return member({ role: "driver", label: "driver train.py", group: "", rank: null, session: "", ...facts });
}

export function child(parent: Member, facts: Partial<Member> = {}): Member {
  const pid = facts.pid ?? 9000 + joined;
  const { group, rank, session } = parent;
  return member({ role: "child", label: `${parent.label} child ${pid}`, group, rank, session, pid, ...facts });
}

export function paused(rank: Member, reason = "breakpoint", text?: string): Member {
  return { ...rank, state: "paused", isArmed: true, stopped: { reason, ...(text !== undefined && { text }) } };
}

export function frame(facts: Partial<TopFrame> = {}): TopFrame {
  return { name: "step", path: "/home/me/project/train.py", line: 42, call: "", ...facts };
}
