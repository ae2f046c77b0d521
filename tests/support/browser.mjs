// A browser for the tests that drive a real editor: one that is there, else the system's package, else Playwright's.

import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";

import { ROOT, runLogged, SetupError } from "./processes.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const LOG = join(ROOT, ".build", "browser.log");

/** The first of these programs on PATH. */
function onPath(names) {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether the command ran through; its output goes to the log. */
function ran(command, ...args) {
  try {
    runLogged(LOG, command, args, { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } });
    return true;
  } catch (error) {
    if (error instanceof SetupError) return false;
    throw error;
  }
}

/** Debian's own package, where we may install packages. */
function fromPackage() {
  if (onPath(["apt-get"]) === undefined) return undefined;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status !== 0) return undefined;
  const asRoot = (...command) => (isRoot ? ran(...command) : ran("sudo", "-n", "-E", ...command));
  console.log("setup: chromium by apt-get");
  const install = () => asRoot("apt-get", "install", "-y", "--no-install-recommends", "chromium");
  if (!install()) void (asRoot("apt-get", "update") && install());
  // Ubuntu's package of this name is a stub for a snap, which need not run here.
  return onPath(NAMES.filter(works));
}

function works(name) {
  const file = onPath([name]);
  return file !== undefined && spawnSync(file, ["--version"], { stdio: "ignore", timeout: 20_000 }).status === 0;
}

/** The build that Playwright downloads, in the user's cache. */
async function fromPlaywright() {
  const { chromium } = await import("playwright-core");
  if (!existsSync(chromium.executablePath())) {
    console.log("setup: chromium by Playwright");
    ran(process.execPath, join(ROOT, "node_modules", "playwright-core", "cli.js"), "install", "chromium");
  }
  return existsSync(chromium.executablePath()) ? chromium.executablePath() : undefined;
}

/** The path of a browser, installed if need be; undefined where none can be had (`.build/browser.log` says why). */
export async function setUpBrowser() {
  mkdirSync(join(ROOT, ".build"), { recursive: true });
  return onPath(NAMES.filter(works)) ?? fromPackage() ?? (await fromPlaywright());
}
