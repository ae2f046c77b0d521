/** Merged stacks and comparisons, as the hub tells of them. */

import type { CompareRow, Comparison, Member, MergedStacks, StackNode } from "../../../extension/src/core/protocol";

type Kind = StackNode["kind"];

/** One stack: `train.py train:42` is an own frame, `+torch/c10d.py all_reduce:3` a library's, `[name]` a thread. */
export interface Standing {
  readonly members: readonly string[];
  readonly frames: readonly string[];
  readonly call?: string;
  readonly state?: StackNode["state"];
}

interface Draft extends Omit<StackNode, "children" | "members"> {
  members: string[];
  children: Draft[];
}

/** The tree of stacks as the hub makes it. */
export function merged(standings: readonly Standing[], facts: Partial<MergedStacks> = {}): MergedStacks {
  const tree = node("", "", 0, "thread");
  for (const { members, frames, call, state } of standings) {
    const own = frames.map((frame) => frame.startsWith("+")).lastIndexOf(false);
    let at = tree;
    include(at, members);
    frames.forEach((text, depth) => {
      const [name, path, line, kind] = read(text);
      let next = at.children.find((child) => child.name === name && child.path === path && child.line === line);
      if (!next) {
        next = node(name, path, line, kind);
        at.children.push(next);
      }
      include(next, members);
      const does = state ?? (call === undefined ? "running" : "blocked");
      if (depth === own) Object.assign(next, { state: does, ...(call !== undefined && { call }) });
      at = next;
    });
  }
  return { tree, late: [], failed: {}, native: [], count: tree.members.length, seconds: 0.01, ...facts };
}

function node(name: string, path: string, line: number, kind: Kind): Draft {
  return { name, path, line, kind, members: [], ranks: "", children: [] };
}

function include(draft: Draft, members: readonly string[]): void {
  draft.members = [...new Set([...draft.members, ...members])];
}

function read(text: string): [string, string, number, Kind] {
  if (text.startsWith("[")) return [text.slice(1, -1), "", 0, "thread"];
  const [, plus, path = "", name = "", line = "0"] = /^(\+?)(\S+) (.+):(\d+)$/.exec(text) ?? [];
  const folder = plus === "+" ? "/venv/lib/python3.11/site-packages" : "/home/me/project";
  return [name, `${folder}/${path}`, Number(line), plus === "+" ? "library" : "own"];
}

/** A row that a member answers. */
export function answer(member: Member, facts: Partial<CompareRow> = {}): CompareRow {
  const { id, label, rank, group, node: at, state } = member;
  return {
    member: id,
    label,
    rank,
    group,
    node: at,
    state,
    kind: "number",
    text: "1",
    type: "int",
    value: 1,
    ...facts,
  };
}

/** Rows with equal texts are one group, the largest first. */
export function comparison(rows: readonly CompareRow[], facts: Partial<Comparison> = {}): Comparison {
  const alike = new Map<string, CompareRow[]>();
  for (const row of rows) alike.set(row.text, [...(alike.get(row.text) ?? []), row]);
  const groups = [...alike.values()]
    .sort((a, b) => b.length - a.length)
    .map((same) => ({
      text: same[0]?.text ?? "",
      kind: same[0]?.kind ?? "text",
      ranks: same.map(({ rank }) => rank).join(","),
      members: same.map(({ member }) => member),
      count: same.length,
      isMajority: same.length * 2 > rows.length,
    }));
  return { expression: "loss", rows, groups, late: [], message: "", ...facts };
}
