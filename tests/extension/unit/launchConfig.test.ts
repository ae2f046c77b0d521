import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  checkConfiguration,
  type Configuration,
  nearest,
  settingsOf,
  summaryOf,
} from "../../../extension/src/core/launchConfig";
import { contributes } from "../../../package.json";
import table from "../../support/rank_sets.json";

const LAUNCH = { name: "job", type: "rankscope", request: "launch" };
const PROGRAM = { ...LAUNCH, program: "train.py" };

function keysOf(configuration: Configuration): string[] {
  return checkConfiguration(configuration).map(({ key }) => key);
}

describe("checkConfiguration", () => {
  it("takes every initial configuration and every setting with its default", () => {
    const [debuggers] = contributes.debuggers;
    for (const configuration of debuggers?.initialConfigurations ?? []) {
      assert.deepEqual(checkConfiguration(configuration), []);
    }
    const properties: Record<string, object> = debuggers?.configurationAttributes.launch.properties ?? {};
    for (const [key, schema] of Object.entries(properties)) {
      if (!("default" in schema) || key === "command") continue;
      assert.deepEqual(checkConfiguration({ ...PROGRAM, [key]: schema.default }), [], key);
    }
  });

  it("takes what the hub takes: several types of one setting, null, and the editor's own keys", () => {
    const good: Configuration[] = [
      { ...LAUNCH, command: "torchrun --nproc-per-node 4 train.py" },
      { ...LAUNCH, command: ["torchrun", "train.py"], args: ["--lr", 0.1] },
      { ...LAUNCH, module: "verl.trainer.main_ppo", python: ["python3", "-X", "dev"], env: { A: null, B: 1, C: true } },
      { ...PROGRAM, ranks: 0, presentation: { group: "a" }, preLaunchTask: "build", __extension: {}, noDebug: true },
      { ...PROGRAM, ranks: ["0-3", "critic/all"], releaseAfter: 0.5, maxSessions: 1, cwd: null },
      { ...PROGRAM, ranks: "workers", rankSets: { workers: "actor/all,critics", critics: "critic/all" } },
      { ...PROGRAM, pathMappings: [{ localRoot: "/a", remoteRoot: "/b" }] },
      { type: "rankscope", request: "attach", name: "look", run: "unix:/tmp/x" },
    ];
    for (const configuration of good) assert.deepEqual(checkConfiguration(configuration), []);
  });

  const unknown: [string, string, string][] = [
    ["sesions", "launch", "Did you mean 'sessions'?"],
    ["justmycode", "launch", "Did you mean 'justMyCode'?"],
    ["stopOnEnrty", "launch", "Did you mean 'stopOnEntry'?"],
    ["subProcess", "launch", "Remove it."],
    ["run", "launch", "Remove it, or change the request to attach."],
    ["program", "attach", "Remove it, or change the request to launch."],
    ["toString", "launch", "Remove it."],
  ];
  for (const [key, request, hint] of unknown) {
    it(`says what was meant: '${key}' in ${request}`, () => {
      const base = request === "launch" ? { ...LAUNCH, module: "m" } : { type: "rankscope", name: "a" };
      const [fault] = checkConfiguration({ ...base, request, [key]: "x" });
      assert.deepEqual([fault?.key, fault?.hint], [key, hint]);
    });
  }

  const wrong: [Configuration, string, RegExp][] = [
    [{ args: "--lr 1" }, "args", /"--lr 1" is not a list/],
    [{ args: ["a", { b: 1 }] }, "args[1]", /\{"b":1\} is not a text or a number/],
    [{ cwd: 3 }, "cwd", /3 is not a text/],
    [{ env: ["A=1"] }, "env", /is not an object/],
    [{ env: { A: ["x"] } }, "env.A", /\["x"\] is not/],
    [{ env: { "A=B": "x" } }, "env", /'A=B' is no name of a variable/],
    [{ stopOnEntry: "yes" }, "stopOnEntry", /"yes" is not true or false/],
    [{ maxSessions: 0 }, "maxSessions", /0 is out of bounds/],
    [{ maxSessions: 1.5 }, "maxSessions", /1.5 is not a whole number/],
    [{ releaseAfter: 0 }, "releaseAfter", /0 is out of bounds/],
    [{ releaseAfter: 1e9 }, "releaseAfter", /out of bounds/],
    [{ rankSets: { a: 3 } }, "rankSets.a", /3 is not a text/],
    [{ pathMappings: [{ localRoot: "/a" }] }, "pathMappings[0]", /'remoteRoot' is missing/],
    [{ pathMappings: [{ localRoot: "/a", remoteRoot: "/b", root: "/" }] }, "pathMappings[0].root", /no such setting/],
    [{ program: "a\0b" }, "program", /null character/],
    [{ ranks: true }, "ranks", /true is not a text or a list or a number/],
  ];
  for (const [part, key, message] of wrong) {
    it(`refuses ${JSON.stringify(part)}`, () => {
      const [fault, ...others] = checkConfiguration({ ...PROGRAM, ...part });
      assert.equal(fault?.key, key);
      assert.match(fault.message, message);
      assert.deepEqual(others, []);
    });
  }

  it("names the choices, or the one that was meant", () => {
    const [meant] = checkConfiguration({ ...PROGRAM, sessions: "perrank" });
    assert.equal(meant?.hint, "Did you mean 'perRank'?");
    const [any] = checkConfiguration({ ...PROGRAM, console: "tmux" });
    assert.equal(any?.message, '"tmux" is none of integratedTerminal, internalConsole, externalTerminal');
    assert.equal(any.hint, "Write integratedTerminal, internalConsole or externalTerminal.");
  });

  it("wants exactly one thing to run", () => {
    const [none] = checkConfiguration(LAUNCH);
    assert.deepEqual([none?.key, none?.message], ["program", "nothing to run is given"]);
    const [both] = checkConfiguration({ ...PROGRAM, command: "torchrun train.py" });
    assert.deepEqual([both?.key, both?.message], ["command", "program and command exclude each other"]);
    assert.deepEqual(keysOf({ ...PROGRAM, module: "", command: [] }), []);
    assert.deepEqual(keysOf({ ...LAUNCH, progam: "train.py" }), ["progam"]);
  });

  it("refuses a request that is neither launch nor attach", () => {
    assert.deepEqual(keysOf({ name: "a", type: "rankscope", request: "lunch" }), ["request"]);
  });

  for (const { text, why, names, ...row } of table.errors.filter(({ text }) => text !== "")) {
    it(`points into a rank set: '${text}' (${why})`, () => {
      const [fault] = checkConfiguration({ ...PROGRAM, ranks: text, rankSets: names ?? {} }).slice(-1);
      assert.equal(fault?.key, "ranks");
      assert.equal(fault.message, `Rank set '${row.of ?? text}': ${why} at column ${row.at + 1}`);
    });
  }

  it("finds a fault in a named rank set that nobody uses", () => {
    assert.deepEqual(keysOf({ ...PROGRAM, rankSets: { good: "0", bad: "5-3" } }), ["rankSets.bad"]);
  });
});

describe("summaryOf", () => {
  it("has the first fault, and names the others", () => {
    const faults = checkConfiguration({ ...PROGRAM, sesions: "auto", cwd: 1, args: 2 });
    assert.equal(
      summaryOf(faults),
      "launch.json, 'sesions': there is no such setting. Did you mean 'sessions'? (2 more: 'cwd', 'args')",
    );
    assert.equal(summaryOf([]), "");
  });
});

describe("nearest", () => {
  it("finds a near word and no far one", () => {
    assert.equal(nearest("arg", settingsOf("launch")), "args");
    assert.equal(nearest("progarm", settingsOf("launch")), "program");
    assert.equal(nearest("x", settingsOf("launch")), undefined);
    assert.equal(nearest("autoReload", settingsOf("launch")), undefined);
  });
});
