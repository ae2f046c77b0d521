import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, describe, it } from "node:test";

import { findOnPath } from "../../../extension/src/core/python";
import { HubError, type HubOptions, HubProcess } from "../../../extension/src/debug/hubProcess";

const ROOT = resolve(__dirname, "..", "..", "..", "..");
const PYTHON = existsSync(join(ROOT, ".venv", "bin", "python"))
  ? join(ROOT, ".venv", "bin", "python")
  : (findOnPath(["python3"]) ?? "python3");

const scratch = mkdtempSync(join(tmpdir(), "rankscope-test-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

/** A package folder whose hub is this program. */
function hubThat(name: string, program: string): string {
  const folder = join(scratch, name);
  mkdirSync(join(folder, "rankscope", "hub"), { recursive: true });
  writeFileSync(join(folder, "rankscope", "__init__.py"), "");
  writeFileSync(join(folder, "rankscope", "hub", "__init__.py"), "");
  writeFileSync(join(folder, "rankscope", "hub", "__main__.py"), program);
  return folder;
}

function options(more: Partial<HubOptions> = {}): HubOptions & { said: [string, string][] } {
  const said: [string, string][] = [];
  return {
    python: PYTHON,
    packageFolder: join(ROOT, "python_adapter"),
    environment: process.env,
    seconds: 60,
    log: (level, text) => said.push([level, text]),
    said,
    ...more,
  };
}

function hasSaid({ said }: { said: [string, string][] }, level: string, text: string): boolean {
  return said.some(([itsLevel, itsText]) => itsLevel === level && itsText === text);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function failureOf(start: Promise<HubProcess>): Promise<HubError> {
  try {
    await (await start).kill();
  } catch (error) {
    if (error instanceof HubError) return error;
    throw error;
  }
  throw new assert.AssertionError({ message: "the hub started" });
}

/** The pid that a fake hub says on its standard error. */
function pidIn(said: [string, string][]): number {
  return Number(said.map(([, text]) => /^pid (\d+)$/.exec(text)?.[1]).find((pid) => pid !== undefined));
}

describe("HubProcess", () => {
  it("starts the hub in a private folder, takes connections, and leaves nothing", async () => {
    const hub = await HubProcess.start(options());
    assert.equal(statSync(dirname(hub.pipe)).mode & 0o777, 0o700);
    const socket = connect(hub.pipe);
    await once(socket, "connect");
    socket.destroy();
    await hub.end();
    assert.deepEqual(await hub.ended, { why: "it ended with 0", isExpected: true });
    assert.equal(isRunning(hub.pid), false);
    assert.equal(existsSync(dirname(hub.pipe)), false);
  });

  it("two hubs do not meet", async () => {
    const hubs = await Promise.all([HubProcess.start(options()), HubProcess.start(options())]);
    assert.notEqual(hubs[0].pipe, hubs[1].pipe);
    await Promise.all(hubs.map((hub) => hub.end()));
  });

  it("tells of a hub that dies", async () => {
    const told = options();
    const hub = await HubProcess.start(told);
    process.kill(hub.pid, "SIGKILL");
    assert.deepEqual(await hub.ended, { why: "it was ended by SIGKILL", isExpected: false });
    assert.ok(hasSaid(told, "error", `hub ${hub.pid}: it was ended by SIGKILL`));
    assert.equal(existsSync(dirname(hub.pipe)), false);
  });

  it("ends a hub that is deaf to a polite end", async () => {
    const deaf = `import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('{"ready": true}', flush=True)\ntime.sleep(600)\n`;
    const hub = await HubProcess.start(options({ packageFolder: hubThat("deaf", deaf), politeSeconds: 0.2 }));
    await hub.end();
    assert.equal(isRunning(hub.pid), false);
  });

  it("releases a hub that does not answer by ending it, and leaves one that does", async () => {
    const deaf = `import time\nprint('{"ready": true}', flush=True)\ntime.sleep(600)\n`;
    const silent = await HubProcess.start(options({ packageFolder: hubThat("silent", deaf), freeEndSeconds: 0.1 }));
    await silent.release();
    assert.equal(isRunning(silent.pid), false);

    const told = options({ freeEndSeconds: 0.1 });
    const lively = await HubProcess.start(told);
    const socket = connect(lively.pipe);
    await once(socket, "connect");
    await lively.release();
    assert.ok(hasSaid(told, "info", `hub ${lively.pid} serves another client`));
    socket.destroy();
    await lively.end();
  });

  it("says what module is missing", async () => {
    const failure = await failureOf(
      HubProcess.start(options({ packageFolder: hubThat("missing", "import no_such_module\n") })),
    );
    assert.equal(failure.missingModule, "no_such_module");
    assert.match(failure.message, /^The hub did not start: it ended with 1\.$/);
    assert.match(failure.lastWords, /ModuleNotFoundError/);
  });

  it("repeats what the hub says when it cannot listen", async () => {
    const program = `print('{"ready": false, "code": "editor-socket", "message": "The hub cannot listen."}')\n`;
    const failure = await failureOf(HubProcess.start(options({ packageFolder: hubThat("refuses", program) })));
    assert.equal(failure.message, "The hub did not start: The hub cannot listen.");
  });

  const hangs = `import os, sys, time\nprint("pid", os.getpid(), file=sys.stderr, flush=True)\ntime.sleep(600)\n`;

  it("ends a start that hangs", async () => {
    const told = options({ packageFolder: hubThat("hangs", hangs), seconds: 1 });
    const failure = await failureOf(HubProcess.start(told));
    assert.match(failure.message, /^The hub did not start: it was not ready within 1 seconds\.$/);
    assert.equal(isRunning(pidIn(told.said)), false);
  });

  it("really cancels", async () => {
    const controller = new AbortController();
    const said: [string, string][] = [];
    const log: HubOptions["log"] = (level, text) => {
      said.push([level, text]);
      if (text.startsWith("pid ")) controller.abort();
    };
    const start = HubProcess.start(options({ packageFolder: hubThat("slow", hangs), signal: controller.signal, log }));
    await assert.rejects(start, { name: "AbortError" });
    assert.equal(isRunning(pidIn(said)), false);
    await assert.rejects(HubProcess.start(options({ signal: controller.signal })), { name: "AbortError" });
  });

  it("says that there is no such Python", async () => {
    const failure = await failureOf(HubProcess.start(options({ python: "/no/such/python" })));
    assert.match(failure.message, /ENOENT/);
  });
});
