// The Pythons of this machine that RankScope supports.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import { SetupError } from "./processes.mjs";

const SUPPORTED = ["3.10", "3.11", "3.12", "3.13"];
// 3.11 first: the version most training images carry, and where tracing costs most, so the one to test fully.
const PREFERRED = ["3.11", "3.12", "3.13", "3.10"];

// Inside a virtual environment, ask for the Python it was made from.
const PROBE = `
import sys
base = sys.executable if sys.prefix == sys.base_prefix else sys._base_executable
try:
    import ensurepip, venv
    usable = True
except ImportError:
    usable = False
print(base, "%d.%d" % sys.version_info[:2], "%d.%d.%d" % sys.version_info[:3], usable, sep="\\n")
`;

function candidates() {
  const versions = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  const installed = (existsSync(versions) ? readdirSync(versions) : [])
    .filter((name) => SUPPORTED.some((minor) => name.startsWith(`${minor}.`)))
    .sort();
  return [
    ...PREFERRED.map((version) => `python${version}`),
    "python3",
    "/usr/bin/python3",
    ...installed.map((name) => join(versions, name, "bin", "python")),
  ];
}

function probe(command) {
  const result = spawnSync(command, ["-c", PROBE], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  if (result.status !== 0) return undefined;
  const [path, minor, full, usable] = result.stdout.trim().split("\n");
  return { path, minor, full, isUsable: usable === "True" };
}

let known;

/** One Python per supported minor version, the preferred first. Throws a SetupError when there is none. */
export function findPythons() {
  return (known ??= search());
}

function search() {
  const found = new Map();
  let withoutVenv;
  for (const command of candidates()) {
    const python = probe(command);
    if (python === undefined || !SUPPORTED.includes(python.minor)) continue;
    if (!python.isUsable) withoutVenv ??= python;
    else if (!found.has(python.minor)) found.set(python.minor, python);
  }
  if (found.size === 0 && withoutVenv) {
    throw new SetupError(
      `Python ${withoutVenv.full} (${withoutVenv.path}) lacks the venv module. ` +
        "Install it (on Debian or Ubuntu: apt-get install python3-venv) and try again.",
    );
  }
  if (found.size === 0) {
    throw new SetupError(`no Python ${SUPPORTED.join(", ")} on PATH or in pyenv. Install one and try again.`);
  }
  return PREFERRED.filter((minor) => found.has(minor)).map((minor) => found.get(minor));
}
