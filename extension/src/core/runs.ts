/** Runs that go on, as their records tell (`rankscope/record.py`): where the hub of each listens for editors. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

const RUNS = join(".rankscope", "runs");

/** Where a hub listens: `unix:PATH` or `tcp:PORT`. */
export type HubAddress =
  { readonly kind: "unix"; readonly path: string } | { readonly kind: "tcp"; readonly port: number };

/** Read an address; undefined when the text is none. */
export function readAddress(text: string): HubAddress | undefined {
  const path = /^unix:(.+)$/s.exec(text)?.[1];
  if (path !== undefined) return { kind: "unix", path };
  const port = Number(/^tcp:([0-9]{1,5})$/.exec(text)?.[1]);
  return port > 0 && port < 65536 ? { kind: "tcp", port } : undefined;
}

/**
 * The hub that `place` means: an address, a run's folder, or, when it is empty, the newest run below one of the
 * `folders` that goes on. Undefined when there is none.
 */
export function findHub(place: string, folders: readonly string[]): HubAddress | undefined {
  const address = readAddress(place);
  if (address || /^(unix|tcp):/.test(place)) return address;
  const runs = place === "" ? newestFirst(folders) : folders.map((folder) => resolve(folder, place));
  for (const run of runs) {
    const found = addressIn(run);
    if (found) return found;
  }
  return undefined;
}

/** A run in which something failed, as a list shows it. */
export interface FailedRun {
  readonly folder: string;
  /** The first words of its name: when it began. */
  readonly when: string;
  readonly command: string;
}

/** The runs below `folders` that keep a failure, the newest first; no more than `most`. */
export function failedRuns(folders: readonly string[], most = 100): FailedRun[] {
  const kept = newestFirst(folders).filter((run) => existsSync(join(run, "dumps")));
  return kept.slice(0, most).map((folder) => {
    const [, year, month, day, hour, minute, second] = /^(....)(..)(..)-(..)(..)(..)/.exec(basename(folder)) ?? [];
    const when = second ? `${year}-${month}-${day} ${hour}:${minute}:${second}` : basename(folder);
    return { folder, when, command: commandOf(folder) };
  });
}

function commandOf(run: string): string {
  try {
    const { command } = JSON.parse(readFileSync(join(run, "run.json"), "utf8")) as { command?: unknown };
    return Array.isArray(command) ? command.map(String).join(" ") : typeof command === "string" ? command : "";
  } catch {
    return "";
  }
}

/** The folders of all runs. Their names begin with the time. */
function newestFirst(folders: readonly string[]): string[] {
  const runs = folders.flatMap((folder) => {
    try {
      return readdirSync(join(folder, RUNS)).map((name) => ({ name, path: join(folder, RUNS, name) }));
    } catch {
      return []; // no run was ever made here
    }
  });
  return runs.sort((one, other) => (one.name < other.name ? 1 : -1)).map(({ path }) => path);
}

/** Where the hub of a run listens, if that process is there and is the person's own. */
function addressIn(run: string): HubAddress | undefined {
  try {
    const about = JSON.parse(readFileSync(join(run, "run.json"), "utf8")) as {
      hub?: { pid: number; editor: string } | null;
    };
    if (!about.hub || !(about.hub.pid > 0)) return undefined;
    process.kill(about.hub.pid, 0);
    return readAddress(about.hub.editor);
  } catch {
    return undefined; // ended, another person's, or no record
  }
}
