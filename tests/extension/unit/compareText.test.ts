import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { metricsOf, plotOf } from "../../../extension/src/core/comparePlot";
import { columnsOf, matching, numberText, sorted, usual } from "../../../extension/src/core/compareTable";
import { comparisonAsText, notesOf, verdict } from "../../../extension/src/core/compareText";
import type { CompareRow, TensorSummary } from "../../../extension/src/core/protocol";
import { ranks } from "./members";
import { answer, comparison } from "./merged";

const VALUES = [0.5, 0.5, "NaN", 9, 0.5, 0.5] as const;

function numbers(): CompareRow[] {
  return ranks(6, { group: "world" }).map((member, at) => {
    const value = VALUES[at] ?? 0;
    return answer(member, { text: String(value), value, type: "float" });
  });
}

function tensor(facts: Partial<TensorSummary> = {}): TensorSummary {
  return {
    ...{ kind: "tensor", shape: [4, 8], dtype: "torch.float32", device: "cuda:0", min: -1, max: 1, mean: 0 },
    ...{ nan: 0, inf: 0, isPartial: false, digest: "xxh3_128:0123456789abcdef" },
    ...facts,
  };
}

function tensors(): CompareRow[] {
  return ranks(4, { group: "world" }).map((member, at) => {
    const differs = at === 2 ? { digest: "xxh3_128:ffff456789abcdef", nan: 3, mean: "NaN" as const } : {};
    return answer(member, {
      kind: "tensor",
      text: `Tensor ${at}`,
      type: "Tensor",
      value: null,
      tensor: tensor(differs),
    });
  });
}

function column(rows: CompareRow[], id: string) {
  const found = columnsOf(comparison(rows)).find((each) => each.id === id);
  assert.ok(found, id);
  return found;
}

describe("a comparison in words", () => {
  it("says how many answers there are", () => {
    const rows = numbers();
    assert.equal(verdict(comparison(rows)), "3 different answers from 6 ranks");
    assert.equal(verdict(comparison(rows.slice(0, 2))), "2 ranks agree");
    assert.equal(verdict(comparison(rows.slice(0, 1))), "1 rank has answered");
    assert.equal(verdict(comparison([])), "");
  });

  it("names who is missing, and what may have been changed", () => {
    const [member] = ranks(1);
    assert.ok(member);
    const rows = [answer(member, { kind: "running" }), answer(member, { kind: "error", error: "NameError" })];
    const facts = { late: ["world 7"], absent: "9-12", warning: "it calls append" };
    assert.deepEqual(notesOf(comparison(rows, facts)), [
      "There is no such rank: 9-12.",
      "No answer in time from world 7.",
      "1 rank could not answer.",
      "1 rank runs: there only names, attributes and indexes can be looked up.",
      "it calls append.",
    ]);
  });

  it("is copied as groups and a table", () => {
    const text = comparisonAsText(comparison(numbers().slice(0, 3)), "loss · job");
    assert.deepEqual(text.split("\n"), [
      "loss · job",
      "0,1 (2): 0.5",
      "2 (1): NaN",
      "",
      "Rank\tState\tValue\tType",
      "world 0\trunning\t0.5\tfloat",
      "world 1\trunning\t0.5\tfloat",
      "world 2\trunning\tNaN\tfloat",
      "",
    ]);
  });
});

describe("a comparison as a table", () => {
  it("has the columns that there is something for", () => {
    const ids = (rows: CompareRow[]) => columnsOf(comparison(rows)).map(({ id }) => id);
    assert.deepEqual(ids(numbers()), ["rank", "state", "answer", "type"]);
    assert.deepEqual(ids(tensors()), [
      ...["rank", "state", "shape", "dtype", "digest", "device", "min", "max", "mean", "nan", "inf"],
    ]);
  });

  it("sorts numbers as numbers, NaN after them and nothing last", () => {
    const rows = numbers();
    const [last] = ranks(1);
    assert.ok(last);
    const all = [answer(last, { kind: "late", text: "", value: null }), ...rows];
    const value = column(rows, "answer");
    const order = (isDescending: boolean) => sorted(rows, value, isDescending).map(({ text }) => text);
    assert.deepEqual(order(false), ["0.5", "0.5", "0.5", "0.5", "9", "NaN"]);
    assert.deepEqual(order(true), ["9", "0.5", "0.5", "0.5", "0.5", "NaN"]);
    assert.equal(sorted(all, column(all, "rank"), true)[0]?.label, "world 5");
  });

  it("knows what most have, so that the odd one can be marked", () => {
    const rows = tensors();
    assert.equal(usual(rows, column(rows, "digest")), "0123456789ab");
    assert.equal(usual(rows, column(rows, "device")), undefined);
  });

  it("finds rows by what stands in a cell", () => {
    const rows = tensors();
    const columns = columnsOf(comparison(rows));
    assert.deepEqual(
      matching(rows, columns, " FFFF ").map(({ label }) => label),
      ["world 2"],
    );
    assert.equal(matching(rows, columns, "").length, 4);
  });

  it("writes numbers in six digits", () => {
    assert.deepEqual(
      [0.1 + 0.2, -3, 1.23456789e-9, 12345678, "NaN", "-Infinity", null].map((each) => numberText(each as number)),
      ["0.3", "−3", "1.23457e-9", "12345678", "NaN", "−∞", ""],
    );
  });
});

describe("a comparison as a plot", () => {
  it("has the hub's outliers, and what is no number apart", () => {
    const rows = numbers();
    const stats = { min: 0.5, max: 9, mean: 2.2, nan: 1, inf: 0, outliers: [rows[3]?.member ?? ""] };
    const plot = plotOf(comparison(rows, { stats }), "value");
    assert.deepEqual(plot.ys, [0.5, 0.5, null, 9, 0.5, 0.5]);
    assert.deepEqual(plot.bad, [undefined, undefined, "NaN", undefined, undefined, undefined]);
    assert.deepEqual(plot.isOutlier, [false, false, false, true, false, false]);
    assert.deepEqual([plot.min, plot.max, plot.isByRank], [0.5, 9, true]);
    assert.ok(Math.abs((plot.mean ?? 0) - 2.2) < 1e-9);
  });

  it("finds outliers of a tensor's numbers itself", () => {
    const rows = tensors().map((row, at) => ({ ...row, tensor: tensor({ norm: at === 1 ? 100 : 1 + at / 1000 }) }));
    assert.deepEqual(plotOf(comparison(rows), "norm").isOutlier, [false, true, false, false]);
    assert.deepEqual(
      metricsOf(comparison(rows)).map(({ id }) => id),
      ["mean", "min", "max", "norm", "nan", "inf"],
    );
  });

  it("is none of texts, and of a single number", () => {
    const rows = numbers();
    assert.deepEqual(metricsOf(comparison(rows.slice(0, 1))), []);
    assert.deepEqual(metricsOf(comparison(rows.map((row) => ({ ...row, kind: "text" as const })))), []);
  });
});
