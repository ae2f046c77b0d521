import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { type RunScope, scopeText, STOPPED, whomOf } from "../../../extension/src/core/runScope";
import { member, ranksOf } from "./member";

const actors = ranksOf("actor", 2);
const critics = ranksOf("critic", 1);
const [first] = actors;
const RANK: RunScope = { kind: "rank" };
const NO_FOCUS = "No rank is focused: choose one in the call stack or in the Ranks view.";
const GROUP: RunScope = { kind: "group" };

describe("whom a command acts on", () => {
  const two = { members: [member({ role: "driver" }), ...actors, ...critics], focused: undefined };
  const looked = { ...two, focused: first };

  it("are the stopped ranks, or those that run when they are to pause", () => {
    assert.deepEqual(whomOf(STOPPED, "next", two), { scope: "stopped" });
    assert.deepEqual(whomOf(STOPPED, "pause", two), { ranks: "all" });
    assert.deepEqual(whomOf(STOPPED, "pause", { ...two, members: [member({ role: "driver" })] }), {});
  });

  it("is the focused rank, or its group", () => {
    assert.deepEqual(whomOf(RANK, "continue", looked), { members: [first?.id] });
    assert.deepEqual(whomOf(GROUP, "continue", looked), { scope: "group", member: first?.id });
    assert.equal(whomOf(RANK, "next", two), NO_FOCUS);
    assert.equal(whomOf(GROUP, "next", two), NO_FOCUS);
  });

  it("is the only group without a focus, too", () => {
    const one = { members: actors, focused: undefined };
    assert.deepEqual(whomOf(GROUP, "pause", one), { scope: "group", member: first?.id });
    const onDriver = { members: actors, focused: member({ role: "driver" }) };
    assert.deepEqual(whomOf(GROUP, "pause", onDriver), { scope: "group", member: first?.id });
  });

  it("is the set that was picked", () => {
    assert.deepEqual(whomOf({ kind: "set", ranks: "actor/0" }, "stepOut", two), { ranks: "actor/0" });
  });

  it("is told in a few words", () => {
    const texts = [STOPPED, RANK, GROUP, { kind: "set", ranks: "all" }, { kind: "set", ranks: "0-3" }] as const;
    assert.deepEqual(
      texts.map((scope) => scopeText(scope, looked)),
      ["stopped ranks", "actor 0 (focused)", "all of actor", "all ranks", "0-3"],
    );
    assert.equal(scopeText(RANK, two), "focused rank");
    assert.equal(scopeText(GROUP, two), "focused rank's group");
  });
});
