// `npm run bench -- NAME`: one benchmark, tests/bench/NAME.py or NAME.mjs. Further arguments go to it.

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { main, PYTHON, ROOT, run, venvEnvironment } from "./processes.mjs";
import { setUpNode, setUpPython } from "./setup.mjs";

const FOLDER = join("tests", "bench");

await main(async (args) => {
  const files = readdirSync(join(ROOT, FOLDER)).filter((file) => /^[a-z]\w*\.(py|mjs)$/.test(file));
  const byName = new Map(files.sort().map((file) => [file.slice(0, file.lastIndexOf(".")), file]));
  const [name, ...rest] = args;
  const file = byName.get(name);
  if (file === undefined) {
    console.error(name === undefined ? "which benchmark?" : `no benchmark is called '${name}'`);
    console.error(`usage: npm run bench -- NAME, where NAME is one of: ${[...byName.keys()].join(", ")}`);
    return 2;
  }
  setUpPython();
  if (file.endsWith(".mjs")) await setUpNode();
  const interpreter = file.endsWith(".mjs") ? process.execPath : PYTHON;
  return run(interpreter, [join(FOLDER, file), ...rest], { env: venvEnvironment() });
});
