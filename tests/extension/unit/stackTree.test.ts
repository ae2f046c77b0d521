import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { filterInWords, idsIn, NO_FILTER } from "../../../extension/src/core/memberFilter";
import { MemberNames } from "../../../extension/src/core/memberNames";
import type { Member, MergedStacks } from "../../../extension/src/core/protocol";
import { findStretch, graphOf, type GraphNode } from "../../../extension/src/core/stackGraph";
import { type StackRow, StackRows } from "../../../extension/src/core/stackRows";
import { stacksAsText } from "../../../extension/src/core/stackText";
import { countPlaces, foldStacks, lastFrame, type Shows, type Stretch } from "../../../extension/src/core/stackTree";
import { driver, paused, ranks } from "./members";
import { merged, type Standing } from "./merged";

const MAIN = ["train.py <module>:50", "train.py main:40"];
const REDUCE = ["+torch/c10d.py wrapper:80", "+torch/c10d.py all_reduce:300"];

/** Ranks 0–2 wait in a collective, rank 3 stands at a breakpoint before it. */
function world(): { members: Member[]; answer: MergedStacks; names: MemberNames } {
  const [a, b, c, d] = ranks(4, { group: "world" });
  assert.ok(a && b && c && d);
  const members = [a, b, c, paused(d)];
  const answer = merged([
    { members: [a.id, b.id, c.id], frames: [...MAIN, "train.py step:22", ...REDUCE], call: "all_reduce" },
    { members: [d.id], frames: [...MAIN, "train.py step:21"], state: "paused" },
  ]);
  return { members, answer, names: new MemberNames(members) };
}

function rowsOf(answer: MergedStacks, names: MemberNames, shows?: Shows): readonly StackRow[] {
  return new StackRows(answer, foldStacks(answer.tree, names, shows), names).roots();
}

/** A tree of rows as indented lines. */
function outline(rows: readonly StackRow[], indent = ""): string[] {
  return rows.flatMap((row) => [
    `${indent}${row.label} | ${row.description}`,
    ...outline(row.children(), `${indent}  `),
  ]);
}

describe("merged stacks", () => {
  it("are stretches without a fork, the odd one out first", () => {
    const { answer, names } = world();
    const { stretches } = foldStacks(answer.tree, names);
    assert.equal(stretches.length, 1);
    const [stem] = stretches;
    assert.ok(stem);
    assert.deepEqual(
      stem.frames.map(({ name }) => name),
      ["<module>", "main"],
    );
    assert.deepEqual(
      stem.children.map((child) => [lastFrame(child).line, child.members.length, child.ends[0]?.state]),
      [
        [21, 1, "paused"],
        [22, 3, "blocked"],
      ],
    );
    assert.equal(countPlaces(stretches), 2);
  });

  it("read as rows, with outer and library frames folded below", () => {
    const { answer, names } = world();
    const rows = rowsOf(answer, names);
    assert.deepEqual(outline(rows), [
      "main:40 | all (4) · train.py",
      "  1 outer frame | train.py:50",
      "    train.py:50 | ",
      "  step:21 | 3 · breakpoint · train.py",
      "  step:22 › all_reduce | 0-2 (3) · train.py",
      "    2 library frames | torch",
      "      wrapper:80 | 0-2 (3) · c10d.py",
      "      all_reduce:300 | 0-2 (3) · c10d.py",
    ]);
    const [, odd, others] = rows[0]?.children() ?? [];
    assert.ok(odd && others);
    assert.deepEqual(odd.frame, { path: "/home/me/project/train.py", line: 21 });
    assert.equal(odd.isExpanded, undefined);
    assert.equal(others.isExpanded, false);
    assert.match(others.spoken, /^step:22, in all_reduce, 0-2/);
    assert.match(others.tooltip(), /in all\\_reduce/);
  });

  it("own frames below a library's are their caller's, whichever way they came", () => {
    const [a, b] = ranks(2);
    assert.ok(a && b);
    const names = new MemberNames([a, b]);
    const answer = merged([
      { members: [a.id], frames: ["train.py main:4", "+torch/module.py __call__:1", "train.py forward:9"] },
      { members: [b.id], frames: ["train.py main:4", "+torch/compiled.py run:7", "train.py forward:9"] },
    ]);
    const { stretches } = foldStacks(answer.tree, names);
    assert.deepEqual(
      stretches.map(({ frames, members }) => [frames.map(({ name }) => name), members.length]),
      [[["main", "forward"], 2]],
    );
  });

  it("say who stands in a frame from which others have gone deeper, and who runs nothing of the person's", () => {
    const [a, b, c] = ranks(3);
    assert.ok(a && b && c);
    const names = new MemberNames([a, b, c]);
    const answer = merged([
      { members: [a.id], frames: ["train.py main:4"] },
      { members: [b.id], frames: ["train.py main:4", "train.py step:9"] },
      { members: [c.id], frames: ["+ray/worker.py main_loop:3"] },
      { members: [a.id, b.id], frames: ["[Thread (serve)]", "serve.py run:1"] },
    ]);
    assert.deepEqual(outline(rowsOf(answer, names)), [
      "main:4 | 0-1 (2) · train.py",
      "  at main:4 | 0 · running",
      "  step:9 | 1 · running · train.py",
      "none of your code | 2 · running",
      "1 other thread | Thread (serve)",
      "  run:1 | 0-1 (2) · running · serve.py",
      "    1 outer frame | Thread (serve)",
      "      Thread (serve) | ",
      "1 library frame | ray",
      "  main_loop:3 | 2 · worker.py",
    ]);
  });

  it("hide whom a filter hides, and join what is no fork any more", () => {
    const { answer, names, members } = world();
    const only = idsIn({ ranks: "0-1", doing: "" }, members, {});
    const rows = rowsOf(answer, names, ({ member }) => only.has(member));
    assert.deepEqual(
      rows.map((row) => `${row.label} | ${row.description}`),
      ["step:22 › all_reduce | 0-1 (2) · train.py"],
    );
    assert.equal(rowsOf(answer, names, ({ state }) => state === "running").length, 0);
  });

  it("name who is missing", () => {
    const { answer, names, members } = world();
    const rows = rowsOf(
      {
        ...answer,
        late: [{ member: members[2]?.id ?? "", label: "world 2", why: "no answer within 0.5 s" }],
        failed: { "world 8": "it has no agent" },
      },
      names,
    );
    assert.deepEqual(
      rows.slice(0, 2).map(({ label, description }) => [label, description]),
      [
        ["No answer", "2"],
        ["it has no agent", "world 8"],
      ],
    );
  });

  it("are copied with every frame, the fewest ranks first", () => {
    const { answer, names } = world();
    const text = stacksAsText(
      { ...answer, late: [{ member: "m9", label: "world 9", why: "no answer within 0.5 s" }] },
      names,
      "Stacks of job",
    );
    assert.equal(
      text,
      `Stacks of job

3 · breakpoint
  <module>  /home/me/project/train.py:50
  main  /home/me/project/train.py:40
  step  /home/me/project/train.py:21

0-2 (3) · in all_reduce
  <module>  /home/me/project/train.py:50
  main  /home/me/project/train.py:40
  step  /home/me/project/train.py:22
  wrapper  /venv/lib/python3.11/site-packages/torch/c10d.py:80
  all_reduce  /venv/lib/python3.11/site-packages/torch/c10d.py:300

No answer in time: world 9.
`,
    );
  });

  it("are the graph's boxes, found again by their ids", () => {
    const { answer, names } = world();
    const { stretches } = foldStacks(answer.tree, names);
    const [stem] = graphOf(stretches, names, new Set());
    assert.deepEqual(
      [stem, ...(stem?.children ?? [])].map((node) => [node?.title, node?.call, node?.ranks, node?.tone]),
      [
        ["main:40", "", "all", "mixed"],
        ["step:21", "", "3", "paused"],
        ["step:22", "all_reduce", "0-2", "blocked"],
      ],
    );
    const ids = (nodes: readonly GraphNode[]): string[] => nodes.flatMap(({ id, children }) => [id, ...ids(children)]);
    for (const id of ids(stem ? [stem] : [])) assert.equal(findStretch(stretches, id)?.id, id);
  });
});

describe("a thousand ranks", () => {
  const members = [driver(), ...ranks(1024, { group: "world" })];
  const names = new MemberNames(members);
  const everywhere = merged(
    members.map(({ id }, at): Standing => ({ members: [id], frames: [...MAIN, `train.py step:${100 + at}`] })),
  );

  it("that all stand elsewhere are a few rows; the others are there on demand", () => {
    const [stem] = rowsOf(everywhere, names);
    const rows = stem?.children() ?? [];
    assert.ok(rows.length < 30, String(rows.length));
    const more = rows.find(({ label }) => label.endsWith("more places"));
    assert.equal(rows.length - 2 + (more?.children().length ?? 0), 1025);
  });

  it("are a few boxes until they are opened", () => {
    const { stretches } = foldStacks(everywhere.tree, names);
    const [stem] = graphOf(stretches, names, new Set());
    const more = stem?.children.find(({ isMore }) => isMore);
    assert.ok((stem?.children.length ?? 0) < 30);
    assert.ok(more);
    assert.equal(graphOf(stretches, names, new Set([more.id]))[0]?.children.length, 1025);
  });

  it("that stand in two places are two rows with short rank sets", () => {
    const ids = members.slice(1).map(({ id }) => id);
    const answer = merged([
      {
        members: ids.filter((_, at) => at !== 517),
        frames: [...MAIN, "train.py step:9", ...REDUCE],
        call: "all_reduce",
      },
      { members: [ids[517] ?? ""], frames: [...MAIN, "train.py load:77"] },
    ]);
    const [stem] = rowsOf(answer, names);
    assert.deepEqual(
      stem
        ?.children()
        .slice(1)
        .map(({ description }) => description),
      ["517 · running · train.py", "0-516,518-1023 (1,023) · train.py"],
    );
  });
});

describe("the filter of members", () => {
  it("reads as a sentence", () => {
    assert.equal(filterInWords(NO_FILTER), "");
    assert.equal(filterInWords({ ranks: "0-3", doing: "blocked" }), "Only 0-3, in a blocking call");
  });
});

/** Nothing of the answer may be lost: every member is in the stretches once for each of its ends. */
function endsIn({ ends, children }: Stretch): number {
  return ends.length + children.reduce((sum, child) => sum + endsIn(child), 0);
}

it("no member is lost", () => {
  const members = ranks(64);
  const names = new MemberNames(members);
  const answer = merged(
    members.map(({ id }, at): Standing => {
      const depth = at % 7;
      return {
        members: [id],
        frames: Array.from({ length: depth }, (_, level) => `a.py f${at % (level + 2)}:${level + 1}`),
      };
    }),
  );
  const { stretches } = foldStacks(answer.tree, names);
  assert.equal(
    stretches.reduce((sum, stretch) => sum + endsIn(stretch), 0),
    64,
  );
});
