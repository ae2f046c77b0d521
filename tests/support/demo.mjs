// `npm run demo`: the main job, plain and under RankScope. Arguments go to the demo.

import { join } from "node:path";

import { main, PYTHON, run, venvEnvironment } from "./processes.mjs";
import { setUpPython } from "./setup.mjs";

await main((args) => {
  setUpPython();
  return run(PYTHON, [join("tests", "jobs", "demo", "run_demo.py"), ...args], { env: venvEnvironment() });
});
