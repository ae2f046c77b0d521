/** The processes that a scenario's editor has started, known by the mark in their environment. */

import { readdirSync, readFileSync } from "node:fs";

export interface Process {
  readonly pid: number;
  readonly argv: readonly string[];
}

/** The editor's own: its server, extension hosts, language server and shells. */
const EDITOR = /\/\.editor\/|-m rankscope\.lsp$|shellIntegration-bash\.sh|^(?:\S*\/)?(?:bash|sh)(?: -[il])*$/;

function read(pid: string, what: "environ" | "cmdline" | "stat"): string {
  try {
    return readFileSync(`/proc/${pid}/${what}`, "utf8");
  } catch {
    return ""; // it has ended, or is somebody else's
  }
}

/** Hub, driver, ranks and Ray's own processes that still live. */
export function jobProcesses(mark: string): Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(pid, "environ").split("\0").includes(`RANKSCOPE_TEST=${mark}`))
    .map((pid) => ({ pid: Number(pid), argv: read(pid, "cmdline").split("\0").filter(Boolean) }))
    .filter(({ argv }) => argv.length > 0 && !EDITOR.test(argv.join(" ")));
}

/** End what a failed scenario has left. */
export function endProcesses(mark: string): void {
  for (const { pid } of jobProcesses(mark)) signal(pid, "SIGKILL");
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
