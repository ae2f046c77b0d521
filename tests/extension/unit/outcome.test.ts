import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { complaint, listed } from "../../../extension/src/core/outcome";

describe("what a request to many came to", () => {
  it("is not worth a word when everybody did as asked", () => {
    assert.equal(complaint("pause", { done: ["a"], late: [], failed: {} }), undefined);
  });

  it("names who is late, and why that may be", () => {
    assert.equal(
      complaint("pause", { done: ["actor 0"], late: ["actor 1"], failed: {} }),
      "1 of 2 has not paused in time: actor 1. A rank in a blocking call pauses when the call returns.",
    );
    assert.equal(complaint("continue", { done: [], late: ["a"], failed: {} }), "a has not continued in time.");
    assert.equal(
      complaint("continue", { done: [], late: ["a", "b"], failed: {} }),
      "2 of 2 have not continued in time: a, b.",
    );
  });

  it("names who could not, together when the reason is one", () => {
    const failed = { "actor 0": "it has ended", "actor 1": "it has ended", "actor 2": "Not armed." };
    assert.equal(
      complaint("pause", { done: [], late: [], failed }),
      "actor 0, actor 1 could not pause: it has ended. actor 2 could not pause: Not armed.",
    );
  });

  it("caps a long list and counts the rest", () => {
    const names = Array.from({ length: 24 }, (_, at) => `r${at}`);
    assert.match(listed(names), /^r0, r1, .*, r11 … and 12 more$/);
    assert.equal(listed(["a", "b"]), "a, b");
  });
});
