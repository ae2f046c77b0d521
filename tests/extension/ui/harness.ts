/** What the runner (`tests/support/ui.mjs`) has started for the scenarios, and where things are. */

import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** The checkout; this file runs from `.build/tests/extension/ui`. */
export const ROOT = resolve(__dirname, "..", "..", "..", "..");

/** What the runner tells by the environment. */
export interface Harness {
  /** The program that is the browser. */
  readonly browser: string;
  /** The editor with the extension of this checkout, on `workspace`. */
  readonly url: string;
  /** A copy of `tests/extension/workspace`. */
  readonly workspace: string;
  /** User settings of that editor, and where its log is. */
  readonly userData: string;
  /** Where the extension is installed in it. */
  readonly extensions: string;
  /** The value of RANKSCOPE_TEST in every process that the editor starts. */
  readonly mark: string;
}

export const HARNESS_VARIABLE = "RANKSCOPE_UI";
/** Set instead, with the reason, where no browser can be had. */
export const SKIP_VARIABLE = "RANKSCOPE_UI_SKIP";

export function harness(): Harness {
  const text = process.env[HARNESS_VARIABLE];
  if (text === undefined) throw new Error("these tests are run by `npm test -- --only Editor`");
  return JSON.parse(text) as Harness;
}

/** For the options of `describe`: why nothing runs here, or false. */
export const skip: string | false = process.env[SKIP_VARIABLE] ?? false;

interface RunnerScripts {
  /** Another editor, without a browser. */
  readonly startSampleEditor: (options: { readonly vsix: string; readonly python: string }) => Promise<{
    readonly harness: Omit<Harness, "browser">;
    close(): Promise<void>;
  }>;
  readonly findPythons: () => { readonly path: string }[];
}

/** The runner's own scripts, which are no TypeScript. */
export async function runnerScripts(): Promise<RunnerScripts> {
  const load = (name: string): Promise<object> =>
    import(pathToFileURL(join(ROOT, "tests", "support", name)).href) as Promise<object>;
  return { ...(await load("ui.mjs")), ...(await load("pythons.mjs")) } as RunnerScripts;
}
