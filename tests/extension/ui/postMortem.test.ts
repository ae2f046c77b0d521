/** A rank that fails is held where it raised, and its run opens again when it is over. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

const FILE = "failing_job.py";

describe("A failure", () => {
  scenario("lands on the raising line, and is looked into again when the run is over", async (window) => {
    const { source, debug, ranks } = window;
    const line = source.line(FILE, "raise");
    await source.open(FILE);
    await debug.start("One rank fails");
    await debug.stoppedAt(FILE, line);
    assert.match(await debug.variable("loss"), /4\.0/);
    await ranks.see(/^world 0/, /in all_reduce/);
    const { text, buttons } = await window.notification(/world 1 failed/);
    assert.match(text, /ValueError: loss 4\.0 in step 4/);
    assert.ok(buttons.includes("Open post-mortem"), buttons.join());
    await window.screenshots("failure");
    await debug.press("Continue");
    await debug.ended();

    await window.command("RankScope: Open Run…");
    await window.pick(/^\d{4}-/);
    await debug.stoppedAt(FILE, line);
    assert.match(await debug.variable("step"), /4/);
    await ranks.see(/^world 0/, /failing_job\.py:\d+ in main/);
    await window.screenshots("post-mortem");
    await debug.press("Disconnect");
    await debug.ended();
  });
});
