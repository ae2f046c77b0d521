import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { complaint, listed, remark } from "../../../extension/src/core/outcome";
import type { Outcome } from "../../../extension/src/core/protocol";

function outcome(facts: Partial<Outcome> = {}): Outcome {
  return { done: [], late: [], failed: {}, pending: [], absent: [], ...facts };
}

describe("what a request to many came to", () => {
  it("is not worth a word when everybody did as asked", () => {
    assert.equal(complaint("pause", outcome({ done: ["a"] })), undefined);
    assert.equal(remark("pause", outcome({ done: ["a"] })), undefined);
  });

  it("names who is late", () => {
    const some = outcome({ done: ["actor 0"], late: ["actor 1"] });
    assert.equal(complaint("pause", some), "1 of 2 has not paused in time: actor 1.");
    assert.equal(complaint("continue", outcome({ late: ["a"] })), "a has not continued in time.");
    assert.equal(complaint("next", outcome({ late: ["a", "b"] })), "2 of 2 have not stepped in time: a, b.");
  });

  it("names who could not, together when the reason is one", () => {
    const failed = { "actor 0": "it has ended", "actor 1": "it has ended", "actor 2": "Not armed." };
    assert.equal(
      complaint("pause", outcome({ failed })),
      "actor 0, actor 1 could not pause: it has ended. actor 2 could not pause: Not armed.",
    );
    assert.equal(
      complaint("runToCursor", outcome({ failed: { a: "line 3 has no code" } })),
      "a could not run to the cursor: line 3 has no code.",
    );
  });

  it("names what the set has and the job has not", () => {
    assert.equal(
      complaint("pause", outcome({ done: ["a"], absent: ["7", "critic/2"] })),
      "Not in the job: 7, critic/2.",
    );
  });

  it("only remarks on who arrives by himself, and where he is", () => {
    const pending = [
      { label: "actor 0", member: "m0", call: "all_reduce", waitsFor: ["actor 3"] },
      { label: "actor 1", member: "m1", call: "", waitsFor: [] },
    ];
    const some = outcome({ done: ["actor 2"], pending });
    assert.equal(complaint("next", some), undefined);
    assert.equal(
      remark("next", some),
      "1 of 3 stepped · step pending: actor 0 in all_reduce, waits for actor 3, actor 1",
    );
    assert.match(remark("pause", outcome({ pending })) ?? "", /^0 of 2 paused · pause pending: /);
  });

  it("remarks that nobody was concerned", () => {
    assert.equal(remark("next", outcome()), "None of these ranks is stopped.");
    assert.equal(remark("pause", outcome()), "Nobody to pause: none of these ranks runs.");
  });

  it("caps a long list and counts the rest", () => {
    const names = Array.from({ length: 24 }, (_, at) => `r${at}`);
    assert.match(listed(names), /^r0, r1, .*, r11 … and 12 more$/);
    assert.equal(listed(["a", "b"]), "a, b");
  });
});
