import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { LogLines } from "../../../extension/src/core/logLines";

function read(...lines: string[]): [string, string][] {
  const reader = new LogLines();
  return lines.map((line) => reader.read(line));
}

describe("LogLines", () => {
  it("takes the level from a line, and continues it on lines that are indented", () => {
    assert.deepEqual(read("INFO rankscope.hub: ready", "  on a socket", "ERROR:rankscope.dap:lost", "CRITICAL: end"), [
      ["info", "rankscope.hub: ready"],
      ["info", "  on a socket"],
      ["error", "rankscope.dap:lost"],
      ["error", "end"],
    ]);
  });

  it("takes a whole traceback as an error, and nothing after it", () => {
    const traceback = ["Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: no"];
    assert.deepEqual(
      read("DEBUG x", ...traceback, "sh: 1: warning").map(([level]) => level),
      ["debug", "error", "error", "error", "warning"],
    );
  });

  it("leaves alone a word that only begins like a level", () => {
    assert.deepEqual(read("INFORMATION about"), [["warning", "INFORMATION about"]]);
  });
});
