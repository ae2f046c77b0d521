import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  hoverLines,
  iconText,
  lineText,
  type ShownBreakpoint,
  shownBreakpoints,
} from "../../../extension/src/core/breakpointText";
import type { BreakpointStatus } from "../../../extension/src/core/protocol";
import { member, ranksOf } from "./member";

const actors = ranksOf("actor", 4);
const job = { members: [member({ role: "driver" }), ...actors] };
const idOf = (rank: number) => actors[rank]?.id ?? "";

function status(facts: Partial<BreakpointStatus> = {}): BreakpointStatus {
  return {
    path: "/w/train.py",
    line: 5,
    ranks: "",
    error: "",
    joined: [],
    verified: [],
    pending: 0,
    hits: {},
    ...facts,
  };
}

function shown(condition: string | undefined, facts?: Partial<BreakpointStatus>, isEnabled = true): ShownBreakpoint[] {
  return shownBreakpoints([{ line: 5, isEnabled, condition }], facts ? [status(facts)] : [], {});
}

describe("the text behind a line", () => {
  const text = (...args: Parameters<typeof shown>) => lineText(shown(...args), [], args[1] ? job : undefined);

  it("is the set alone without a job", () => {
    assert.deepEqual(text("True  # @2"), { text: "@2", tone: "quiet" });
    assert.equal(text("x > 1"), undefined);
    assert.equal(text(undefined), undefined);
  });

  it("says how it is bound and how often it was hit", () => {
    const bound = { ranks: "2", joined: [idOf(2)], verified: [idOf(2)], hits: { [idOf(2)]: 3 } };
    assert.deepEqual(text("True  # @2", bound), { text: "@2 · bound on 1 of 1 · hit 3×", tone: "quiet" });
    const some = { joined: [idOf(0), idOf(1)], verified: [idOf(0)], pending: 2 };
    assert.deepEqual(text(undefined, some), { text: "bound on 1 of 2 · 2 pending", tone: "quiet" });
    assert.deepEqual(text("# @9-10", { ranks: "9-10", pending: 2 }), { text: "@9-10 · 2 pending", tone: "quiet" });
  });

  it("warns of what can never stop", () => {
    assert.deepEqual(text("# @9", { ranks: "9" }), { text: "no rank of this job is in @9", tone: "warning" });
    const moved = { ranks: "2", error: "the file\n is not there" };
    assert.deepEqual(text("# @2", moved), { text: "@2 · the file is not there", tone: "warning" });
    assert.deepEqual(text("# @0,,"), { text: "Rank set '0,,': a part is missing at column 3.", tone: "warning" });
  });

  it("does not warn before the first rank", () => {
    const early = lineText(shown("# @2", { ranks: "2" }), [], { members: [] });
    assert.deepEqual(early, { text: "@2 · no rank has joined yet", tone: "quiet" });
  });

  it("says nothing of a disabled breakpoint but its set", () => {
    assert.deepEqual(lineText(shown("# @2", undefined, false), [], job), { text: "@2", tone: "quiet" });
  });

  it("names who stands there, first", () => {
    const here = lineText([], actors.slice(2).reverse(), job);
    assert.deepEqual(here, { text: "◀ actor 2, actor 3", tone: "standing" });
    const both = lineText(shown("# @all", { ranks: "all", pending: 1 }), actors, job);
    assert.deepEqual(both, { text: "◀ 4 ranks of actor │ @all · 1 pending", tone: "standing" });
  });
});

describe("a barrier", () => {
  it("is said behind the line, with those it waits for while somebody is held there", () => {
    const bound = { ranks: "all", isBarrier: true, joined: actors.map(({ id }) => id), verified: [] };
    const text = lineText(shown("# @all barrier", bound), [], job);
    assert.deepEqual(text, { text: "@all barrier · bound on 0 of 4", tone: "quiet" });
    const held = actors.slice(2).map((each) => ({ ...each, barrier: ["actor 0", "actor 1"] }));
    const here = lineText(shown("# @all barrier"), held, job);
    assert.equal(here?.text, "◀ actor 2, actor 3 · waits for actor 0, actor 1 │ @all barrier");
  });

  it("may be one by its mode, which only the hub sees", () => {
    const [breakpoint] = shown(undefined, { ranks: "all", isBarrier: true });
    assert.deepEqual([breakpoint?.ranks, breakpoint?.isBarrier], ["all", true]);
    assert.match(hoverLines(shown("# @0-3 barrier"), [], undefined)[0] ?? "", /^Barrier of ranks 0 to 3|^Barrier of /);
  });
});

describe("the icon beside a breakpoint", () => {
  const rows: [string, string][] = [
    ["2", "2"],
    ["0-3", "0-3"],
    ["12-15", "12-15"],
    ["all", "≡"],
    ["driver", "D"],
    ["local:0", "L0"],
    ["node:1", "N1"],
    ["actor/2", "2"],
    ["actor/0-3", "0-3"],
    ["actor/all", "ac…"],
    ["critics", "cr…"],
    ["0,3-5", "0…"],
    ["100-131", "10…"],
    ["actor/0,critic/1", "ac…"],
  ];
  for (const [ranks, icon] of rows) {
    it(ranks, () => {
      assert.equal(iconText(shown(`# @${ranks}`), undefined), icon);
    });
  }

  it("stands for no limit only while a job runs", () => {
    assert.equal(iconText(shown(undefined), undefined), undefined);
    assert.equal(iconText(shown(undefined), job), "≡");
    assert.equal(iconText([], job), undefined);
    assert.equal(iconText([...shown("# @2"), ...shown("# @3")], undefined), "…");
    assert.equal(iconText([...shown("# @2"), ...shown(undefined)], undefined), "2");
  });
});

describe("the hub's account of a breakpoint", () => {
  const lines = (asked: [number, string?][], statuses: Partial<BreakpointStatus>[]) =>
    shownBreakpoints(
      asked.map(([line, ranks]) => ({ line, isEnabled: true, condition: ranks && `True  # @${ranks}` })),
      statuses.map(status),
      {},
    ).map(({ line, status: found }) => [line, found?.line]);

  it("is found by its line", () => {
    assert.deepEqual(lines([[5], [9]], [{ line: 9 }, { line: 5 }]), [
      [5, 5],
      [9, 9],
    ]);
    assert.deepEqual(lines([[5]], []), [[5, undefined]]);
    assert.deepEqual(lines([[5], [9]], [{ line: 9 }]), [
      [5, undefined],
      [9, 9],
    ]);
  });

  it("is found when the editor has moved the breakpoint", () => {
    assert.deepEqual(lines([[6], [10]], [{ line: 5 }, { line: 9 }]), [
      [6, 5],
      [10, 9],
    ]);
    assert.deepEqual(lines([[6], [7]], [{ line: 5 }, { line: 6 }]), [
      [6, 5],
      [7, 6],
    ]);
    assert.deepEqual(lines([[6, "2"], [20]], [{ line: 5, ranks: "2" }]), [
      [6, 5],
      [20, undefined],
    ]);
  });

  it("is found for several in one line", () => {
    const found = shownBreakpoints(
      [
        { line: 5, isEnabled: true, condition: "# @1" },
        { line: 5, isEnabled: true, condition: "# @2" },
        { line: 5, isEnabled: false, condition: "# @3" },
      ],
      [status({ ranks: "2" }), status({ ranks: "1" })],
      {},
    );
    assert.deepEqual(
      found.map((one) => one.status?.ranks),
      ["1", "2", undefined],
    );
  });

  it("tells the ranks of a breakpoint's mode", () => {
    assert.equal(shown("x > 1", { ranks: "local:0" })[0]?.ranks, "local:0");
  });
});

describe("the hover", () => {
  it("lists rank by rank", () => {
    const facts = {
      ranks: "1-3",
      joined: [idOf(1), idOf(2)],
      verified: [idOf(1)],
      pending: 1,
      hits: { [idOf(1)]: 2, gone: 1 },
    };
    assert.deepEqual(hoverLines(shown("# @1-3", facts), [], job), [
      "Breakpoint of ranks 1–3:",
      "- actor 1 · node-0: bound, hit 2×",
      "- gone: gone, hit 1×",
      "- actor 2 · node-0: pending",
      "- 1 still to join or to answer",
    ]);
  });

  it("names who is stopped, and why", () => {
    const stopped = member({ rank: 2, state: "paused", stopped: { reason: "breakpoint" } });
    assert.deepEqual(hoverLines([], [stopped], job), ["Stopped here:", "- actor 2 · node-0: breakpoint"]);
  });

  it("has at most twenty ranks", () => {
    const many = ranksOf("world", 64);
    const ids = many.map(({ id }) => id);
    const lines = hoverLines(shown(undefined, { joined: ids, verified: ids }), [], { members: many });
    assert.equal(lines.length, 22);
    assert.equal(lines.at(-1), "- … and 44 more");
    assert.equal(lines[20], "- world 19 · node-0: bound");
  });

  it("says what is wrong", () => {
    assert.deepEqual(hoverLines(shown("# @9", { ranks: "9" }), [], job), [
      "Breakpoint of rank 9:",
      "- no rank of this job is in @9",
    ]);
    assert.deepEqual(hoverLines(shown("# @0,,"), [], undefined), [
      "Breakpoint of 0,,:",
      "- Rank set '0,,': a part is missing at column 3.",
    ]);
    assert.deepEqual(hoverLines(shown("# @2", undefined, false), [], job), ["Breakpoint of rank 2 (disabled)"]);
  });
});
