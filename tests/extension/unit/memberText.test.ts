import assert from "node:assert/strict";
import { describe, it } from "node:test";

import * as text from "../../../extension/src/core/memberText";
import { driver, frame, member, paused } from "./members";

describe("the description of a member", () => {
  const cases: [string, string][] = [
    ["running", text.describe(member())],
    ["train.py:42 in step", text.describe(member(), { frame: frame() })],
    ["train.py:42", text.describe(member(), { frame: frame({ name: "<module>" }) })],
    ["running", text.describe(member(), { frame: null })],
    ["in all_reduce · train.py:42", text.describe(member(), { frame: frame({ call: "all_reduce" }) })],
    ["running · no answer", text.describe(member(), { isLate: true })],
    ["train.py:42 in step · breakpoint", text.describe(paused(member()), { frame: frame() })],
    ["train.py:42 in step · paused", text.describe(paused(member(), "pause"), { frame: frame() })],
    ["paused · ValueError", text.describe(paused(member(), "exception", "ValueError"))],
    ["paused · exception", text.describe(paused(member(), "exception"))],
    [
      "train.py:42 in step · ValueError · goes on in 29 min",
      text.describe(
        { ...paused(member(), "exception", "ValueError"), heldSeconds: 1760 },
        { frame: frame(), age: 20.5 },
      ),
    ],
    ["paused · goes on in 5 s", text.describe({ ...paused(member(), "pause"), heldSeconds: 30 }, { age: 25 })],
    [
      "in all_reduce, waits for 3 · step pending · train.py:42",
      text.describe(member({ pending: { action: "next", waitsFor: ["actor 3 · node-0"] } }), {
        frame: frame({ call: "all_reduce" }),
      }),
    ],
    [
      "pause pending · train.py:42 in step",
      text.describe(member({ pending: { action: "pause", waitsFor: [] } }), { frame: frame() }),
    ],
    ["on the way to the cursor", text.describe(member({ pending: { action: "runToCursor", waitsFor: [] } }))],
    [
      "at barrier, waits for 1, critic 0 · train.py:42 in step",
      text.describe({ ...paused(member()), barrier: ["actor 1", "critic 0"] }, { frame: frame() }),
    ],
    [
      "waits for actor 2 in all_reduce (#7 of default_pg) · train.py:42",
      text.describe(member({ stuck: "waits for actor 2 in all_reduce (#7 of default_pg)" }), {
        frame: frame({ call: "all_reduce" }),
      }),
    ],
    [
      "3 wait for it in all_reduce (#7 of default_pg) · train.py:42",
      text.describe(member({ stuck: "3 wait for it in all_reduce (#7 of default_pg)" }), { frame: frame() }),
    ],
    ["train.py:42 in step · breakpoint", text.describe({ ...paused(member()), stuck: "waits" }, { frame: frame() })],
    ["starting", text.describe(member({ state: "starting" }))],
    ["exited", text.describe(member({ state: "exited" }), { frame: frame() })],
    ["exited: killed by SIGKILL", text.describe(member({ state: "exited", ending: "killed by SIGKILL" }))],
    ["crashed: ValueError: bad batch", text.describe(member({ state: "crashed", ending: "ValueError: bad batch" }))],
    ["crashed", text.describe(member({ state: "crashed" }))],
    ["lost", text.describe(member({ state: "lost" }), { isLate: true })],
    ["running · never stops", text.describe(member({ isGreyed: true }))],
    ["running · provisional", text.describe(member({ isFinal: false }))],
    ["running", text.describe(driver({ isFinal: false }))],
    ["train.py:3 in f", text.describe(member(), { frame: frame({ path: "C:\\job\\train.py", line: 3, name: "f" }) })],
  ];
  for (const [expected, found] of cases) {
    it(expected, () => {
      assert.equal(found, expected);
    });
  }
});

describe("a member", () => {
  it("goes without its node where the node has a level of its own", () => {
    assert.equal(text.shortLabel(member({ rank: 2, label: "actor 2 · node-1", node: 1 })), "actor 2");
    assert.equal(text.shortLabel(driver({ node: null })), "driver train.py");
  });

  it("is spoken in words", () => {
    const spoken = text.speak(paused(member({ rank: 2 })), { frame: frame() });
    assert.equal(spoken, "actor 2, paused, breakpoint, train.py line 42, in step");
    assert.equal(text.speak(member({ rank: 1, isFinal: false })), "actor 1, running, rank is provisional");
  });

  it("has the words of the menus' `when` clauses", () => {
    assert.equal(text.contextOf(member()), "rank running");
    assert.equal(text.contextOf(paused(driver())), "driver paused");
    assert.equal(text.contextOf(member({ pending: { action: "pause", waitsFor: [] } })), "rank pending");
    assert.equal(text.contextOf(member({ role: "child", state: "crashed" })), "child ended");
    assert.equal(text.contextOf(member({ isGreyed: true })), "rank greyed");
    assert.equal(text.contextOf(member({ isGreyed: true, state: "exited" })), "rank ended");
  });

  it("has an icon per state, and is grey outside `ranks`", () => {
    const states = ["starting", "running", "paused", "exited", "crashed", "lost"] as const;
    const icons = states.map((state) => text.iconOf(member({ state })).name);
    const blocked = text.iconOf(member(), { frame: frame({ call: "barrier" }) }).name;
    assert.equal(new Set([...icons, blocked]).size, states.length + 1);
    assert.equal(text.iconOf(member({ isGreyed: true })).color, "disabledForeground");
  });

  it("tells its facts as Markdown, with names escaped", () => {
    const told = text.factsOf(
      member({ rank: 1, worldSize: 4, group: "my_group", label: "my_group 1", isFinal: false }),
      {
        frame: frame({ name: "__init__" }),
      },
    );
    assert.match(told, /^\*\*my\\_group 1\*\*\n\n- state: running/);
    assert.match(told, /- rank: 1 of 4 \\\(provisional\\\)/);
    assert.match(told, /- debugger: not attached/);
    assert.match(told, /- frame: \\_\\_init\\_\\_ · \/home\/me\/project\/train\.py:42$/);
    assert.doesNotMatch(told, /incarnation|stops:|null|undefined/);
  });
});
