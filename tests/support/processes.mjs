// Running other programs: in the foreground, or quietly into a log.

import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, join, resolve } from "node:path";

/** The checkout. */
export const ROOT = resolve(import.meta.dirname, "..", "..");

/** The Python of the full environment, made by setup.mjs. */
export const VENV = join(ROOT, ".venv");
export const PYTHON = join(VENV, "bin", "python");

/** A failure a person can mend: printed without a stack. */
export class SetupError extends Error {}

/** This process's environment with the full environment's programs first on PATH. */
export function venvEnvironment() {
  return {
    ...process.env,
    VIRTUAL_ENV: VENV,
    PATH: `${join(VENV, "bin")}${delimiter}${process.env.PATH ?? ""}`,
  };
}

/** Run in the foreground; resolves to the exit status as a shell gives it. Signals sent to us are passed on. */
export function run(command, args, { env = process.env, cwd = ROOT } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd, env, stdio: "inherit" });
    const pass = (signal) => child.kill(signal);
    // The terminal sends Ctrl-C to the child as well: only stay alive to report how it ended.
    const stay = () => {};
    process.on("SIGTERM", pass).on("SIGINT", stay);
    const restore = () => process.off("SIGTERM", pass).off("SIGINT", stay);
    child.on("error", (error) => {
      restore();
      fail(new SetupError(`cannot run ${command}: ${error.message}`));
    });
    child.on("close", (code, signal) => {
      restore();
      done(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}

/** Run quietly, output appended to `log`. Throws a SetupError with the end of the log when it fails. */
export function runLogged(log, command, args, { mend = "", cwd = ROOT, env = process.env } = {}) {
  const out = openSync(log, "a");
  writeSync(out, `\n$ ${command} ${args.join(" ")}\n`);
  const result = spawnSync(command, args, { cwd, env, stdio: ["ignore", out, out] });
  closeSync(out);
  if (result.status === 0) return;
  const why = result.error ? result.error.message : tail(log);
  throw new SetupError(`${command} ${args.slice(0, 4).join(" ")} … failed:\n${why}\n${mend}\nThe whole log: ${log}`);
}

function tail(log) {
  const lines = readFileSync(log, "utf8").trimEnd().split("\n");
  return lines
    .filter((line) => !line.includes("is ignored: it is either a non-existing path"))
    .slice(-15)
    .join("\n");
}

/** Run the body of a script: its result is the exit status; a SetupError is printed plainly. */
export async function main(body) {
  try {
    process.exitCode = await body(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`\nerror: ${error.message}`);
    process.exitCode = 1;
  }
}
