/** Ranks that hang each other: what is told, what the rows say, and why it is stuck. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

const JOB = "One rank hangs";
const FILE = "hanging_job.py";

describe("A hang", () => {
  scenario("is told with both lines, marked in the Ranks view, and goes when the rank comes", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await debug.start(JOB);
    const sentence = /world 0,1,3 wait in all_reduce .* for world 2/;
    const { text, buttons } = await window.notification(sentence, 90_000);
    assert.match(text, new RegExp(`at ${FILE}:${source.line(FILE, "elsewhere")} in load_batch`));
    assert.deepEqual(buttons, ["Show details", "Go to line"]);
    await ranks.see(/^world 0/, /waits for world 2 in all_reduce/);
    const line = new RegExp(`line ${source.line(FILE, "reduce")}`);
    await window.until("the row to say its line", async () => {
      return (await ranks.all()).some(({ label, spoken }) => label.startsWith("world 0") && line.test(spoken));
    });
    await ranks.see(/^world 2/, /3 wait for it in all_reduce/);
    await ranks.summary(/4 ranks: 4 stuck/);
    await debug.widen(160);
    await window.screenshots("hang");
    await window.answerNotification(sentence, "Show details");
    await window.see("the page", window.page.locator(".tab.active[aria-label*='Why is it stuck']"));
    await window.command("RankScope: Why Is It Stuck?");
    await window.notification(sentence);
    writeFileSync(join(window.workspace, "go"), "");
    await debug.showConsole();
    await debug.console(/rank 2: done/);
    await debug.ended();
  });
});
