// What the tests and the benchmark of the editor run in: one server on a copy of the sample workspace.

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { setUpBrowser } from "./browser.mjs";
import { build } from "./build.mjs";
import { installExtension, linkExtension, setUpEditor, startEditor, writeSettings } from "./editor.mjs";
import { PYTHON, ROOT, run, SetupError, venvEnvironment } from "./processes.mjs";

export const WORKSPACE = join(ROOT, "tests", "extension", "workspace");

/** Settings of the person in the tests: nothing moves or asks, and the theme is the system's. */
const SETTINGS = {
  "window.autoDetectColorScheme": true,
  "editor.minimap.enabled": false,
  "editor.cursorBlinking": "solid",
  "terminal.integrated.cursorBlinking": false,
  "terminal.integrated.gpuAcceleration": "off",
  "workbench.reduceMotion": "on",
  "workbench.layoutControl.enabled": false,
  "window.confirmBeforeClose": "never",
  "files.autoSave": "off",
};

/** A port that nobody has at this moment. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/**
 * An editor on a copy of the folder `source`, in a temporary folder of its own, with the extension of this checkout or
 * the packaged one; `python` is the interpreter of its jobs. `harness` is what `tests/extension/ui/harness.ts` reads,
 * but for the browser. `close()` ends it and removes the folder.
 */
export async function startSampleEditor({ source = WORKSPACE, vsix, python = PYTHON } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "rankscope-ui-"));
  const [workspace, userData, extensions] = ["workspace", "user", "extensions"].map((name) => join(folder, name));
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    cpSync(source, workspace, { recursive: true, filter: (file) => !/__pycache__|\.rankscope/.test(file) });
    if (vsix === undefined) linkExtension(extensions);
    else installExtension(vsix, { extensions, userData });
    writeSettings(userData, { python, ...SETTINGS });
    const mark = `ui-${process.pid}-${Date.now()}`;
    const env = { ...venvEnvironment(), RANKSCOPE_TEST: mark };
    const editor = await startEditor({ port: await freePort(), extensions, folder: workspace, userData, env });
    const close = async () => {
      await editor.close();
      remove();
    };
    return { harness: { url: editor.url, workspace, userData, extensions, mark }, close };
  } catch (error) {
    remove();
    throw error;
  }
}

/**
 * What `runTests(env)` resolves to, with an editor running for it. Where no browser can be had the tests
 * only report that they are skipped, unless this is CI: there that is a failure.
 */
export async function runUiTests(runTests) {
  const browser = await setUpBrowser();
  if (browser === undefined) {
    const why = "no browser: install Chromium or Chrome, or let npx playwright-core install chromium run through";
    if (process.env.CI === "true") throw new SetupError(why);
    console.log(`not run: ${why}`);
    return runTests({ ...process.env, RANKSCOPE_UI_SKIP: why });
  }
  setUpEditor();
  await build();
  if ((await run(process.execPath, [join("tests", "support", "package.mjs")])) !== 0) return 1;
  const editor = await startSampleEditor();
  try {
    return await runTests({ ...process.env, RANKSCOPE_UI: JSON.stringify({ ...editor.harness, browser }) });
  } finally {
    await editor.close();
  }
}
