/** Merged stacks of a real job: the view, the graph, and the line that a click goes to. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";

import { ROOT } from "./harness.js";
import { Pane } from "./pane.js";
import { scenario } from "./scenario.js";
import { panelOf } from "./webview.js";

const FILE = "torchrun_job.py";

describe("Merged stacks", () => {
  scenario("show four ranks as one tree, the odd one first, and as a graph", async (window) => {
    const { source, debug, ranks } = window;
    const stacks = new Pane(window, "Stacks");
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await source.limit(FILE, "norm", "3");
    await debug.start("torchrun");
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    await ranks.see(/^world 0/, /in all_reduce/);
    await debug.fold("Variables", "Watch", "Breakpoints");
    await debug.widen(60);
    await stacks.unfold();
    const odd = `train:${source.line(FILE, "norm")}`;
    await stacks.see(new RegExp(`^${odd} 3 · breakpoint · ${FILE}`));
    const others = await stacks.see(/^train:\d+ › all_reduce 0-2 \(3\)/);
    await stacks.summary(/[45] ranks? in \d places?/);
    await window.screenshots("stacks-view");

    await stacks.click(/all_reduce/);
    const line = /:(\d+)/.exec(others)?.[1] ?? "";
    await window.see(`the cursor in line ${line}`, window.page.getByText(new RegExp(`^Ln ${line}, Col`)));
    await stacks.press(/all_reduce/, "Show Locals");
    assert.ok((await window.pickRows()).some((row) => /^world 1|gradient/.test(row)));
    await window.press("Escape");

    await window.command("RankScope: Refresh Stacks with Native Frames");
    await stacks.see(/With native frames, as of when you asked/);
    await stacks.pressTitle("Refresh Stacks");
    await stacks.see(new RegExp(`^${odd} 3 · breakpoint`));

    await stacks.pressTitle("Show Merged Stacks as Graph");
    const panel = await panelOf(window, "Merged Stacks", "stacks");
    await panel.locator(".box", { hasText: odd }).waitFor();
    assert.match(await panel.locator(".box", { hasText: "all_reduce" }).innerText(), /train:\d+ › all_reduce/);
    assert.deepEqual(
      (await panel.locator(".edge-text b").allInnerTexts()).filter((text) => /^[0-9]/.test(text)),
      ["3", "0-2"],
    );
    await window.press("Control+j"); // the terminal gives way
    await window.screenshots("stacks-graph");
    await panel.locator("input[type=text]").fill("0-1");
    await panel.locator("input[type=text]").press("Enter");
    await panel.locator(".box", { hasText: odd }).waitFor({ state: "detached" });
    await stacks.see(/Only 0-1/);
    await panel.locator("input[type=text]").fill("0-");
    await panel.locator("input[type=text]").press("Enter");
    await panel.getByText(/Rank set '0-': a number is missing/).waitFor();
  });
});

describe("A thousand ranks", () => {
  scenario("are a short tree, quickly, and are sifted by rank set", async (window) => {
    const { debug, ranks } = window;
    const stacks = new Pane(window, "Stacks");
    addConfiguration(window.workspace, {
      name: "A thousand ranks",
      type: "rankscope",
      request: "launch",
      command: ["python", join(ROOT, "tests", "python", "support", "simulated_ranks.py"), "1024"],
      console: "internalConsole",
    });
    await debug.start("A thousand ranks");
    await ranks.summary(/1024 ranks: /);
    await debug.fold("Variables", "Watch", "Breakpoints");
    await debug.widen(60);
    await stacks.unfold();
    await stacks.summary(/1,024 ranks in 3\d places/);
    await window.press("Control+j");
    await stacks.pressTitle("Show Merged Stacks as Graph");
    const panel = await panelOf(window, "Merged Stacks", "stacks");
    await panel.locator(".box.more").waitFor();
    await window.screenshots("many-ranks");
    await window.command("RankScope: Filter Ranks…");
    await window.pick(/^Ranks…/);
    await window.type("512-515");
    await window.press("Enter");
    await ranks.see(/^world$/, /^4 shown/);
    await window.screenshots("many-ranks-filtered");
  });
});

function addConfiguration(workspace: string, configuration: object): void {
  const file = join(workspace, ".vscode", "launch.json");
  const launch = JSON.parse(readFileSync(file, "utf8")) as { configurations: object[] };
  launch.configurations.push(configuration);
  writeFileSync(file, JSON.stringify(launch, undefined, 2));
}
