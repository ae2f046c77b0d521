import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";

import { findHub, readAddress } from "../../../extension/src/core/runs";

const base = mkdtempSync(join(tmpdir(), "rankscope-test-"));
after(() => {
  rmSync(base, { recursive: true });
});

function record(folder: string, name: string, about: unknown): string {
  const run = join(base, folder, ".rankscope", "runs", name);
  mkdirSync(run, { recursive: true });
  writeFileSync(join(run, "run.json"), typeof about === "string" ? about : JSON.stringify(about));
  return run;
}

function hub(editor: string, pid = process.pid): object {
  return { hub: { pid, editor } };
}

describe("readAddress", () => {
  it("reads both kinds, and nothing else", () => {
    assert.deepEqual(readAddress("unix:/tmp/a b/editor"), { kind: "unix", path: "/tmp/a b/editor" });
    assert.deepEqual(readAddress("tcp:5679"), { kind: "tcp", port: 5679 });
    for (const text of ["", "unix:", "tcp:", "tcp:0", "tcp:65536", "tcp:1x", "/tmp/run"]) {
      assert.equal(readAddress(text), undefined, text);
    }
  });
});

describe("findHub", () => {
  const first = join(base, "first");
  const second = join(base, "second");
  const named = record("first", "20260101-100000-1-old", hub("unix:/old"));
  record("first", "20260101-120000-1-newer", hub("unix:/newer"));
  record("first", "20260101-130000-1-ended", { hub: null });
  record("first", "20260101-140000-1-killed", hub("unix:/killed", 2 ** 30));
  record("first", "20260101-150000-1-torn", '{"hub": {"pid"');
  record("second", "20260101-110000-1-other", hub("tcp:77"));
  const gone = record("second", "20260101-160000-1-gone", { hub: null });

  it("takes the newest run that goes on, of all folders", () => {
    assert.deepEqual(findHub("", [first]), { kind: "unix", path: "/newer" });
    assert.deepEqual(findHub("", [second]), { kind: "tcp", port: 77 });
    assert.deepEqual(findHub("", [second, first]), { kind: "unix", path: "/newer" });
    assert.equal(findHub("", [join(base, "none")]), undefined);
    assert.equal(findHub("", []), undefined);
  });

  it("takes the run or the address that is named", () => {
    assert.deepEqual(findHub(named, [second]), { kind: "unix", path: "/old" });
    assert.deepEqual(findHub(".rankscope/runs/20260101-110000-1-other", [first, second]), { kind: "tcp", port: 77 });
    assert.deepEqual(findHub("tcp:5679", []), { kind: "tcp", port: 5679 });
    assert.equal(findHub(gone, [first]), undefined);
    assert.equal(findHub("tcp:x", [first]), undefined);
  });
});
