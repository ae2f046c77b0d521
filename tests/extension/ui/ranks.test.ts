/** The Ranks view: states, the buttons of its rows, and what is said beside a line. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

const FILE = "torchrun_job.py";
const JOB = "torchrun, 2 ranks";

describe("The Ranks view", () => {
  scenario("shows who is paused and who has exited, and continues one rank from its row", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "done");
    await source.limit(FILE, "done", "1");
    await debug.start(JOB);
    await ranks.see(/^world 1/, /breakpoint|paused/);
    const { spoken } = await ranks.see(/^world 0/, /exited/);
    assert.match(spoken, /world 0, exited/);
    await ranks.summary(/2 ranks: 1 paused, 1 exited/);
    await debug.stoppedAt(FILE, source.line(FILE, "done"));
    const hover = await source.hover(FILE, "done");
    assert.match(hover, /Breakpoint of rank 1/);
    assert.match(hover, /world 1.*hit 1×/);
    await ranks.press(/^world 1/, "Continue");
    await debug.showConsole();
    await debug.console(/rank 1: last loss/);
    await debug.ended();
    assert.match(await ranks.welcome(), /No job runs/);
  });

  scenario("pauses a running rank from its row, and opens it with a click", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await debug.start("torchrun, long");
    await ranks.enlarge();
    await ranks.see(/^world 1/, /^(?!.*(breakpoint|paused|step))/);
    await ranks.press(/^world 1/, "Pause");
    await ranks.see(/^world 1/, /breakpoint|paused/);
    await ranks.click(/^world 1/);
    await debug.seeStack(/world 1.*PAUSED/i);
    await ranks.press(/^world 1/, "Continue");
    await ranks.see(/^world 1/, /^(?!.*(breakpoint|paused|step))/);
  });
});
