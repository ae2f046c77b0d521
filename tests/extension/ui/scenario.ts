/** A scenario: a test that has a window of its own, and leaves no process behind. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { harness, type Harness, skip } from "./harness.js";
import { endProcesses, jobProcesses } from "./processes.js";
import { Workbench } from "./workbench.js";

const SCENARIO_MS = 240_000;
const END_MS = 15_000;

/** The end of what the extension and the hub logged in the newest window. */
function lastWords(userData: string): string {
  const logs = readdirSync(join(userData, "logs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith("RankScope.log"))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const last = logs.at(-1);
  return last === undefined ? "" : readFileSync(join(userData, "logs", last), "utf8").slice(-4000);
}

/**
 * A test in a new window on the sample workspace. When it fails, a picture (`failed-NAME.png`) and the extension's log
 * are kept. Afterwards what still runs is stopped as a person stops it; whatever process is left is a failure.
 */
export function scenario(name: string, body: (workbench: Workbench) => Promise<void>, { trust = true } = {}): void {
  it(name, { skip, timeout: SCENARIO_MS }, () => inWindow(name, harness(), body, trust));
}

/** The browser has stopped drawing: nothing that a test sees in it says anything about us. */
class NotPainting extends Error {}

/** The same in a given editor, inside a test of its own. Where the browser stops drawing it is done once more in another. */
export async function inWindow(
  name: string,
  at: Harness,
  body: (workbench: Workbench) => Promise<void>,
  trust = true,
): Promise<void> {
  try {
    await inOneWindow(name, at, body, trust);
  } catch (error) {
    if (!(error instanceof NotPainting)) throw error;
    console.log(`the browser stopped drawing in '${name}', which is done again: ${error.message}`);
    await inOneWindow(name, at, body, trust);
  }
}

async function inOneWindow(
  name: string,
  at: Harness,
  body: (workbench: Workbench) => Promise<void>,
  trust: boolean,
): Promise<void> {
  const { userData, mark } = at;
  const workbench = await Workbench.open(at, { trust });
  try {
    await body(workbench);
    await stopAll(workbench);
    await workbench.until(
      "every process of the job to end",
      () => Promise.resolve(jobProcesses(mark).length === 0),
      "",
      END_MS,
    );
  } catch (error) {
    if (!(await workbench.paints())) throw new NotPainting(String(error));
    await workbench.screenshot(`failed-${name.replaceAll(/\W+/g, "-")}`);
    if (error instanceof Error) error.message += `\n  processes: ${describeLeft(mark)}\n  log: ${lastWords(userData)}`;
    throw error;
  } finally {
    await workbench.close();
    endProcesses(mark);
  }
}

function describeLeft(mark: string): string {
  return jobProcesses(mark)
    .map(({ pid, argv }) => `${pid} ${argv.join(" ").slice(0, 160)}`)
    .join("; ");
}

async function stopAll(workbench: Workbench): Promise<void> {
  if ((await workbench.page.locator(".debug-toolbar:visible").count()) === 0) return;
  await workbench.press("Shift+F5");
  await workbench.debug.ended(END_MS);
}
