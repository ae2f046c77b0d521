/** Run control over sets: the scope in the status bar, steps in lock-step, who is pending, and a barrier. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";
import { plain } from "./window.js";
import type { Workbench } from "./workbench.js";

const FILE = "torchrun_job.py";

/** Wait for what the status bar says of the ranks to control. */
async function seeScope(window: Workbench, text: string): Promise<void> {
  const item = window.page.locator(
    "#rankscope\\.rankscope\\.rankscope\\.scope, .statusbar-item[id*='rankscope.scope']",
  );
  await window.until(`the scope ${text}`, async () =>
    (await item.allInnerTexts()).map(plain).some((at) => at === text),
  );
}

async function chooseScope(window: Workbench, label: string | RegExp): Promise<void> {
  await window.page.locator(".statusbar-item[id*='rankscope.scope'] a").click();
  await window.pick(label);
}

describe("Run control", () => {
  scenario("steps a set of ranks in lock-step, and says whom a pending one waits for", async (window) => {
    const { source, debug, ranks } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "call");
    await debug.start("torchrun, 2 ranks");
    const [call, norm] = [source.line(FILE, "call"), source.line(FILE, "norm")];
    for (const rank of [0, 1]) await ranks.see(new RegExp(`^world ${rank}`), new RegExp(`:${call} `));
    await debug.stoppedAt(FILE, call);
    await seeScope(window, "Control: stopped ranks");
    await source.removeBreakpoint(FILE, "call");
    await ranks.pressTitle("Step Over");
    for (const rank of [0, 1]) await ranks.see(new RegExp(`^world ${rank}`), new RegExp(`:${norm} .*step`));
    await debug.stoppedAt(FILE, norm);

    await chooseScope(window, "Focused rank");
    const focused = /world (\d)/.exec((await debug.stackRows()).find(({ isSelected }) => isSelected)?.text ?? "");
    await ranks.summary(/▸ world \d \(focused\) · 2 ranks: 2 paused/);
    await window.press("Control+k", "F10");
    await ranks.see(/^world \d/, new RegExp(`:${norm + 1} .*step`));
    await window.press("Control+k", "F10");
    const pending = await ranks.see(/^world \d/, /in all_reduce, waits for \d · step pending/);
    if (focused) assert.equal(pending.label, `world ${focused[1] ?? ""}`);
    await ranks.summary(/1 paused, 1 pending/);
    await window.screenshots("lockstep-pending");

    const other = pending.label === "world 0" ? /^world 1/ : /^world 0/;
    await ranks.openMenu(other);
    await source.chooseFromMenu("Step Over");
    await ranks.see(other, new RegExp(`:${norm + 1} .*step`));
    await ranks.openMenu(other);
    await source.chooseFromMenu("Step Over");
    for (const rank of [0, 1]) await ranks.see(new RegExp(`^world ${rank}`), new RegExp(`:${norm + 2} .*step`));

    await chooseScope(window, /^All ranks/);
    await seeScope(window, "Control: all ranks");
    await ranks.pressTitle("Continue");
    await debug.ended();
  });

  scenario("holds ranks at a barrier, and shows one stop when all are there", async (window) => {
    const { source, debug, ranks } = window;
    const norm = source.line(FILE, "norm");
    await source.open(FILE);
    await source.addBreakpoint(FILE, "call");
    await source.limit(FILE, "call", "2");
    await source.openLineMenu(FILE, "norm");
    await source.chooseFromMenu("Barrier: Hold Until All Arrive");
    await source.seeText(FILE, "norm", /@all barrier/);
    await debug.start("torchrun");
    await debug.stoppedAt(FILE, source.line(FILE, "call"));
    await debug.fold("Watch", "Breakpoints");
    await debug.widen(60);
    await ranks.summary(/1 paused, 3 at barrier/);
    for (const rank of [0, 1, 3]) await ranks.see(new RegExp(`^world ${rank}`), /at barrier, waits for 2/);
    await source.seeText(FILE, "norm", /waits for world 2 │ @all barrier/);
    assert.equal(await debug.variable("rank"), "2");
    await window.screenshots("barrier-held");
    await source.removeBreakpoint(FILE, "call");
    await ranks.press(/^world 2/, "Continue");
    for (const rank of [0, 1, 2, 3]) await ranks.see(new RegExp(`^world ${rank}`), new RegExp(`:${norm} .*breakpoint`));
    await debug.stoppedAt(FILE, norm);
    assert.equal(await debug.variable("rank"), "2"); // the one that was looked at
    await source.removeBreakpoint(FILE, "norm");
    await window.command("RankScope: Continue");
    await debug.ended();
  });
});
