import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { type RankFacts, RankSet, RankSetError, type RankSetNames } from "../../../extension/src/core/rankSet";
import table from "../../support/rank_sets.json";

interface MemberRow {
  role?: string;
  group?: string;
  rank?: number;
  local_rank?: number;
  node?: number;
  is_final?: boolean;
}

function factsOf(row: MemberRow): RankFacts {
  return {
    role: (row.role ?? "rank") as RankFacts["role"],
    group: row.group ?? "",
    rank: row.rank,
    localRank: row.local_rank,
    node: row.node,
    isFinal: row.is_final ?? false,
  };
}

function namesOf(row: object): RankSetNames {
  return "names" in row ? (row.names as RankSetNames) : {};
}

describe("RankSet", () => {
  for (const row of table.sets) {
    it(`contains the right members: '${row.text}'`, () => {
      const set = RankSet.parse(row.text, namesOf(row));
      for (const [name, member] of Object.entries(table.members)) {
        const isUnknown = row.unknown.includes(name);
        const expected = isUnknown ? undefined : row.in.includes(name);
        assert.equal(set.contains(factsOf(member)), expected, name);
      }
      assert.equal(String(set), row.text);
    });
  }

  for (const row of table.errors) {
    it(`points at the fault: '${row.text}' (${row.why})`, () => {
      assert.throws(
        () => RankSet.parse(row.text, namesOf(row)),
        (error) => {
          assert.ok(error instanceof RankSetError);
          assert.deepEqual([error.text, error.at, error.why], [row.of ?? row.text, row.at, row.why]);
          assert.equal(error.message, `Rank set '${error.text}': ${row.why} at column ${row.at + 1}.`);
          return true;
        },
      );
    });
  }
});
