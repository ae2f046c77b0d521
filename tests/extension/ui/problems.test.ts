/** The Problems panel: a mistake that is underlined while it is written, and what a run has found. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";
import { JOB_MS, plain } from "./window.js";
import type { Workbench } from "./workbench.js";

const MISTAKE = "mistake.py";
const FAILING = "failing_job.py";
const MOST_ACTIONS = 8;

/** The texts of the Problems panel, which is opened if need be. */
async function problems(window: Workbench): Promise<string[]> {
  const rows = window.page.locator(".markers-panel .monaco-list-row");
  if (!(await window.page.locator(".markers-panel").isVisible())) await window.press("Control+Shift+m");
  return (await rows.allInnerTexts()).map((text) => plain(text.replaceAll(/\s*\n\s*/g, " ")));
}

async function seeProblem(window: Workbench, text: RegExp, ms?: number): Promise<string> {
  return window.until(
    `${text} in the Problems panel`,
    async () => (await problems(window)).find((row) => text.test(row)),
    ".markers-panel",
    ms,
  );
}

/** Run an action of the light bulb at a marked line. */
async function quickFix(window: Workbench, file: string, mark: string, title: string): Promise<void> {
  await window.source.reveal(file, mark);
  await window.press("End");
  const row = window.page.locator(".action-widget .monaco-list-row", { hasText: title });
  await window.until(`the action '${title}'`, async () => {
    await window.press("Escape", "Control+.");
    await row.waitFor({ state: "visible", timeout: 3000 });
    for (let at = 0; at < MOST_ACTIONS; at += 1) {
      if (/\bfocused\b/.test((await row.getAttribute("class")) ?? "")) {
        await window.press("Enter");
        return true;
      }
      await window.press("ArrowDown");
    }
    return false;
  });
}

describe("The Problems panel", () => {
  scenario("underlines a mistake while it is written, and switches the rule off in its line", async (window) => {
    await window.source.open(MISTAKE);
    const squiggles = window.page.locator(".editor-instance .squiggly-warning");
    await window.see("a squiggle", squiggles, JOB_MS);
    await seeProblem(window, /barrier.*waits for every rank.*RankScope.*collective-on-some-ranks/);
    await window.screenshots("problem-lint");
    await quickFix(window, MISTAKE, "barrier", "Disable this rule on this line");
    await window.source.seeText(MISTAKE, "barrier", /rankscope: ignore\[collective-on-some-ranks\]/);
    await window.until("the squiggle to go", async () => (await squiggles.count()) === 0);
    await window.command("File: Revert File");
    await window.see("the squiggle again", squiggles);
  });

  scenario("keeps what a run has found, after the window was closed too, until it is cleared", async (window) => {
    const { source, debug } = window;
    await source.open(FAILING);
    await debug.start("One rank fails");
    await debug.stoppedAt(FAILING, source.line(FAILING, "raise"));
    await seeProblem(window, /world 1 failed: ValueError: loss 4\.0 in step 4.*RankScope.*crash/, JOB_MS);
    await debug.press("Continue");
    await debug.ended();
    await window.page.reload(); // the file is opened again
    const found = await seeProblem(window, /world 1 failed: ValueError/, JOB_MS);
    assert.match(found, /\[Ln \d+, Col \d+\]/);
    await window.see("its squiggle", window.page.locator(".editor-instance .squiggly-error"));
    await window.screenshots("problem-finding");
    await quickFix(window, FAILING, "raise", "Break on the deviating ranks");
    await source.seeText(FAILING, "raise", /@world\/1/);
    await source.seeBreakpoint(FAILING, "raise");
    await window.command("RankScope: Clear Findings");
    await window.until(
      "the finding to go",
      async () => !(await problems(window)).some((row) => row.includes("failed:")),
    );
    await source.removeBreakpoint(FAILING, "raise");
  });
});
