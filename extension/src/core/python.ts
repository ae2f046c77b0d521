/** Python interpreters: whether one runs, which version it is, and the environment that it wants. */

import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, lstatSync, realpathSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";

/** The oldest Python that `python_adapter/pyproject.toml` allows. */
const OLDEST = [3, 10] as const;
const PROBE_SECONDS = 10;

// Nothing is imported, and `-S` keeps `site` out: what the person's folders hold has no say in this.
const PROBE = "import sys; sys.stdout.write('\\n'.join([sys.executable or '', '%d.%d.%d' % sys.version_info[:3]]))";

export interface Python {
  /** How it was named: the program, with options if there are any. */
  readonly argv: readonly string[];
  /** The interpreter itself, also where `argv` is a shim or a launcher such as `uv run python`. */
  readonly executable: string;
  /** As in `3.11.7`. */
  readonly version: string;
}

/** An interpreter that cannot be used: a sentence for a person, and what it said for the log. */
export class PythonError extends Error {
  constructor(
    message: string,
    readonly detail = "",
  ) {
    super(message);
    this.name = "PythonError";
  }
}

/** The first of `names` that is an executable file in a folder of PATH. */
export function findOnPath(names: readonly string[], path = process.env.PATH ?? ""): string | undefined {
  const folders = path.split(delimiter).filter(isAbsolute);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Asks interpreters what they are, each once until its file changes. */
export class Probes {
  private readonly known = new Map<string, { changed: number; python: Python }>();

  /** Rejects with a PythonError when there is none, it does not run, or it is too old; with an AbortError on abort. */
  async probe(argv: readonly string[], signal?: AbortSignal): Promise<Python> {
    const [named = ""] = argv;
    const file = named.includes("/") ? named : findOnPath([named]);
    if (file === undefined) throw new PythonError(`There is no program '${named}' on PATH.`);
    const changed = changeOf(file);
    const key = argv.join("\0");
    const before = this.known.get(key);
    if (before?.changed === changed) return before.python;
    const [executable = "", version = ""] = (await ask([file, ...argv.slice(1)], signal)).split("\n");
    if (!/^\d+\.\d+\.\d+$/.test(version)) throw new PythonError(`'${argv.join(" ")}' is not a Python interpreter.`);
    const [major = 0, minor = 0] = version.split(".").map(Number);
    if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
      const needed = OLDEST.join(".");
      throw new PythonError(`'${argv.join(" ")}' is Python ${version}; RankScope needs ${needed} or newer.`);
    }
    const python = { argv: [file, ...argv.slice(1)], executable: executable || file, version };
    this.known.set(key, { changed, python });
    return python;
  }
}

/** When the interpreter's file, behind its links, was changed. Throws a PythonError when it is gone. */
function changeOf(file: string): number {
  try {
    return statSync(realpathSync(file)).mtimeMs;
  } catch {
    const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    const why = isLink ? "is a link to a Python that is gone" : "does not exist";
    throw new PythonError(`The Python interpreter '${file}' ${why}.`);
  }
}

/** What an interpreter prints about itself, within a bound. */
function ask(argv: readonly string[], signal?: AbortSignal): Promise<string> {
  const [program = "", ...options] = argv;
  const name = argv.join(" ");
  return new Promise((resolve, reject) => {
    // a process group of its own, so that what a launcher has started ends with it
    const child = spawn(program, [...options, "-E", "-S", "-c", PROBE], {
      cwd: tmpdir(),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const end = (): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // it has ended
      }
    };
    const abort = (): void => {
      end();
      reject(new DOMException("The start was cancelled.", "AbortError"));
    };
    const timer = setTimeout(() => {
      end();
      reject(new PythonError(`'${name}' did not answer within ${PROBE_SECONDS} seconds.`));
    }, PROBE_SECONDS * 1000);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    let said = "";
    let complained = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (complained += text));
    child.on("error", (error) => {
      settle();
      reject(new PythonError(`'${name}' cannot be started.`, error.message));
    });
    child.on("close", (code, killer) => {
      settle();
      if (code === 0) resolve(said);
      else reject(new PythonError(`'${name}' does not run (${killer ?? `exit code ${code}`}).`, complained.trim()));
    });
  });
}

// As VS Code does for its terminals; and the marks of a job that this process may itself belong to.
const NOT_OF_THE_PERSON = /^(ELECTRON_.+|VSCODE_(?!PORTABLE$).+|RANKSCOPE_(?!TEST$|DEBUG$).+|SNAP|SNAP_.+)$/;

/** The environment of a job: this process's without the editor's own variables, and with the interpreter activated. */
export function environmentFor(executable: string, isChosen: boolean, base = process.env): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(base)) if (!NOT_OF_THE_PERSON.test(name)) environment[name] = value;
  return isChosen ? { ...environment, ...activation(executable, environment.PATH ?? "") } : environment;
}

/** What activating its environment in a shell would set, so that `torchrun` is that of the chosen interpreter. */
function activation(executable: string, path: string): NodeJS.ProcessEnv {
  const folder = dirname(executable);
  const prefix = dirname(folder);
  const others = path.split(delimiter).filter((part) => part !== folder);
  const changes: NodeJS.ProcessEnv = { PATH: [folder, ...others].join(delimiter) };
  if (existsSync(join(prefix, "pyvenv.cfg"))) changes.VIRTUAL_ENV = prefix;
  if (existsSync(join(prefix, "conda-meta"))) changes.CONDA_PREFIX = prefix;
  return changes;
}
