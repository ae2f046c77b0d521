/** Breakpoints limited to ranks: set in the gutter, changed from the line number's menu, while nothing or a job runs. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

const FILE = "torchrun_job.py";
const JOB = "torchrun, 2 ranks";

describe("A breakpoint limited to ranks", () => {
  scenario("stops rank 0 only, with its values, after Rank 0 Only in the menu of the line number", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    const entries = await source.openLineMenu(FILE, "norm");
    for (const entry of ["Limit to Ranks…", "Rank 0 Only", "All Ranks"]) assert.ok(entries.includes(entry), entry);
    await source.chooseFromMenu("Rank 0 Only");
    await source.seeText(FILE, "norm", /@0$/);
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    assert.match(await debug.variable("loss"), /^\d+\.\d+$/);
    assert.equal(await debug.variable("rank"), "0");
    await ranks.see(/^world 0/, /breakpoint|paused/);
    await ranks.see(/^world 1/, /in all_reduce/);
    await ranks.summary(/2 ranks: 1 paused, 1 in all_reduce/);
    await source.seeText(FILE, "norm", /◀ world 0.*@0 · hit 1×/);
  });

  scenario("is edited and removed while the job runs", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    await ranks.summary(/2 ranks: 2 paused/);
    await source.openLineMenu(FILE, "norm");
    await source.chooseFromMenu("Limit to Ranks…");
    await window.tick("world 1");
    await source.seeText(FILE, "norm", /◀ world 0, world 1 │ @(world\/)?1$/);
    await window.command("RankScope: Continue Stopped Ranks");
    await ranks.summary(/2 ranks: 1 paused, 1 in all_reduce/);
    await ranks.see(/^world 1/, /breakpoint|paused/);
    await source.removeBreakpoint(FILE, "norm");
    await window.command("RankScope: Continue Stopped Ranks");
    await debug.showConsole();
    await debug.console(/rank 1: last loss/);
    await debug.ended();
  });

  scenario("says so, and stops nobody, when no such rank is there", async (window) => {
    const { source, debug } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await source.limit(FILE, "norm", "7");
    await source.addBreakpoint(FILE, "done");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "done"));
    await source.seeText(FILE, "norm", /no rank of this job is in @7/);
  });

  scenario("logs with its rank, and stops nobody, when it is a logpoint", async (window) => {
    const { source, debug } = window;
    await source.open(FILE);
    await source.reveal(FILE, "done");
    await window.command("Debug: Add Logpoint...");
    await source.fillBreakpointWidget("loss is {round(loss, 1)}");
    await source.seeBreakpoint(FILE, "done", /codicon-debug-breakpoint-log/);
    await debug.start(JOB);
    await debug.showConsole();
    await debug.console(/world 0.*loss is \d/);
    await debug.console(/world 1.*loss is \d/);
    await debug.ended();
  });
});
