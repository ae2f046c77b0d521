// `npm test`: every test of the project. Arguments go to pytest (`npm test -- -k name`), and then pytest alone is run.
// `npm test -- --only SUITE` runs one suite: TypeScript, Python or Editor (then arguments choose scenarios by name).

import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

import { main, PYTHON, ROOT, run, SetupError, venvEnvironment } from "./processes.mjs";
import { addCounts, closingLine, countTests } from "./reports.mjs";
import { setUpNode, setUpOtherPythons, setUpPython } from "./setup.mjs";
import { runUiTests } from "./ui.mjs";

const BUILD = join(ROOT, ".build");
const REPORTS = join(BUILD, "reports");
const NO_TESTS_SELECTED = 5; // pytest's exit status

/** The compiled tests of one folder, run by Node's own runner. */
function runNodeTests(folder, report, { options = [], env = process.env } = {}) {
  const compiled = join(BUILD, "tests", "extension", folder);
  const files = readdirSync(compiled, { recursive: true }).filter((file) => file.endsWith(".test.js"));
  const argv = [
    "--test",
    "--enable-source-maps",
    ...options,
    "--test-reporter-destination=stdout",
    "--test-reporter=junit",
    `--test-reporter-destination=${report}`,
    ...files.sort().map((file) => join(compiled, file)),
  ];
  return run(process.execPath, argv, { env });
}

async function compile() {
  await setUpNode();
  return (await run(join(ROOT, "node_modules", ".bin", "tsc"), [])) === 0;
}

async function runUnitTests(report) {
  return (await compile()) ? runNodeTests("unit", report, { options: ["--test-reporter=dot"] }) : 1;
}

/** The scenarios in a real editor. Without a browser they are reported as skipped, and in CI as failed. */
async function runEditorTests(report, names) {
  if (!(await compile())) return 1;
  const options = [
    "--test-reporter=spec",
    "--test-concurrency=1",
    ...names.map((name) => `--test-name-pattern=${name}`),
  ];
  return runUiTests((env) => runNodeTests("ui", report, { options, env }));
}

/**
 * pytest on one Python, tests side by side: they mostly wait for processes to start. `mayBeEmpty`: a selection need not
 * match a test on every Python.
 */
async function runPytest(python, args, report, env, mayBeEmpty) {
  const beside = args.some((arg) => arg.startsWith("-n")) ? [] : ["-n", String(Math.min(availableParallelism(), 4))];
  const status = await run(python, ["-m", "pytest", "-q", ...beside, `--junitxml=${report}`, ...args], { env });
  return status === NO_TESTS_SELECTED && mayBeEmpty ? 0 : status;
}

/** `--only SUITE` taken out of the arguments. */
function selection(args) {
  const at = args.indexOf("--only");
  if (at < 0) return { only: undefined, rest: args };
  return { only: args[at + 1], rest: [...args.slice(0, at), ...args.slice(at + 2)] };
}

/** The suites by name, in the order in which they run. */
function suitesFor(only, args) {
  const suites = [
    ["TypeScript", runUnitTests],
    ["Python", (report) => runPytest(PYTHON, args, report, venvEnvironment(), args.length > 0)],
  ];
  for (const { minor, path } of only === undefined ? setUpOtherPythons() : []) {
    const suite = (report) => runPytest(path, [...args, "-m", "core"], report, process.env, args.length > 0);
    suites.push([`Python ${minor}, core path`, suite]);
  }
  suites.push(["Editor", (report) => runEditorTests(report, args)]);
  if (only === undefined) return args.length === 0 ? suites : suites.filter(([name]) => name.startsWith("Python"));
  const chosen = suites.filter(([name]) => name.toLowerCase() === only.toLowerCase());
  if (chosen.length === 0) throw new SetupError(`--only takes one of: ${suites.map(([name]) => name).join(", ")}`);
  return chosen;
}

/** A suite that cannot be set up is a failure of its own, and does not keep the others from running. */
async function statusOf(suite, report) {
  try {
    return await suite(report);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`error: ${error.message}`);
    return 1;
  }
}

await main(async (args) => {
  const { only, rest } = selection(args);
  rmSync(BUILD, { recursive: true, force: true });
  mkdirSync(REPORTS, { recursive: true });
  setUpPython();
  const results = [];
  for (const [name, suite] of suitesFor(only, rest)) {
    console.log(`\n— ${name}`);
    const report = join(REPORTS, `${name.replaceAll(/\W+/g, "-")}.xml`);
    const status = await statusOf(suite, report);
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
