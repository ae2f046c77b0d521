import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, describe, it } from "node:test";

import { environmentFor, findOnPath, Probes, PythonError } from "../../../extension/src/core/python";

const folder = mkdtempSync(join(tmpdir(), "rankscope-test-"));
after(() => {
  rmSync(folder, { recursive: true });
});

/** A program that stands for a Python. */
function program(name: string, ...lines: string[]): string {
  const file = join(folder, name);
  writeFileSync(file, ["#!/bin/sh", ...lines, ""].join("\n"));
  chmodSync(file, 0o755);
  return file;
}

function saying(version: string, executable = "/opt/python/bin/python"): string {
  return `printf '%s\\n%s' '${executable}' '${version}'`;
}

async function failureOf(...argv: string[]): Promise<PythonError> {
  try {
    await new Probes().probe(argv);
  } catch (error) {
    if (error instanceof PythonError) return error;
    throw error;
  }
  throw new assert.AssertionError({ message: "the probe succeeded" });
}

describe("Probes", () => {
  it("asks a real Python, also with options", async (context) => {
    const python = findOnPath(["python3"]);
    if (python === undefined) {
      context.skip("no python3");
      return;
    }
    const found = await new Probes().probe([python, "-X", "dev"]);
    assert.ok(existsSync(found.executable));
    assert.match(found.version, /^3\.\d+\.\d+$/);
    assert.deepEqual(found.argv, [python, "-X", "dev"]);
    const named = await new Probes().probe(["python3"]);
    assert.deepEqual(named.argv, [python]);
  });

  it("takes the interpreter behind a launcher", async () => {
    const launcher = program("launcher", `[ "$1 $2" = "run python" ] || exit 3`, saying("3.12.1", "/venv/bin/python"));
    const found = await new Probes().probe([launcher, "run", "python"]);
    assert.equal(found.executable, "/venv/bin/python");
  });

  it("asks once, and again when the file has changed", async () => {
    const asked = join(folder, "asked");
    const python = program("counting", `echo x >> ${asked}`, saying("3.11.0"));
    const probes = new Probes();
    const first = await probes.probe([python]);
    rmSync(asked);
    assert.deepEqual(await probes.probe([python]), first);
    assert.equal(existsSync(asked), false);
    utimesSync(python, 1, 1);
    await probes.probe([python]);
    assert.equal(existsSync(asked), true);
  });

  const old: [string, RegExp][] = [
    ["3.9.18", /is Python 3\.9\.18; RankScope needs 3\.10 or newer\.$/],
    ["2.7.18", /is Python 2\.7\.18/],
  ];
  for (const [version, message] of old) {
    it(`refuses Python ${version}`, async () => {
      assert.match((await failureOf(program(`old-${version}`, saying(version)))).message, message);
    });
  }

  it("takes a Python that is newer than the tested ones", async () => {
    assert.equal((await new Probes().probe([program("new", saying("3.21.0"))])).version, "3.21.0");
  });

  it("says what is wrong with one that cannot be used", async () => {
    assert.match((await failureOf(join(folder, "none"))).message, /none' does not exist\.$/);
    const dangling = join(folder, "dangling");
    symlinkSync(join(folder, "gone"), dangling);
    assert.match((await failureOf(dangling)).message, /is a link to a Python that is gone\.$/);
    assert.match((await failureOf("no-such-python-anywhere")).message, /no program 'no-such-python-anywhere' on PATH/);
    const broken = await failureOf(program("broken", "echo 'no module named encodings' >&2", "exit 7"));
    assert.match(broken.message, /does not run \(exit code 7\)\.$/);
    assert.equal(broken.detail, "no module named encodings");
    assert.match((await failureOf(program("other", "echo hello"))).message, /is not a Python interpreter\.$/);
    const plain = join(folder, "plain");
    writeFileSync(plain, "");
    assert.match((await failureOf(plain)).message, /cannot be started\.$/);
  });

  it("stops asking when it is cancelled", async () => {
    const controller = new AbortController();
    const asking = new Probes().probe([program("slow", "exec sleep 60")], controller.signal);
    controller.abort();
    await assert.rejects(asking, { name: "AbortError" });
  });
});

describe("environmentFor", () => {
  const base = {
    PATH: ["/usr/bin", "/bin"].join(delimiter),
    HOME: "/home/me",
    RANKSCOPE_JOB: "1",
    RANKSCOPE_TEST: "t",
  };

  it("leaves out what is the editor's, and the marks of an outer job", () => {
    const editor = { ELECTRON_RUN_AS_NODE: "1", VSCODE_PID: "7", VSCODE_PORTABLE: "/p", SNAP: "/snap", SNAPSHOT: "s" };
    assert.deepEqual(environmentFor("/usr/bin/python3", false, { ...base, ...editor }), {
      PATH: base.PATH,
      HOME: "/home/me",
      RANKSCOPE_TEST: "t",
      VSCODE_PORTABLE: "/p",
      SNAPSHOT: "s",
    });
  });

  it("activates the chosen interpreter's environment", () => {
    const venv = join(folder, "venv");
    mkdirSync(join(venv, "bin"), { recursive: true });
    writeFileSync(join(venv, "pyvenv.cfg"), "");
    const environment = environmentFor(join(venv, "bin", "python"), true, base);
    assert.equal(environment.PATH, [join(venv, "bin"), "/usr/bin", "/bin"].join(delimiter));
    assert.equal(environment.VIRTUAL_ENV, venv);
    assert.equal(environment.CONDA_PREFIX, undefined);
    const again = environmentFor(join(venv, "bin", "python"), true, environment);
    assert.equal(again.PATH, environment.PATH);
  });

  it("knows a conda environment", () => {
    const conda = join(folder, "conda");
    mkdirSync(join(conda, "conda-meta"), { recursive: true });
    const environment = environmentFor(join(conda, "bin", "python"), true, base);
    assert.deepEqual([environment.CONDA_PREFIX, environment.VIRTUAL_ENV], [conda, undefined]);
  });
});
