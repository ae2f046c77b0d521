// `npm test`: every test of the project. Arguments go to pytest (`npm test -- -k name`), and then pytest alone is run.

import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { main, PYTHON, ROOT, run, SetupError, venvEnvironment } from "./processes.mjs";
import { addCounts, closingLine, countTests } from "./reports.mjs";
import { setUpNode, setUpOtherPythons, setUpPython } from "./setup.mjs";

const BUILD = join(ROOT, ".build");
const REPORTS = join(BUILD, "reports");
const NO_TESTS_SELECTED = 5; // pytest's exit status

/** The TypeScript unit tests, compiled and run by Node's own runner. */
async function runUnitTests(report) {
  if ((await run(join(ROOT, "node_modules", ".bin", "tsc"), [])) !== 0) return 1;
  const folder = join(BUILD, "tests", "extension", "unit");
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".test.js"));
  return run(process.execPath, [
    "--test",
    "--enable-source-maps",
    "--test-reporter=dot",
    "--test-reporter-destination=stdout",
    "--test-reporter=junit",
    `--test-reporter-destination=${report}`,
    ...files.sort().map((file) => join(folder, file)),
  ]);
}

/** pytest on one Python. `mayBeEmpty`: a selection need not match a test on every Python. */
async function runPytest(python, args, report, env, mayBeEmpty) {
  const status = await run(python, ["-m", "pytest", "-q", `--junitxml=${report}`, ...args], { env });
  return status === NO_TESTS_SELECTED && mayBeEmpty ? 0 : status;
}

await main(async (args) => {
  rmSync(BUILD, { recursive: true, force: true });
  mkdirSync(REPORTS, { recursive: true });
  setUpPython();
  const others = setUpOtherPythons();
  const suites = [["Python", (report) => runPytest(PYTHON, args, report, venvEnvironment(), args.length > 0)]];
  for (const { minor, path } of others) {
    const suite = (report) => runPytest(path, [...args, "-m", "core"], report, process.env, args.length > 0);
    suites.push([`Python ${minor}, core path`, suite]);
  }
  if (args.length === 0) {
    await setUpNode();
    suites.unshift(["TypeScript", runUnitTests]);
  }

  const results = [];
  for (const [name, suite] of suites) {
    console.log(`\n— ${name}`);
    const report = join(REPORTS, `${name.replaceAll(/\W+/g, "-")}.xml`);
    const status = await suite(report);
    const counts = countTests(report) ?? { passed: 0, failed: 1, skipped: 0 };
    // A runner that fails without a failed test (a collection error, a crash) counts as one.
    if (status !== 0 && counts.failed === 0) counts.failed = 1;
    results.push([name, counts]);
  }

  console.log();
  for (const [name, counts] of results) console.log(`${name}: ${closingLine(counts)}`);
  const total = addCounts(results.map(([, counts]) => counts));
  if (total.passed + total.failed === 0) throw new SetupError(`no test matches ${args.join(" ")}`);
  console.log(closingLine(total));
  return total.failed === 0 ? 0 : 1;
});
