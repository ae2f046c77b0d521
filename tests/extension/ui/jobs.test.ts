/** The kinds of jobs that F5 starts, and what the Ranks view says of them. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

describe("F5", () => {
  scenario("on an unmodified Ray driver stops rank 2 only, and shows where the others are", async (window) => {
    const { source, debug, ranks } = window;
    await debug.show();
    assert.match(await ranks.welcome(), /No job runs/);
    await source.open("train.py");
    await source.addBreakpoint("train.py", "reduce");
    await source.limit("train.py", "reduce", "2");
    await debug.start("Ray driver");
    await debug.stoppedAt("train.py", source.line("train.py", "reduce"));
    assert.match(await debug.variable("loss"), /^\d+\.\d+$/);
    await debug.fold("Watch", "Breakpoints");
    await debug.widen();
    await ranks.enlarge();
    for (const rank of [0, 1, 3]) await ranks.see(new RegExp(`^Trainer ${rank}`), /in all_reduce/);
    await ranks.see(/^Trainer 2/, /breakpoint|paused/);
    await ranks.summary(/4 ranks: 1 paused, 3 in all_reduce/);
    await source.seeText("train.py", "reduce", /◀ Trainer 2.*@2 · hit 1×/);
    await window.press("Control+1"); // the keyboard's focus to the editor
    await window.screenshots("rank-stop");
    await source.removeBreakpoint("train.py", "reduce");
    await debug.press("Continue");
    await debug.terminal(/trained/);
    await debug.ended();
  });

  scenario("on a torchrun command stops all its ranks", async (window) => {
    const { source, debug, ranks } = window;
    await source.open("torchrun_job.py");
    await source.addBreakpoint("torchrun_job.py", "norm");
    await debug.start("torchrun");
    await debug.fold("Variables", "Watch", "Breakpoints");
    await ranks.enlarge();
    await ranks.summary(/4 ranks: 4 paused/);
    await debug.stoppedAt("torchrun_job.py", source.line("torchrun_job.py", "norm"));
    await window.screenshots("torchrun");
    for (const rank of [0, 1, 2, 3]) await debug.seeStack(new RegExp(`world ${rank}`));
    await source.removeBreakpoint("torchrun_job.py", "norm");
    await window.command("RankScope: Continue Stopped Ranks");
    await debug.terminal(/rank 3: last loss/);
    await debug.ended();
  });

  scenario("tells two groups with the same ranks apart", async (window) => {
    const { source, debug, ranks } = window;
    await source.open("two_groups.py");
    await source.addBreakpoint("two_groups.py", "judge");
    await source.limit("two_groups.py", "judge", "Critic/1");
    await debug.start("Two groups");
    await debug.stoppedAt("two_groups.py", source.line("two_groups.py", "judge"));
    assert.equal(await debug.variable("value"), "-1");
    await ranks.see(/^Critic 1/, /breakpoint|paused/);
    await ranks.see(/^Actor 1/, /^(?!.*breakpoint)/);
    await ranks.see(/^Critic 0/, /^(?!.*breakpoint)/);
  });
});
