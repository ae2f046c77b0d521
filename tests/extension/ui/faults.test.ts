/** What goes wrong, and what a person is told. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";

import { harness } from "./harness.js";
import { jobProcesses, signal } from "./processes.js";
import { scenario } from "./scenario.js";

interface LaunchFile {
  configurations: Record<string, unknown>[];
}

/** Run `body` with one more configuration in launch.json. */
async function withConfiguration(configuration: Record<string, unknown>, body: () => Promise<void>): Promise<void> {
  const file = join(harness().workspace, ".vscode", "launch.json");
  const before = readFileSync(file, "utf8");
  const launch = JSON.parse(before) as LaunchFile;
  launch.configurations.push({ type: "rankscope", request: "launch", ...configuration });
  writeFileSync(file, JSON.stringify(launch, undefined, 2));
  try {
    await body();
  } finally {
    writeFileSync(file, before);
  }
}

describe("A person is told, with the mend,", () => {
  scenario("when launch.json has an unknown key", async (window) => {
    await window.debug.start("With a typo");
    const { text, buttons } = await window.notification(/progam/);
    assert.match(text, /program/);
    assert.ok(buttons.includes("Open launch.json"), buttons.join());
    await window.screenshots("error");
    await window.answerNotification(/progam/, "Open launch.json");
    await window.see("launch.json", window.page.locator(".tab.active[data-resource-name='launch.json']"));
    await window.see(
      "a squiggle",
      window.page.locator(".monaco-editor .squiggly-warning, .monaco-editor .squiggly-error"),
    );
  });

  scenario("when the interpreter is gone", async (window) => {
    const gone = { name: "Gone", program: "${workspaceFolder}/train.py", python: "/nowhere/python" };
    await withConfiguration(gone, async () => {
      await window.debug.start("Gone");
      const { text, buttons } = await window.notification(/\/nowhere\/python/);
      assert.match(text, /does not exist|not there|cannot be run/);
      assert.ok(buttons.length >= 2, buttons.join());
    });
  });

  scenario("when the hub is killed, and the ranks run on to the end", async (window) => {
    const { source, debug } = window;
    await source.open("torchrun_job.py");
    await source.addBreakpoint("torchrun_job.py", "norm");
    await source.openLineMenu("torchrun_job.py", "norm");
    await source.chooseFromMenu("Rank 0 Only");
    await debug.start("torchrun");
    await debug.stoppedAt("torchrun_job.py", source.line("torchrun_job.py", "norm"));
    const hub = jobProcesses(harness().mark).find(({ argv }) => argv.includes("rankscope.hub"));
    assert.ok(hub);
    signal(hub.pid, "SIGKILL");
    const { buttons } = await window.notification(/hub/i);
    assert.ok(buttons.includes("Show log"), buttons.join());
    await debug.ended();
    await debug.terminal(/rank 3: last loss/);
  });

  scenario(
    "when the workspace is not trusted",
    async (window) => {
      await window.debug.show();
      assert.match(await window.ranks.welcome(), /trusted workspace/);
    },
    { trust: false },
  );
});
