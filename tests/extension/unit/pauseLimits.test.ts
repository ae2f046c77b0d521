import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { dueOf, lineOf, warningOf } from "../../../extension/src/core/pauseLimits";
import type { PausedFacts, PauseLimit } from "../../../extension/src/core/protocol";

function limit(secondsLeft: number | null, facts: Partial<PauseLimit> = {}): PauseLimit {
  return {
    what: "ray.get(timeout=60)",
    label: "driver train.py",
    member: "m0",
    secondsLeft,
    canRaise: false,
    fails: true,
    isOver: false,
    text: "",
    ...facts,
  };
}

function paused(...limits: PauseLimit[]): PausedFacts {
  return { pausedSeconds: 40, limits, limitsLeftOut: 0 };
}

describe("time-outs that run on while somebody is paused", () => {
  it("are counted down from what the hub told", () => {
    assert.equal(lineOf(paused(limit(20)), 2), "paused 42 s · ray.get(timeout=60) of driver train.py ends in 18 s");
  });

  it("say when nobody knows the end, when it is now, and when it has been", () => {
    const store = { what: "store.wait(timeout=300)", label: "actor 1" };
    assert.match(lineOf(paused(limit(null, store)), 2), / · store\.wait\(timeout=300\) of actor 1 may run out, /);
    assert.match(lineOf(paused(limit(1, store)), 2), /of actor 1 ends now$/);
    assert.match(lineOf(paused(limit(0, { ...store, isOver: true })), 2), /of actor 1 has run out$/);
  });

  it("are nothing when nobody is paused", () => {
    assert.equal(lineOf({}, 1), "");
    assert.equal(lineOf(paused(), 1), "");
    assert.deepEqual(dueOf({}, 1), []);
  });

  it("tell the two that end first, and count the others", () => {
    const many = [1, 2, 3, 4].map((at) => limit(100 * at, { label: `actor ${at}` }));
    assert.match(lineOf(paused(...many.slice(0, 3)), 0), /actor 1 .* · .*actor 2 .* · 1 more time-out$/);
    assert.match(lineOf({ ...paused(...many), limitsLeftOut: 30 }, 0), / · 32 more time-outs$/);
  });

  it("are warned of in the last half minute, if they fail something then", () => {
    const soon = limit(35);
    const all = paused(soon, limit(90), limit(null), limit(0, { isOver: true }), limit(20, { fails: false }));
    assert.deepEqual(dueOf(all, 0), []);
    assert.deepEqual(dueOf(all, 6), [soon]);
    assert.deepEqual(dueOf(all, 36), []); // too late for a warning
    assert.equal(warningOf(soon, 6), "A pause may fail the job: ray.get(timeout=60) of driver train.py ends in 29 s.");
  });
});
