import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { describe, it } from "node:test";

import { arrange, inOrder } from "../../../extension/src/core/jobTree";
import type { Member, TopFrame } from "../../../extension/src/core/protocol";
import { type JobFacts, RankModel, type RankNode } from "../../../extension/src/core/rankModel";
import { child, driver, frame, member, paused, ranks } from "./members";

function job(members: readonly Member[], frames: Record<string, TopFrame | null> = {}, id = "j"): JobFacts {
  return { id, name: `job ${id}`, members, frames: new Map(Object.entries(frames)), late: new Set() };
}

/** The tree as indented text. */
function drawn(nodes: readonly RankNode[], indent = ""): string[] {
  return nodes.flatMap((node) => [
    `${indent}${node.label}: ${node.description}`,
    ...drawn(node.children, `${indent}  `),
  ]);
}

function tree(...jobs: JobFacts[]): string[] {
  const model = new RankModel();
  model.update(jobs);
  return drawn(model.roots);
}

function labels(change: ReturnType<RankModel["update"]>): string | string[] {
  return change === "all" ? change : change.map((node) => node.label);
}

describe("the tree of ranks", () => {
  it("has the driver on top, then the group with its ranks in order", () => {
    const [a, b] = [member({ rank: 1 }), member({ rank: 0 })];
    assert.deepEqual(tree(job([a, b, driver()])), [
      "driver train.py: running",
      "actor: 2 ranks",
      "  actor 0: running",
      "  actor 1: running",
    ]);
  });

  it("has groups in the order of joining, each with its own counts", () => {
    const found = tree(job([...ranks(2, { group: "rollout" }), ...ranks(1, { group: "actor" }).map((m) => paused(m))]));
    assert.deepEqual(found, [
      "rollout: 2 ranks: 2 running",
      "  rollout 0: running",
      "  rollout 1: running",
      "actor: 1 rank: 1 paused",
      "  actor 0: paused · breakpoint",
    ]);
  });

  it("says of a group that stopped together how far apart", () => {
    const members = ranks(2).map((each) => paused(each));
    const skews = { actor: { milliseconds: 42.7, stopped: 2, size: 2 } };
    assert.equal(tree({ ...job(members), skews })[0], "actor: 2 ranks · stopped within 43 ms");
    const some = { actor: { milliseconds: 5, stopped: 1, size: 2 } };
    assert.equal(tree({ ...job(members), skews: some })[0], "actor: 2 ranks · 1 of 2 stopped within 5 ms");
  });

  it("has nodes where the job has several", () => {
    const on = (rank: number, node: number): Member =>
      member({ rank, node, host: `host-${node}`, label: `actor ${rank} · node-${node}` });
    assert.deepEqual(tree(job([on(2, 1), on(0, 0), on(1, 0)])), [
      "actor: 3 ranks",
      "  node-0: host-0",
      "    actor 0: running",
      "    actor 1: running",
      "  node-1: host-1",
      "    actor 2: running",
    ]);
  });

  it("has jobs where there are several, also with the same ranks", () => {
    const found = tree(job([member({ number: 1 })], {}, "a"), job([paused(member({ number: 1 }))], {}, "b"));
    assert.deepEqual(found, [
      "job a: 1 rank: 1 running",
      "  actor: 1 rank: 1 running",
      "    actor 0: running",
      "job b: 1 rank: 1 paused",
      "  actor: 1 rank: 1 paused",
      "    actor 0: paused · breakpoint",
    ]);
  });

  it("has older incarnations under the one that runs", () => {
    const crashed = member({ state: "crashed", ending: "ValueError: x" });
    assert.deepEqual(tree(job([crashed, member({ incarnation: 1 })])), [
      "actor: 1 rank",
      "  actor 0: running · restarted 1×",
      "    incarnation 0: crashed: ValueError: x",
    ]);
  });

  it("hides nobody: two that live under one provisional rank are both shown", () => {
    assert.equal(tree(job([member({ isFinal: false }), member()])).length, 3);
  });

  it("has live and crashed children under their parent, and counts those that ended well", () => {
    const rank = member();
    const worker = child(rank);
    const members = [driver(), rank, worker, child(worker), child(rank, { state: "exited" })];
    const model = new RankModel();
    model.update([job(members)]);
    assert.deepEqual(
      drawn(model.roots).map((line) => line.replace(/\d{4}/g, "N")),
      [
        "driver train.py: running",
        "actor: 1 rank",
        "  actor 0: running",
        "    actor 0 child N: running",
        "      actor 0 child N child N: running",
      ],
    );
    assert.match(model.find("j", rank.id)?.tooltip() ?? "", /child processes that have ended: 1/);
  });

  it("keeps a child whose parent is not known, and a group without a name", () => {
    const orphan = member({ role: "child", label: "python child 77", group: "", rank: null });
    assert.deepEqual(tree(job([orphan, member({ group: "", label: "train.py 0" })])), [
      "train.py: 1 rank",
      "  train.py 0: running",
      "python child 77: running",
    ]);
  });

  it("is told from top to bottom, without those that were replaced", () => {
    const [old, next, other] = [member({ state: "crashed" }), member({ incarnation: 1 }), member({ rank: 1 })];
    const worker = child(next);
    const main = driver();
    assert.deepEqual(inOrder(arrange([other, old, next, worker, main])), [main, next, worker, other]);
  });

  it("knows each row's parent, and its process", () => {
    const model = new RankModel();
    const rank = member();
    model.update([job([rank])]);
    const node = model.find("j", rank.id);
    assert.equal(node?.parent, model.roots[0]);
    assert.equal(node?.memberId, rank.id);
    assert.equal(model.roots[0]?.memberId, "");
    assert.equal(model.find("j", "nobody"), undefined);
  });
});

describe("the summary", () => {
  function summary(members: readonly Member[], frames: Record<string, TopFrame | null> = {}): string {
    const model = new RankModel();
    model.update([job(members, frames)]);
    return model.summary;
  }

  it("tells who is paused and who waits in what", () => {
    const [first, ...others] = ranks(4);
    assert(first);
    const frames = Object.fromEntries(others.map(({ id }) => [id, frame({ call: "all_reduce" })]));
    assert.equal(summary([driver(), paused(first), ...others], frames), "4 ranks: 1 paused, 3 in all_reduce");
  });

  it("counts who has yet to stop by itself", () => {
    const [first, second] = ranks(2);
    assert(first && second);
    const pending = { ...second, pending: { action: "pause", waitsFor: [] } };
    const frames = { [second.id]: frame({ call: "all_reduce" }) };
    assert.equal(summary([paused(first), pending], frames), "2 ranks: 1 paused, 1 pending");
    const held = { ...paused(first), barrier: ["actor 1"] };
    assert.equal(summary([held, pending], frames), "2 ranks: 1 at barrier, 1 pending");
  });

  it("counts every state, and calls beyond three together", () => {
    const states = (["exited", "crashed", "lost", "starting"] as const).map((state, rank) => member({ rank, state }));
    const blocked = ranks(6, { group: "critic" });
    const calls = ["barrier", "barrier", "recv", "send", "ray.get", "wait"];
    const frames = Object.fromEntries(blocked.map(({ id }, at) => [id, frame({ call: calls[at] ?? "" })]));
    assert.equal(
      summary([...states, ...blocked, member({ group: "critic", rank: 7 })], frames),
      "11 ranks: 1 crashed, 1 lost, 2 in barrier, 1 in ray.get, 1 in recv, 2 in other calls, 1 running, 1 starting, 1 exited",
    );
  });

  it("tells who is still to join, whose rank is provisional, and how many workers idle", () => {
    assert.equal(summary(ranks(3, { worldSize: 4 })), "3 of 4 ranks joined: 3 running");
    assert.equal(summary(ranks(2, { isFinal: false })), "2 ranks (2 provisional): 2 running");
    const idle = member({ role: "idle", group: "", rank: null });
    assert.equal(summary([...ranks(1), idle]), "1 rank: 1 running · 1 idle worker not shown");
  });

  it("counts a restarted rank once", () => {
    assert.equal(summary([member({ state: "exited" }), member({ incarnation: 1 })]), "1 rank: 1 running");
  });

  it("tells of the driver while there is no rank, and of nothing without a job", () => {
    assert.equal(summary([driver()]), "No rank has joined yet: driver running");
    assert.equal(summary([]), "No rank has joined yet");
    assert.equal(new RankModel().summary, "");
  });

  it("is of all jobs, with all that are paused", () => {
    const model = new RankModel();
    model.update([job([paused(member())], {}, "a"), job([paused(driver()), member()], {}, "b")]);
    assert.equal(model.summary, "2 jobs · 2 ranks: 1 paused, 1 running");
    assert.equal(model.stoppedCount, 2);
  });
});

describe("an update", () => {
  it("names the rows that look different, and nothing when none does", () => {
    const members = [driver(), ...ranks(4)];
    const model = new RankModel();
    assert.equal(model.update([job(members)]), "all");
    assert.deepEqual(labels(model.update([job([...members])])), []);
    const moved = members.map((m) => (m.rank === 2 ? paused(m) : m));
    assert.deepEqual(labels(model.update([job(moved)])), ["actor 2"]);
    const frames = { [members[1]?.id ?? ""]: frame({ call: "all_reduce" }) };
    assert.deepEqual(labels(model.update([job(moved, frames)])), ["actor 0"]);
  });

  it("names the parent alone when its rows are others, and keeps the rows there were", () => {
    const [first, second] = ranks(2);
    assert(first && second);
    const model = new RankModel();
    model.update([job([first])]);
    const row = model.find("j", first.id);
    assert.deepEqual(labels(model.update([job([paused(first), second])])), ["actor"]);
    assert.equal(model.find("j", first.id), row);
    assert.deepEqual(labels(model.update([job([first, second, child(second)])])), ["actor 0", "actor 1"]);
    assert.equal(model.update([job([first, second, driver()])]), "all");
    assert.equal(model.update([]), "all");
    assert.deepEqual(model.roots, []);
  });

  it("names the group when many of its ranks have changed", () => {
    const members = ranks(100);
    const model = new RankModel();
    model.update([job(members)]);
    assert.deepEqual(labels(model.update([job(members.map((m) => paused(m)))])), ["actor"]);
  });

  it("takes a few milliseconds for 1,024 ranks", () => {
    const members = [driver(), ...ranks(1024, { worldSize: 1024 })];
    const model = new RankModel();
    model.update([job(members)]);
    const times = [0, 1, 2, 3, 4].map((round) => {
      const frames = Object.fromEntries(members.map(({ id }) => [id, frame({ line: round + 1 })]));
      const start = performance.now();
      assert.deepEqual(labels(model.update([job(members, frames)])).length, 2);
      return performance.now() - start;
    });
    assert(Math.min(...times) < 50, `fastest of ${times.map((t) => t.toFixed(1)).join(", ")} ms`);
  });
});
