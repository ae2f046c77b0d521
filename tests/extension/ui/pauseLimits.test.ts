/** Time-outs that run on while a rank is paused, as a person sees them. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

const FILE = "store_job.py";
const TOAST = /A pause may fail the job: store\.wait\(timeout=45\) of world 0 ends in/;

describe("A time-out that runs on while a rank is paused", () => {
  scenario("is counted down above the ranks, and warned of in time", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "set");
    await debug.start("A wait with a time-out");
    await ranks.see(/^world 1/, /breakpoint|paused/);
    const countdown = /^paused \d+ s · store\.wait\(timeout=45\) of world 0 ends in (\d+) s/;
    const first = countdown.exec(await ranks.message(countdown));
    const left = Number(first?.[1]);
    assert.ok(left <= 45);
    await ranks.message(new RegExp(`^paused .* ends in ${left - 3} s`));
    await window.screenshot("dark-time-out");
    assert.deepEqual((await window.notification(TOAST)).buttons, ["Continue Stopped Ranks"]);
    await window.answerNotification(TOAST, "Continue Stopped Ranks");
    await debug.showConsole();
    await debug.console(/rank 0: weights 0.5/);
    await debug.ended();
  });
});
