/** One expression over the ranks of a real job: numbers, tensors, and what is asked again at the next stop. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";
import { panelOf } from "./webview.js";

const FILE = "torchrun_job.py";

describe("Comparing ranks", () => {
  scenario("puts a variable of four ranks side by side, and follows their stops", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await debug.start("torchrun");
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    await ranks.summary(/4 ranks: 4 paused/);
    await debug.variable("loss");
    await debug.openVariableMenu("loss", "Compare over Ranks");
    const panel = await panelOf(window, "Compare Ranks", "compare");
    const heading = panel.locator("h2").first();
    await heading.getByText(/^loss: 4 different answers from 4 ranks$/).waitFor();
    assert.match(await panel.locator(".legend").innerText(), /min\s+[\d.]+\s+mean\s+[\d.]+\s+max\s+[\d.]+/);
    assert.equal(await panel.locator(".rows > .row").count(), 4);
    await window.press("Control+j"); // the terminal gives way
    await window.screenshots("compare-loss");

    const expression = panel.locator("input.code").first();
    await expression.fill("gradient");
    await expression.press("Enter");
    await panel.locator("button[role=columnheader]", { hasText: "Digest" }).waitFor();
    await panel.locator("select").last().selectOption({ label: "world 0" });
    await panel.locator("button[role=columnheader]", { hasText: "max |Δ|" }).waitFor();
    await window.screenshots("compare-gradient");

    await expression.fill("weights.shape");
    await expression.press("Enter");
    await heading.getByText(/^weights\.shape: 4 ranks agree$/).waitFor();
    await expression.fill("step");
    await expression.press("Enter");
    const step = panel.locator(".group", { hasText: /^4/ });
    await step.getByText("0", { exact: true }).waitFor();
    await ranks.pressTitle("Continue");
    await step.getByText("1", { exact: true }).waitFor({ timeout: 20_000 }); // asked again at their next stop
    await source.removeBreakpoint(FILE, "norm");

    // The window is closed with its job, and opened again. A browser that is closed at once may lose which tabs were open.
    await window.page.reload();
    const tab = window.page.locator('.tab.active[data-resource-name^="Compare Ranks"]');
    await tab.waitFor({ timeout: 10_000 }).catch(() => window.command("RankScope: Compare Ranks"));
    const again = await panelOf(window, "Compare Ranks", "compare");
    await again.getByText(/^No job runs/).waitFor();
    assert.equal(await again.locator("input.code").first().inputValue(), "step");
  });
});
