/** The panels at a size that no test can start: 1,024 ranks. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { MemberNames } from "../../../extension/src/core/memberNames.js";
import type { CompareState, StacksState } from "../../../extension/src/core/panelMessages.js";
import type { CompareRow, Comparison } from "../../../extension/src/core/protocol.js";
import { graphOf } from "../../../extension/src/core/stackGraph.js";
import { countPlaces, foldStacks } from "../../../extension/src/core/stackTree.js";
import { paused, ranks } from "../unit/members.js";
import { answer, comparison, merged, type Standing } from "../unit/merged.js";
import { skip } from "./harness.js";
import { PanelPage } from "./panelPage.js";

const SIZE = 1024;
const TEST_MS = 60_000;
const members = ranks(SIZE, { group: "actor", session: "actor/all" }).map((member) =>
  member.rank === 517 ? paused(member) : member,
);
const names = new MemberNames(members);

/** Most wait in a collective; some load data, a few are early, one is at a breakpoint, one is somewhere else. */
function standings(): Standing[] {
  const reduce = [
    "+torch/distributed/c10d_logger.py wrapper:81",
    "+torch/distributed/distributed_c10d.py all_reduce:3004",
  ];
  const main = ["train.py <module>:210", "train.py main:198", "train.py fit:171"];
  const of = (wanted: (rank: number) => boolean): string[] =>
    members.filter(({ rank }) => wanted(rank ?? 0)).map(({ id }) => id);
  const isOdd = (rank: number): boolean =>
    rank === 517 || rank === 3 || (rank >= 512 && rank < 520) || rank % 128 === 5;
  return [
    {
      members: of((rank) => !isOdd(rank)),
      frames: [...main, "train.py train_step:142", ...reduce],
      call: "all_reduce",
    },
    {
      members: of((rank) => rank >= 512 && rank < 520 && rank !== 517),
      frames: [...main, "data/loader.py next_batch:77"],
    },
    {
      members: of((rank) => rank % 128 === 5 && rank !== 517),
      frames: [
        ...main,
        "train.py train_step:139",
        "model/attention_with_rotary_embeddings.py forward_with_cached_keys:88",
      ],
    },
    { members: of((rank) => rank === 517), frames: [...main, "train.py train_step:141"], state: "paused" },
    {
      members: of((rank) => rank === 3),
      frames: [...main, "train.py save_checkpoint:120", "io/storage.py write_shard:64"],
      call: "file.write",
    },
  ];
}

function stacksState(all: readonly Standing[], opened: ReadonlySet<string> = new Set()): StacksState {
  const { tree } = merged(all);
  const { stretches } = foldStacks(tree, names);
  const nodes = graphOf(stretches, names, opened);
  const summary = `1,024 ranks in ${countPlaces(stretches)} places`;
  return { type: "stacks", job: "pretrain", summary, nodes, total: SIZE, ranks: "", doing: "", notes: [], empty: "" };
}

function compareState(found: Comparison): CompareState {
  return {
    type: "state",
    form: { expression: found.expression, ranks: "all", isFollowing: true, reference: "" },
    ...{ isFormNew: true, job: "pretrain", empty: "", isBusy: false, error: "", answer: found },
    ...{ when: "14:03:12 · 212 ms", stale: "", canPause: false, sets: ["all"] },
  };
}

function losses(): Comparison {
  const rows = members.map((member, at): CompareRow => {
    const value = at === 700 ? "NaN" : at === 41 ? "Infinity" : at === 300 ? 9.75 : 2.5 + Math.sin(at * 1.7) / 20;
    const facts = { text: String(value), type: "float", state: "paused" };
    return at === 900
      ? answer(member, { ...facts, kind: "late", text: "no answer within 5 s", value: null })
      : answer(member, { ...facts, value });
  });
  const outliers = [rows[300]?.member ?? ""];
  const stats = { min: 2.45, max: 9.75, mean: 2.507, nan: 1, inf: 1, outliers };
  return comparison(rows, { expression: "loss", stats, late: ["actor 900"] });
}

function weights(): Comparison {
  const rows = members.slice(0, 16).map((member, at): CompareRow => {
    const differs = at === 11;
    const tensor = {
      ...{
        kind: "tensor",
        shape: [4096, 4096],
        dtype: "torch.bfloat16",
        device: `cuda:${at % 8}`,
        min: -1.203,
        max: 3.41,
      },
      ...{
        mean: differs ? 0.013 : 0.01204,
        norm: differs ? 71.2 : 66.31,
        nan: differs ? 2 : 0,
        inf: 0,
        count: 1 << 24,
      },
      digest: differs ? "xxh3_128:77ab01cd23ef4567" : "xxh3_128:5f3a9c1d20b48e77",
    };
    const text = `Tensor 4096×4096 bf16 · ${differs ? "min −1.203 max 3.41 mean 0.013 · NaN 2" : "min −1.203 max 3.41 mean 0.012 · NaN 0"} Inf 0`;
    const delta =
      at === 0 ? null : { max: differs ? 0.52 : 0, index: differs ? [17, 2040] : null, mean: differs ? 1e-4 : 0 };
    return answer(member, { kind: "tensor", text, type: "Tensor", value: null, tensor, delta, state: "paused" });
  });
  return comparison(rows, { expression: "model.layers[0].mlp.up_proj.weight", reference: rows[0]?.member ?? "" });
}

/** A test with a panel of its own, closed afterwards. */
function inPanel(name: string, script: string, body: (panel: PanelPage) => Promise<void>): void {
  it(name, { skip, timeout: TEST_MS }, async () => {
    const panel = await PanelPage.open(script);
    try {
      await body(panel);
      assert.deepEqual(panel.faults, []);
    } finally {
      await panel.close();
    }
  });
}

describe("The graph of 1,024 ranks", () => {
  inPanel("shows the odd ones first, finds a place, and goes to it", "stacks", async (panel) => {
    await panel.post(stacksState(standings()));
    const { page } = panel;
    assert.equal(await page.locator(".box").count(), 6);
    await panel.screenshots("stacks-1024");
    await page.locator("input[type=search]").fill("all_reduce");
    await page.getByText("1 found").waitFor();
    await panel.screenshots("stacks-1024-found");
    await page.keyboard.press("Enter");
    await page.locator(".box", { hasText: "all_reduce" }).click();
    const said = await panel.sent();
    assert.deepEqual(
      said.map(({ type }) => type),
      ["ready", "open"],
    );
  });

  inPanel("is walked with the keyboard", "stacks", async (panel) => {
    await panel.post(stacksState(standings()));
    await panel.page.locator(".box").first().focus();
    for (const key of ["ArrowRight", "ArrowDown", "Enter"]) await panel.page.keyboard.press(key);
    assert.match(await panel.page.locator(".box:focus").innerText(), /train_step:141/);
    assert.equal((await panel.sent()).at(-1)?.type, "open");
  });

  inPanel("has only what is in sight on the page, when everybody stands elsewhere", "stacks", async (panel) => {
    const scattered = members.map(({ id }, at): Standing => ({
      members: [id],
      frames: ["a.py main:1", `b.py f${at}:${at + 1}`],
    }));
    const state = stacksState(scattered);
    await panel.post(state);
    await panel.screenshots("stacks-1024-scattered");
    const more = state.nodes[0]?.children.find(({ isMore }) => isMore);
    assert.ok(more);
    await panel.page.locator(".box.more").click();
    assert.deepEqual((await panel.sent()).at(-1), { type: "expand", id: more.id });
    await panel.post(stacksState(scattered, new Set([more.id])));
    const shown = await panel.page.locator(".box").count();
    assert.ok(shown > 5 && shown < 200, `${shown} boxes`);
  });
});

describe("The comparison of 1,024 ranks", () => {
  inPanel("plots numbers, names what stands out, and keeps most rows off the page", "compare", async (panel) => {
    await panel.post(compareState(losses()));
    const { page } = panel;
    const shown = await page.locator(".rows > .row").count();
    assert.ok(shown > 5 && shown < 80, `${shown} rows`);
    const legend = await page.locator(".legend").innerText();
    assert.match(legend, /1 outlier\s+actor 300/);
    assert.match(legend, /1 NaN\s+actor 700/);
    assert.match(legend, /1 Inf\s+actor 41/);
    assert.match(await page.locator(".notes").innerText(), /No answer in time from actor 900/);
    await panel.screenshots("compare-1024");
    await page.locator("button[role=columnheader]", { hasText: "Value" }).click();
    await page.locator(".rows > .row", { hasText: "9.75" }).first().waitFor();
    await page.locator("input[type=search]").fill("actor 1000");
    await page.getByText("1 of 1,024 ranks").waitFor();
    await page.locator(".rows > .row").first().click();
    assert.equal((await panel.sent()).at(-1)?.type, "open");
  });

  inPanel("shows tensors by what they are, and who differs", "compare", async (panel) => {
    await panel.post(compareState(weights()));
    const { page } = panel;
    // its digest, and the largest difference
    assert.equal(await page.locator(".row", { hasText: "actor 11" }).locator(".differs").count(), 2);
    assert.equal(await page.locator(".differs").count(), 2);
    await panel.screenshots("compare-tensors");
    await page.locator(".group").nth(1).click();
    assert.equal(await page.locator(".rows > .row").count(), 1);
    await page.locator(".labelled", { hasText: "against" }).locator("select").selectOption({ label: "actor 3" });
    const asked = (await panel.sent()).at(-1);
    assert.equal(asked?.type, "compare");
  });
});
