/** Tensors in the Variables section and in the debug console: a line with statistics, rows in pages. */

import assert from "node:assert/strict";
import { describe } from "node:test";

import { scenario } from "./scenario.js";

const FILE = "torchrun_job.py";
const JOB = "torchrun, 2 ranks";
const NUMBER = String.raw`−?[\d.e−]+`;
const INPUTS = new RegExp(`^Tensor 20000×64 float32 cpu · min ${NUMBER} max ${NUMBER} mean ${NUMBER} · NaN 0 Inf 0$`);

describe("A tensor", () => {
  scenario("is shown by shape, place and statistics, and unfolds page by page", async (window) => {
    const { source, debug } = window;
    await source.open(FILE);
    await source.addBreakpoint(FILE, "norm");
    await source.limit(FILE, "norm", "0");
    await debug.start(JOB);
    await debug.stoppedAt(FILE, source.line(FILE, "norm"));
    await debug.fold("Watch", "Call Stack", "Breakpoints", "Ranks");
    await debug.widen(360);
    assert.match(await debug.variable("inputs"), INPUTS);
    assert.match(await debug.variable("weights"), /^Tensor 64 float32 cpu · min 0 max 0 mean 0 · NaN 0 Inf 0$/);

    await debug.unfold("inputs");
    assert.equal(await debug.variable("shape"), "torch.Size([20000, 64])");
    assert.equal(await debug.variable("requires_grad"), "False");
    assert.match(await debug.variable("[0]"), /^Tensor 64 float32 cpu · min /);
    await window.screenshot("tensors");

    await debug.showConsole();
    await debug.evaluate("inputs");
    assert.match(await debug.console(/^Tensor 20000/), INPUTS);
    await debug.evaluate("[inputs, weights]");
    await debug.console(/^\[Tensor 20000×64 float32 cpu, Tensor 64 float32 cpu\]$/);
    await source.removeBreakpoint(FILE, "norm");
    await debug.press("Continue");
    await debug.console(/rank 1: last loss/);
    await debug.ended();
  });
});
