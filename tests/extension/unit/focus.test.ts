import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { memberAt, sessionName } from "../../../extension/src/core/focus";
import { child, driver, member, ranks } from "./members";

describe("the member at a place of the call stack", () => {
  it("is the rank of a session of one rank, though its children share the session", () => {
    const [first, second] = ranks(2);
    assert(first && second);
    assert.equal(memberAt([first, second, child(second)], "actor/1", 7), second);
  });

  it("is told by the thread in a session of several", () => {
    const found = ranks(3, { session: "actor/all" }).map((m, at) => ({ ...m, threadIds: [at + 1] }));
    assert.equal(memberAt(found, "actor/all", 2), found[1]);
    assert.equal(memberAt(found, "actor/all"), undefined);
    assert.equal(memberAt(found, "actor/all", 9), undefined);
  });

  it("is the driver in the root session, or a rank without a session of its own", () => {
    const late = member({ hasSession: false, threadIds: [4] });
    const [main, other] = [driver({ threadIds: [1] }), member({ rank: 1 })];
    assert.equal(memberAt([main, other], ""), main);
    assert.equal(memberAt([main, other, late], "", 4), late);
    assert.equal(memberAt([main, other, late], "", 1), main);
  });

  it("is none that has ended", () => {
    const old = member({ state: "crashed" });
    const next = member({ incarnation: 1 });
    assert.equal(memberAt([old, next], "actor/0"), next);
    assert.equal(memberAt([old], "actor/0"), undefined);
  });
});

describe("the name of a session", () => {
  it("is its rank's label, and what VS Code does not tell of it", () => {
    const rank = member({ rank: 2, label: "actor 2 · node-1" });
    const name = (facts: object, call = ""): string => sessionName("actor/2", [{ ...rank, ...facts }], () => call);
    assert.equal(name({}), "actor 2 · node-1");
    assert.equal(name({}, "all_reduce"), "actor 2 · node-1 · in all_reduce");
    assert.equal(name({ state: "paused" }, "all_reduce"), "actor 2 · node-1");
    assert.equal(name({ state: "crashed" }), "actor 2 · node-1 · crashed");
    assert.equal(
      sessionName("actor/2", [], () => ""),
      "actor/2",
    );
  });

  it("is the group's with how many ranks it has", () => {
    assert.equal(
      sessionName("actor/all", ranks(20, { session: "actor/all" }), () => ""),
      "actor · 20 ranks",
    );
    assert.equal(
      sessionName("all", [], () => ""),
      "all ranks",
    );
  });
});
