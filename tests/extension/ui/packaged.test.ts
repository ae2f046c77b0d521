/** The .vsix as a person installs it, with a Python that knows nothing of RankScope. */

import assert from "node:assert/strict";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { harness, ROOT, runnerScripts, skip } from "./harness.js";
import { jobProcesses } from "./processes.js";
import { inWindow } from "./scenario.js";

const FILE = "plain_ranks.py";
const LAUNCH = {
  version: "0.2.0",
  configurations: [
    {
      name: "Plain ranks",
      type: "rankscope",
      request: "launch",
      program: `\${workspaceFolder}/${FILE}`,
      args: ["2"],
      console: "internalConsole",
    },
  ],
};

function packaged(): string {
  const folder = join(ROOT, ".build", "package");
  const file = readdirSync(folder).find((name) => name.endsWith(".vsix"));
  if (file === undefined) throw new Error(`there is no .vsix in ${folder}: npm run package`);
  return join(folder, file);
}

describe("The packaged extension", () => {
  it("stops a rank, with nothing installed in the job's Python", { skip, timeout: 120_000 }, async () => {
    const { startSampleEditor, findPythons } = await runnerScripts();
    const [python] = findPythons();
    assert.ok(python);
    const editor = await startSampleEditor({ vsix: packaged(), python: python.path });
    const at = { ...editor.harness, browser: harness().browser };
    try {
      copyFileSync(join(ROOT, "tests", "jobs", FILE), join(at.workspace, FILE));
      writeFileSync(join(at.workspace, ".vscode", "launch.json"), JSON.stringify(LAUNCH));
      await inWindow("packaged", at, async (window) => {
        const { source, debug, ranks } = window;
        await source.open(FILE);
        await source.addBreakpoint(FILE, "step");
        await source.limit(FILE, "step", "1");
        await debug.start("Plain ranks");
        await debug.stoppedAt(FILE, source.line(FILE, "step"));
        assert.equal(await debug.variable("rank"), "1");
        await ranks.see(/ 1$/, /breakpoint|paused/);
        const hub = jobProcesses(at.mark).find(({ argv }) => argv.includes("rankscope.hub"));
        assert.ok(hub);
        assert.equal(hub.argv[0], python.path);
        const environment = readFileSync(`/proc/${hub.pid}/environ`, "utf8").split("\0");
        const path = environment.find((line) => line.startsWith("PYTHONPATH="));
        assert.ok(path?.includes(at.extensions), path);
        await source.removeBreakpoint(FILE, "step");
        await debug.press("Continue");
        await debug.console(/RESULT launcher done/);
        await debug.ended();
        await source.open("mistake.py"); // the language server brings its libraries along
        await window.see("a squiggle", window.page.locator(".editor-instance .squiggly-warning"));
      });
    } finally {
      await editor.close();
    }
  });
});
