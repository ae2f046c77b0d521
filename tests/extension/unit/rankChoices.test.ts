import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { RankChoices } from "../../../extension/src/core/rankChoices";
import { factsOf, groupsOf, membersIn, setOf, setOfMember } from "../../../extension/src/core/rankGroups";
import { RankSet } from "../../../extension/src/core/rankSet";
import { inWords, namesOf } from "../../../extension/src/core/rankWords";
import { member, ranksOf } from "./member";

const driver = member({ role: "driver" });
const actors = ranksOf("actor", 6);
const critics = ranksOf("critic", 2);
const two = groupsOf([driver, ...actors, ...critics]);
const one = groupsOf([driver, ...actors]);
const pick = (groups: typeof two, group: string, ranks: readonly number[]) =>
  groups.flatMap((known) => known.ranks).filter((known) => known.group === group && ranks.includes(known.rank));

describe("the groups of a job", () => {
  it("are its ranks, with those that are still to join", () => {
    const groups = groupsOf([
      driver,
      member({ role: "idle", rank: null, group: "" }),
      member({ role: "child", group: "actor", rank: 1 }),
      member({ group: "actor", rank: 2, worldSize: 4 }),
      member({ group: "tasks", rank: null }),
    ]);
    assert.deepEqual(
      groups.map(({ name, ranks }) => [name, ranks.map(({ rank, member: known }) => [rank, known !== undefined])]),
      [
        [
          "actor",
          [
            [0, false],
            [1, false],
            [2, true],
            [3, false],
          ],
        ],
      ],
    );
  });

  it("have the newest incarnation of a rank", () => {
    const [group] = groupsOf([
      member({ rank: 0, incarnation: 1, id: "new" }),
      member({ rank: 0, incarnation: 0, id: "old" }),
    ]);
    assert.deepEqual(
      group?.ranks.map((known) => known.member?.id),
      ["new"],
    );
  });
});

describe("a set of picked ranks", () => {
  it("is compact", () => {
    assert.equal(setOf(pick(two, "actor", [0, 1, 2, 3, 5]), two), "actor/0-3,5");
    assert.equal(setOf(pick(two, "actor", [0, 1, 2, 3, 4, 5]), two), "actor/all");
    assert.equal(setOf([...pick(two, "critic", [1]), ...pick(two, "actor", [0])], two), "actor/0,critic/1");
    assert.equal(
      setOf(
        two.flatMap(({ ranks }) => ranks),
        two,
      ),
      "all",
    );
    assert.equal(setOf(pick(two, "actor", [1]), two, true), "actor/1,driver");
    assert.equal(setOf([], two, true), "driver");
    assert.equal(setOf([], two), "");
  });

  it("names no group where there is one", () => {
    assert.equal(setOf(pick(one, "actor", [0, 1, 3]), one), "0-1,3");
    assert.equal(setOf(pick(one, "actor", [0, 1, 2, 3, 4, 5]), one), "all");
  });

  it("finds strides", () => {
    const wide = groupsOf(ranksOf("world", 256));
    const every8 = Array.from({ length: 32 }, (_, n) => n * 8);
    assert.equal(setOf(pick(wide, "world", every8), wide), "0-248:8");
    assert.equal(setOf(pick(wide, "world", [0, 2, 4, 5, 6, 9]), wide), "0,2,4-6,9");
  });

  it("holds exactly the picked ranks", () => {
    const everyone = [driver, ...actors, ...critics];
    for (let mask = 1; mask < 256; mask++) {
      const known = two.flatMap(({ ranks }) => ranks).filter((_, at) => mask & (1 << at));
      const set = RankSet.parse(setOf(known, two));
      const expected = known.flatMap((rank) => rank.member?.id ?? []).sort();
      assert.deepEqual(
        membersIn(set, everyone)
          .map(({ id }) => id)
          .sort(),
        expected,
        set.text,
      );
    }
  });

  it("names one member", () => {
    const everyone = [driver, ...actors, ...critics];
    assert.equal(setOfMember(driver, everyone), "driver");
    assert.equal(setOfMember(member({ rank: 2 }), everyone), "actor/2");
    assert.equal(setOfMember(member({ rank: 2 }), [driver, ...actors]), "2");
    assert.equal(setOfMember(member({ rank: null }), everyone), undefined);
    assert.equal(setOfMember(member({ role: "child", rank: 3 }), everyone), "actor/3");
  });

  it("holds whoever may turn out to be in it", () => {
    const early = member({ group: "actor", rank: 1, isFinal: false });
    assert.deepEqual(membersIn(RankSet.parse("actor/0"), [driver, early]), [early]);
    assert.equal(factsOf(member({ rank: null, node: null, localRank: null })).rank, undefined);
  });
});

describe("a set in words", () => {
  const rows: [string | undefined, string][] = [
    [undefined, "every process"],
    ["2", "rank 2"],
    ["0,3-5", "ranks 0, 3–5"],
    ["0-31:4", "ranks 0–31 in steps of 4"],
    ["actor/2", "rank 2 of actor"],
    ["actor/0, 2", "ranks 0, 2 of actor"],
    ["actor/all", "all ranks of actor"],
    ["critic/0,actor/3", "rank 0 of critic and rank 3 of actor"],
    ["all", "all ranks"],
    ["all,driver", "all ranks and driver"],
    ["local:0", "local rank 0 of every node"],
    ["node:1-2", "all ranks of nodes 1–2"],
    ["critics", "critics"],
    ["actor/0,all,1", "rank 0 of actor and all ranks and rank 1"],
  ];
  for (const [text, words] of rows) {
    it(text ?? "no limit", () => {
      assert.equal(inWords(text), words);
    });
  }

  it("names members, or counts them", () => {
    assert.equal(namesOf(actors.slice(2, 4)), "actor 2, actor 3");
    assert.equal(namesOf(actors), "6 ranks of actor");
    assert.equal(namesOf([...actors, ...critics]), "8 ranks");
    assert.equal(namesOf([driver, ...actors]), "7 processes");
    assert.equal(namesOf([driver]), "driver");
  });
});

describe("the rows of the picker", () => {
  const change = (choices: RankChoices, checked: ReadonlySet<string>, add: string[], remove: string[] = []) =>
    choices.afterChange(checked, new Set([...checked, ...add].filter((id) => !remove.includes(id))));

  it("show what the breakpoint has", () => {
    const checked = (present: string | undefined, groups = two, names = {}) =>
      [...new RankChoices(groups, names, present).checked].sort();
    assert.deepEqual(checked(undefined), ["no limit"]);
    assert.deepEqual(checked("0"), ["0"]);
    assert.deepEqual(checked("actor/1, 2"), ["rank 1 actor", "rank 2 actor"]);
    assert.deepEqual(checked("critic/all,driver"), ["driver", "group critic", "rank 0 critic", "rank 1 critic"]);
    assert.deepEqual(checked("1", one), ["rank 1 actor"]);
    assert.deepEqual(checked("0", one), ["rank 0 actor"]);
    assert.deepEqual(checked("0", []), ["0"]);
    assert.deepEqual(checked("critics", two, { critics: "critic/all" }), ["name critics"]);
    // what is no row is one of its own
    assert.deepEqual(checked("node:1"), ["now"]);
    assert.deepEqual(checked("actor/0-31:4"), ["now"]);
    assert.deepEqual(checked("2", []), ["now"]);
  });

  it("leave a set to the letter where nothing is changed", () => {
    for (const present of [undefined, "0", "actor/2, 1", "node:1", "critics", "1-1", "0,,"]) {
      const choices = new RankChoices(two, {}, present);
      assert.equal(choices.ranksOf(choices.checked), present);
    }
  });

  it("check a group with its ranks", () => {
    const choices = new RankChoices(two, {}, "0");
    const whole = change(choices, choices.checked, ["group critic"], ["0"]);
    assert.equal(choices.ranksOf(whole), "critic/all");
    const without = change(choices, whole, [], ["rank 0 critic"]);
    assert.deepEqual([...without], ["rank 1 critic"]);
    assert.equal(choices.ranksOf(without), "critic/1");
    assert.deepEqual([...change(choices, without, ["rank 0 critic"])].sort(), [...whole].sort());
    assert.deepEqual([...change(choices, whole, [], ["group critic"])], []);
  });

  it("check 'All ranks' alone", () => {
    const choices = new RankChoices(two, {}, undefined);
    const some = change(choices, choices.checked, ["rank 2 actor"]);
    assert.equal(choices.ranksOf(some), "actor/2");
    const all = change(choices, some, ["no limit"]);
    assert.deepEqual([...all], ["no limit"]);
    assert.equal(choices.ranksOf(all), undefined);
    assert.equal(choices.ranksOf(change(choices, some, [], ["rank 2 actor"])), undefined);
  });

  it("put bare numbers where no group holds for them", () => {
    const choices = new RankChoices(two, { firsts: "local:0" }, undefined);
    const checked = change(choices, new Set(), ["rank 2 actor", "0", "local:0", "name firsts", "driver"]);
    const ranks = choices.ranksOf(checked) ?? "";
    assert.equal(ranks, "0,local:0,driver,firsts,actor/2");
    assert.equal(RankSet.parse(ranks, { firsts: "local:0" }).contains(factsOf(critics[0] ?? driver)), true);
  });
});
