// `npm run check`: every static check, all of them run even if one fails. With --fix: what tools can mend by themselves.

import { join } from "node:path";

import { main, ROOT, run, venvEnvironment } from "./processes.mjs";
import { setUpNode, setUpPython } from "./setup.mjs";

const node = (name) => join(ROOT, "node_modules", ".bin", name);
const python = (name) => join(ROOT, ".venv", "bin", name);

const CHECKS = [
  ["ruff", python("ruff"), ["check"], ["check", "--fix"]],
  ["ruff format", python("ruff"), ["format", "--check"], ["format"]],
  ["mypy", python("mypy"), []],
  ["eslint", node("eslint"), ["."], [".", "--fix"]],
  ["prettier", node("prettier"), ["--check", "--log-level=warn", "."], ["--write", "--log-level=warn", "."]],
  ["tsc", node("tsc"), ["--noEmit"]],
  ["tsc, panels", node("tsc"), ["--noEmit", "--project", join("extension", "webview")]],
];

await main(async (args) => {
  const isFixing = args.includes("--fix");
  setUpPython();
  await setUpNode();
  const failed = [];
  for (const [name, command, checking, fixing] of CHECKS) {
    if (isFixing && fixing === undefined) continue;
    console.log(`\n— ${name}`);
    const status = await run(command, isFixing ? fixing : checking, { env: venvEnvironment() });
    if (status !== 0) failed.push(name);
  }
  console.log(failed.length === 0 ? "\ncheck: clean" : `\ncheck: failed: ${failed.join(", ")} (npm run fix may help)`);
  return failed.length === 0 ? 0 : 1;
});
