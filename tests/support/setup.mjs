// `npm run setup`: everything the other commands need. Idempotent; done again only when what it depends on changes.
//
//   .venv/          torch, Ray and all tools, on the preferred Python
//   .venvs/<3.x>/   the core path's needs only, on every other supported Python found
//   node_modules/   the TypeScript side

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { main, PYTHON, ROOT, run, runLogged, SetupError, VENV } from "./processes.mjs";
import { findPythons } from "./pythons.mjs";

const CORE = join("tests", "requirements-core.txt");
const FULL = join("tests", "requirements.txt");
const PROJECT = join("python_adapter", "pyproject.toml");

function stampOf(facts, files) {
  const hash = createHash("sha256").update(facts);
  for (const file of files) hash.update(readFileSync(join(ROOT, file)));
  return hash.digest("hex");
}

function isCurrent(folder, stamp) {
  const file = join(folder, ".stamp");
  return existsSync(file) && readFileSync(file, "utf8") === stamp;
}

/** The package's bytecode: pip makes it for what it installs, but not for what is installed from this checkout. */
function compilePackage(folder) {
  runLogged(join(folder, "compile.log"), join(folder, "bin", "python"), [
    ...["-m", "compileall", "-q", join("python_adapter", "rankscope")],
  ]);
}

function makeVenv(folder, python, requirements, hint) {
  installInto(folder, python, requirements, hint);
  compilePackage(folder);
}

function installInto(folder, python, requirements, hint) {
  const stamp = stampOf(`${ROOT} ${python.path} ${python.full}`, [CORE, requirements, PROJECT]);
  if (isCurrent(folder, stamp)) return;
  console.log(`setup: ${relative(ROOT, folder)} with Python ${python.full}${hint}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const log = join(folder, "setup.log");
  runLogged(log, python.path, ["-m", "venv", folder]);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"];
  runLogged(log, join(folder, "bin", "python"), [...pip, "-r", requirements, "-e", "python_adapter"], {
    mend: "Check that pip reaches its package index, and that the disk has room, and try again.",
  });
  writeFileSync(join(folder, ".stamp"), stamp);
}

/** The full environment; its Python is `PYTHON`. */
export function setUpPython() {
  const [python] = findPythons();
  const hint =
    python.minor === "3.11" ? ", torch and Ray (minutes)" : ", torch and Ray (minutes; torch may be a large download)";
  makeVenv(VENV, python, FULL, hint);
}

/** A light environment on every other supported Python; yields their `{minor, path}`. */
export function setUpOtherPythons() {
  return findPythons()
    .slice(1)
    .map((python) => {
      const folder = join(ROOT, ".venvs", python.minor);
      makeVenv(folder, python, CORE, "");
      return { minor: python.minor, path: join(folder, "bin", "python") };
    });
}

/** node_modules as the lock file has it. */
export async function setUpNode() {
  const folder = join(ROOT, "node_modules");
  const stamp = stampOf(process.version, ["package-lock.json"]);
  if (isCurrent(folder, stamp)) return;
  console.log("setup: node_modules");
  // What we use needs no install scripts; some of them would download.
  if ((await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])) !== 0) {
    throw new SetupError("npm ci failed. Check that npm reaches its registry and try again.");
  }
  writeFileSync(join(folder, ".stamp"), stamp);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    setUpPython();
    setUpOtherPythons();
    await setUpNode();
    console.log(`setup: done, Python is ${relative(ROOT, PYTHON)}`);
    return 0;
  });
}
