// `npm run bench -- NAME`: one benchmark, tests/bench/NAME.py. Further arguments go to it.

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { main, PYTHON, ROOT, run, venvEnvironment } from "./processes.mjs";
import { setUpPython } from "./setup.mjs";

const FOLDER = join("tests", "bench");

await main((args) => {
  const names = readdirSync(join(ROOT, FOLDER))
    .filter((file) => /^[a-z]\w*\.py$/.test(file))
    .map((file) => file.slice(0, -".py".length))
    .sort();
  const [name, ...rest] = args;
  if (!names.includes(name)) {
    console.error(name === undefined ? "which benchmark?" : `no benchmark is called '${name}'`);
    console.error(`usage: npm run bench -- NAME, where NAME is one of: ${names.join(", ")}`);
    return 2;
  }
  setUpPython();
  return run(PYTHON, [join(FOLDER, `${name}.py`), ...rest], { env: venvEnvironment() });
});
