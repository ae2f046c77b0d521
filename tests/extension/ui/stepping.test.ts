/** Stopped ranks: step, continue, restart, stop; what other ranks do meanwhile does not disturb. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { harness } from "./harness.js";
import { jobProcesses } from "./processes.js";
import { scenario } from "./scenario.js";

const FILE = "torchrun_job.py";
const JOB = "torchrun, 2 ranks";

describe("A stopped rank", () => {
  scenario("steps into and out of a call, and continues to the end of the job", async (window) => {
    const { source, debug, ranks } = window;
    const norm = source.line(FILE, "norm");
    await source.open(FILE);
    await source.addBreakpoint(FILE, "call");
    await source.openLineMenu(FILE, "call");
    await source.chooseFromMenu("Rank 0 Only");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "call"));
    await debug.press("Step Into");
    await debug.stoppedAt(FILE, source.line(FILE, "error"));
    await debug.press("Step Out");
    await debug.press("Step Over");
    await debug.stoppedAt(FILE, norm);
    await source.removeBreakpoint(FILE, "call");
    await debug.press("Continue");
    await debug.console(/rank 1: last loss/);
    await debug.ended();
    await ranks.welcome();
  });

  scenario("answers the debug console in its own frame", async (window) => {
    const { source, debug } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await source.limit(FILE, "norm", "1");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    await debug.showConsole();
    await debug.evaluate("1000 + rank");
    await debug.console(/^1001$/);
  });

  scenario("keeps the focus while other ranks stop", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await source.openLineMenu(FILE, "norm");
    await source.chooseFromMenu("Rank 0 Only");
    await source.addBreakpoint(FILE, "update");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    await ranks.see(/^world 1/, /in all_reduce/);
    await debug.press("Step Over");
    await debug.press("Step Over");
    await debug.stoppedAt(FILE, source.line(FILE, "update"));
    await ranks.see(/^world 1/, /breakpoint|paused/);
    await debug.stoppedAt(FILE, source.line(FILE, "update"));
    assert.equal(await debug.variable("rank"), "0");
  });

  scenario("comes back after Restart", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await source.openLineMenu(FILE, "norm");
    await source.chooseFromMenu("Rank 0 Only");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    const before = jobProcesses(harness().mark).map(({ pid }) => pid);
    await debug.press("Restart");
    await window.until("the first job's ranks to end", () =>
      Promise.resolve(jobProcesses(harness().mark).every(({ pid, argv }) => !before.includes(pid) || isHub(argv))),
    );
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    assert.equal(await debug.variable("rank"), "0");
    await ranks.see(/^world 0/, /breakpoint|paused/);
  });

  scenario("leaves no process when Stop is pressed", async (window) => {
    const { source, debug } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await debug.start("torchrun");
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    assert.ok(jobProcesses(harness().mark).length >= 6); // hub, torchrun, four ranks
    await debug.press("Stop");
    await debug.ended();
    await window.until("every process of the job to end", () =>
      Promise.resolve(jobProcesses(harness().mark).length === 0),
    );
  });
});

function isHub(argv: readonly string[]): boolean {
  return argv.includes("rankscope.hub");
}
