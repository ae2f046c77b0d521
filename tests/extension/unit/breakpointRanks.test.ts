import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { readCondition, readRanks, withBarrier, withRanks } from "../../../extension/src/core/breakpointRanks";
import { OpenString } from "../../../extension/src/core/pythonComment";
import { RankSetError } from "../../../extension/src/core/rankSet";
import conditions from "../../support/conditions.json";

describe("a breakpoint's condition", () => {
  for (const row of conditions) {
    it(`is read as the hub reads it: ${JSON.stringify(row.text)}`, () => {
      const { expression, ranks, isBarrier } = readCondition(row.text);
      assert.deepEqual([expression, ranks ?? null, isBarrier], [row.expression, row.ranks, row.isBarrier ?? false]);
    });
  }

  it("is read where there is none", () => {
    assert.deepEqual(readCondition(undefined), {
      expression: "",
      ranks: undefined,
      isBarrier: false,
      rest: "",
      fault: undefined,
    });
  });

  it("points at what cannot be read", () => {
    const at = (text: string) => readCondition(text).fault;
    assert.deepEqual(at("x > 1  # @0,,2"), { message: "Rank set '0,,2': a part is missing at column 3.", at: 12 });
    assert.deepEqual(at("x > 1  #  @ 5-3"), { message: "Rank set '5-3': 3 is smaller than 5 at column 3.", at: 14 });
    assert.deepEqual(at("x > 1  # @"), { message: "Rank set '': it is empty at column 1.", at: 10 });
    assert.equal(at("x == 'abc  # @2")?.message, "Condition 'x == 'abc  # @2': a string is not closed at column 6.");
    assert.equal(at("x == 'abc  # @2")?.at, 5);
    assert.equal(
      at("x # @loacl:0")?.message,
      "Rank set 'loacl:0': 'loacl:0' is neither a number nor a name in rankSets at column 1.",
    );
    assert.equal(at("x # @-1")?.at, 5);
  });

  it("may use a name that is not known yet", () => {
    assert.equal(readCondition("x # @critics").fault, undefined);
    assert.equal(readCondition("x # @0,critics", { actors: "actor/all" }).fault, undefined);
    const inName = readCondition("x # @bad", { bad: "5-3" }).fault;
    assert.deepEqual(inName, { message: "Rank set '5-3': 3 is smaller than 5 at column 3.", at: 5 });
  });
});

describe("a set with unknown names", () => {
  it("lists them", () => {
    const { set, unknownNames } = readRanks("0, critics,a-b,__proto__");
    assert.deepEqual(unknownNames, ["critics", "a-b", "__proto__"]);
    assert.equal(set.text, "0, critics,a-b,__proto__");
  });

  it("is refused for everything else", () => {
    assert.throws(() => readRanks("critics,5-3"), RankSetError);
    assert.throws(() => readRanks("a", { a: "b" }), RankSetError);
  });
});

describe("another rank set for a condition", () => {
  const rows: [string | undefined, string | undefined, string | undefined][] = [
    [undefined, "2", "True  # @2"],
    ["", "2", "True  # @2"],
    ["True", "2", "True  # @2"],
    ["True  # @2", "0,3-5", "True  # @0,3-5"],
    ["True  # @2", undefined, undefined],
    ["True", undefined, undefined],
    [undefined, undefined, undefined],
    ["# @2", undefined, undefined],
    ["# @2", "3", "True  # @3"],
    ["loss > 10", "actor/0", "loss > 10  # @actor/0"],
    ["loss > 10#@1", "actor/0", "loss > 10  # @actor/0"],
    ["loss > 10  # @actor/0", undefined, "loss > 10"],
    ["x == '#@1'", "2", "x == '#@1'  # @2"],
    ["x == '#@1'  # @2", undefined, "x == '#@1'"],
    ["x  # @0,,", "2", "x  # @2"],
    // another comment stays, and an earlier set does not come back
    ["x  # why", "2", "x  # why\n# @2"],
    ["x  # why\n# @2", undefined, "x  # why"],
    ["x  # @1\n and y  # @2", undefined, "x\n and y"],
  ];
  for (const [before, ranks, after] of rows) {
    it(`${JSON.stringify(before)} with ${ranks ?? "no limit"}`, () => {
      assert.equal(withRanks(before, ranks), after);
    });
  }

  it("leaves a barrier one", () => {
    assert.equal(withRanks("x  # @0 barrier", "0-3"), "x  # @0-3 barrier");
    assert.equal(withRanks("# @0 barrier", undefined), "True  # @all barrier");
  });

  it("is a barrier's, or not", () => {
    assert.equal(withBarrier(undefined, true), "True  # @all barrier");
    assert.equal(withBarrier("x > 1  # @actor/0", true), "x > 1  # @actor/0 barrier");
    assert.equal(withBarrier("x > 1  # @actor/0 barrier", false), "x > 1  # @actor/0");
    assert.equal(withBarrier("True  # @all barrier", false), "True  # @all");
  });

  it("is refused where a string does not end", () => {
    assert.throws(() => withRanks("x == 'abc", "2"), OpenString);
  });

  it("comes back as it was written, whatever the condition", () => {
    const pieces = [
      "x",
      " ",
      "'#'",
      '"#@1"',
      "f'{x:#x}'",
      " and ",
      "(",
      ")",
      "\n",
      "  # why",
      "  # @7",
      "True",
      "r'\\'",
      "1",
    ];
    const sets = ["2", "0,3-5", "0-31:4", "local:0", "actor/0-3,5", "all", "driver", "critics", "a/b/0"];
    const random = seeded(20_260);
    const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(random() * from.length)];
    let tried = 0;
    for (let n = 0; n < 5000; n++) {
      const condition = Array.from({ length: 1 + Math.floor(random() * 7) }, () => pick(pieces)).join("");
      const ranks = pick(sets);
      const before = readCondition(condition);
      if (before.fault && before.ranks === undefined) continue;
      tried++;
      const after = readCondition(withRanks(condition, ranks));
      // a line with nothing but a rank comment goes as a whole
      const same = oneBlank(before.expression);
      assert.deepEqual([after.ranks, oneBlank(after.expression), after.fault], [ranks, same, undefined], condition);
      const free = readCondition(withRanks(withRanks(condition, ranks), undefined));
      assert.deepEqual([free.ranks, oneBlank(free.expression)], [undefined, same], condition);
      assert.equal(withRanks(withRanks(condition, "0"), ranks), withRanks(condition, ranks), condition);
    }
    assert.ok(tried > 2500, `${tried} conditions`);
  });
});

function oneBlank(text: string): string {
  return text.replaceAll(/ +/g, " ");
}

/** The same numbers in every run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}
