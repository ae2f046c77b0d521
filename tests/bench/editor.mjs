// What F5 in a real editor costs a person: VS Code in a browser, driven as the tests drive it. `editor.mjs [RUNS]`.

import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { setUpBrowser } from "../support/browser.mjs";
import { build } from "../support/build.mjs";
import { setUpEditor } from "../support/editor.mjs";
import { main, PYTHON, ROOT, run, SetupError, venvEnvironment } from "../support/processes.mjs";
import { startSampleEditor } from "../support/ui.mjs";
import { FakeHub, manyRanks } from "./_fakeHub.mjs";
import { Table } from "./_table.mjs";

const RUNS = Number(process.argv[2] ?? 7);
const RANKS = 4;
const MANY = 1024;
const PROGRAMS = join(ROOT, "tests", "bench", "programs");
const RUN_MS = 120_000;

/** The page object that the tests use, compiled. */
async function workbenchClass() {
  if ((await run(join(ROOT, "node_modules", ".bin", "tsc"), [])) !== 0) throw new SetupError("tsc found errors");
  const compiled = join(ROOT, ".build", "tests", "extension", "ui", "workbench.js");
  return (await import(pathToFileURL(compiled).href)).default.Workbench;
}

/** When the last rank was at its first line, in ms since the epoch; each has noted it in a file. */
function reachedAt(folder) {
  const times = Array.from({ length: RANKS }, (_, rank) => Number(readFileSync(join(folder, String(rank)), "utf8")));
  return Math.max(...times) * 1000;
}

function emptied(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

/** Seconds until the last rank of the plain job is at its first line. */
async function plainStart(notes) {
  emptied(notes);
  const started = Date.now();
  const job = spawn(PYTHON, [join(PROGRAMS, "ray_start.py"), notes], { env: venvEnvironment(), stdio: "ignore" });
  const status = await new Promise((resolve) => job.once("exit", resolve));
  if (status !== 0) throw new Error(`the plain job ended with ${status}`);
  return (reachedAt(notes) - started) / 1000;
}

/** The same from pressing F5, all ranks armed. */
async function editorStart(window, notes) {
  emptied(notes);
  const started = Date.now();
  await window.debug.pressF5();
  await window.until(
    "all ranks at their first line",
    async () => Array.from({ length: RANKS }, (_, rank) => join(notes, String(rank))).every(existsSync),
    "",
    RUN_MS,
  );
  await window.debug.ended();
  return (reachedAt(notes) - started) / 1000;
}

async function startSamples(window, notes) {
  await window.source.open("ray_start.py");
  await window.source.addBreakpoint("ray_start.py", "never");
  await window.source.openLineMenu("ray_start.py", "never");
  await window.source.chooseFromMenu("All Ranks");
  await window.debug.choose("Ray start");
  const added = [];
  await plainStart(notes); // the page cache is warm from here on
  await editorStart(window, notes);
  for (let turn = 0; turn < RUNS; turn++) {
    const plain = await plainStart(notes);
    added.push((await editorStart(window, notes)) - plain);
  }
  return added;
}

/** What a script of the page resolves to, within a bound: else what the window shows is told. */
async function inPage(window, what, script) {
  let result;
  const run = window.page.evaluate(script).then((value) => {
    result = value;
  });
  run.catch(() => {}); // the window has been closed
  return window.until(what, () => Promise.resolve(result));
}

/** In the page: resolves to the time at which a stopped frame is shown in the editor and in the call stack. */
const FRAME_SHOWN = `new Promise((resolve) => {
  const look = () => {
    const isShown = document.querySelector(".editor-instance .debug-top-stack-frame-line")
      && document.querySelector(".debug-call-stack .monaco-list-row .stack-frame");
    if (isShown) resolve(Date.now());
    else requestAnimationFrame(look);
  };
  look();
})`;

/** From the line before the stop until its frame is shown, in ms. */
async function stopSamples(window) {
  const [file, mark] = ["ranks.py", "hit"];
  await window.source.open(file);
  await window.debug.start("Ranks");
  await window.ranks.summary(/4 ranks: 4 running/);
  const samples = [];
  for (let turn = 0; turn <= RUNS; turn++) {
    await window.source.reveal(file, mark);
    const shown = inPage(window, "the stopped frame", FRAME_SHOWN);
    await window.source.addBreakpoint(file, mark);
    const at = await shown;
    const hitAt = Number(await window.debug.variable("hit_at")) * 1000;
    if (turn > 0) samples.push(at - hitAt); // the first one loads debugpy into the ranks
    await window.source.removeBreakpoint(file, mark);
    await window.command("RankScope: Continue Stopped Ranks");
    await window.ranks.summary(/4 ranks: 4 running/);
  }
  await window.debug.press("Stop");
  await window.debug.ended();
  return samples;
}

/** From the hub's word until the view shows it, in ms: each time every rank is in another state than before. */
async function viewSamples(window, hub) {
  hub.members = manyRanks(MANY, () => false);
  hub.frames = Object.fromEntries(hub.members.map(({ id }) => [id, null]));
  await window.debug.start("Many ranks");
  await window.debug.seeButton("Stop");
  hub.tell();
  await window.ranks.summary(new RegExp(`${MANY} ranks`));
  await window.ranks.enlarge(300);
  const samples = [];
  for (let turn = 0; turn <= 2 * RUNS; turn++) {
    const isPaused = turn % 2 === 0;
    const word = isPaused ? "paused" : "running";
    hub.members = manyRanks(MANY, () => isPaused);
    const shown = inPage(window, `${MANY} ${word} ranks`, viewShows(`${MANY} ranks: ${MANY} ${word}`, word));
    await quiet();
    const told = Date.now();
    hub.tell();
    const at = await shown;
    if (turn > 0) samples.push(at - told);
  }
  await window.debug.press("Stop");
  await window.debug.ended();
  return samples;
}

/** VS Code draws a tree view's changes at once, but those within 200 ms of the last one together: each sample is a first. */
function quiet() {
  return new Promise((done) => setTimeout(done, 300));
}

/** In the page: resolves when the view's line says so, and so do all rows of ranks that are in view. */
function viewShows(line, word) {
  return `new Promise((resolve) => {
    const look = () => {
      const pane = [...document.querySelectorAll(".pane")]
        .find((each) => each.querySelector(".pane-header[aria-label^='Ranks']"));
      const rows = [...pane.querySelectorAll(".monaco-list-row")]
        .filter((row) => /^world \\d/.test(row.querySelector(".label-name")?.textContent ?? ""));
      const isShown = pane.textContent.includes(${JSON.stringify(line)})
        && rows.length > 0
        && rows.every((row) => row.querySelector(".label-description")?.textContent.startsWith("${word}"));
      if (isShown) resolve(Date.now());
      else requestAnimationFrame(look);
    };
    look();
  })`;
}

/** What VS Code itself says an activation took, in ms. */
async function activation(window) {
  await window.debug.show();
  await window.ranks.welcome();
  await window.command("Developer: Show Running Extensions");
  const row = window.page.locator(".runtime-extensions-editor .monaco-list-row", { hasText: "RankScope" });
  return window.until("the time of the activation", async () => {
    const time = /Activation: (\d+)ms/.exec(await row.innerText());
    return time === null ? undefined : Number(time[1]);
  });
}

function packageMegabytes() {
  const folder = join(ROOT, ".build", "package");
  const file = readdirSync(folder).find((name) => name.endsWith(".vsix"));
  return statSync(join(folder, file)).size / 1e6;
}

function launchFile(notes, port) {
  const common = { type: "rankscope", request: "launch", console: "internalConsole" };
  return {
    version: "0.2.0",
    configurations: [
      { ...common, name: "Ray start", program: "${workspaceFolder}/ray_start.py", args: [notes] },
      { ...common, name: "Ranks", program: "${workspaceFolder}/ranks.py" },
      { ...common, name: "Many ranks", program: "${workspaceFolder}/ranks.py", debugServer: port },
    ],
  };
}

await main(async () => {
  const browser = await setUpBrowser();
  if (browser === undefined) throw new SetupError("there is no browser to measure in");
  setUpEditor();
  await build();
  if ((await run(process.execPath, [join("tests", "support", "package.mjs")])) !== 0) return 1;
  const Workbench = await workbenchClass();
  const notes = mkdtempSync(join(tmpdir(), "rankscope-bench-"));
  const hub = new FakeHub();
  await hub.listen();
  const editor = await startSampleEditor({ source: PROGRAMS });
  const at = { ...editor.harness, browser };
  mkdirSync(join(at.workspace, ".vscode"));
  writeFileSync(join(at.workspace, ".vscode", "launch.json"), JSON.stringify(launchFile(notes, hub.port)));
  try {
    const inWindow = async (body) => {
      const window = await Workbench.open(at);
      try {
        return await body(window);
      } finally {
        await window.close();
      }
    };
    const activations = [];
    for (let turn = 0; turn < RUNS; turn++) activations.push(await inWindow(activation));
    const table = new Table("editor: VS Code in a browser");
    table.add("f5_added_s_4", await inWindow((window) => startSamples(window, notes)), "s", "<= 3");
    table.add("stop_to_page_ms", await inWindow(stopSamples), "ms", "<= 500");
    table.add("activate_ms", activations, "ms", "<= 100");
    table.add("vsix_mb", [packageMegabytes()], "MB", "<= 12");
    table.add("view_ms_1024", await inWindow((window) => viewSamples(window, hub)), "ms", "<= 200");
    table.show();
    return 0;
  } finally {
    await editor.close();
    hub.close();
    rmSync(notes, { recursive: true, force: true });
  }
});
