/** What the runner (`tests/support/ui.mjs`) has started for the scenarios, and where things are. */

import { resolve } from "node:path";

/** The checkout; this file runs from `.build/tests/extension/ui`. */
export const ROOT = resolve(__dirname, "..", "..", "..", "..");

/** What the runner tells by the environment. */
export interface Harness {
  /** Where a browser listens for Playwright. */
  readonly browser: string;
  /** The editor with the extension of this checkout, on `workspace`. */
  readonly url: string;
  /** A copy of `tests/extension/workspace`. */
  readonly workspace: string;
  /** User settings of that editor, and where its log is. */
  readonly userData: string;
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
