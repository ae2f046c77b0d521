import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DebugSession } from "vscode";

import type { Member, TopFrame } from "../../../extension/src/core/protocol";
import { Job } from "../../../extension/src/debug/job";
import { driver, frame, member, paused, ranks } from "./members";

interface Asked {
  readonly command: string;
  readonly args: { members?: readonly string[] };
  readonly answer: (result: unknown) => void;
  readonly refuse: (why: Error) => void;
}

/** A job whose hub answers when the test says so. */
function jobWith(members: readonly Member[]): { job: Job; asked: Asked[] } {
  const asked: Asked[] = [];
  const session = {
    id: "j",
    configuration: { name: "train" },
    customRequest: (command: string, args: Asked["args"]) =>
      new Promise((answer, refuse) => {
        asked.push({ command, args, answer, refuse });
      }),
  };
  const job = new Job(session as unknown as DebugSession);
  job.members = members;
  return { job, asked };
}

function frames(members: readonly Member[], found: TopFrame | null = frame()): object {
  return { frames: Object.fromEntries(members.map(({ id }) => [id, found])), late: [] };
}

describe("a question to the hub", () => {
  it("resolves to its answer, or rejects with its sentence", async () => {
    const { job, asked } = jobWith([]);
    const ranksAsked = job.request("rankscope/ranks", {});
    asked[0]?.answer({ members: [] });
    assert.deepEqual(await ranksAsked, { members: [] });
    const refused = job.request("rankscope/openSession", { session: "x" });
    asked[1]?.refuse(new Error("No rank has it."));
    await assert.rejects(refused, /No rank has it\./);
  });

  it("is over after a bound", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { job } = jobWith([]);
    const silent = job.request("rankscope/ranks", {});
    t.mock.timers.tick(15_000);
    await assert.rejects(silent, /The hub of 'train' did not answer 'rankscope\/ranks' within 15 s\./);
  });

  it("is over with the job, and then none is asked any more", async () => {
    const { job, asked } = jobWith([]);
    const open = job.request("rankscope/ranks", {});
    job.end();
    await assert.rejects(open, /The job 'train' has ended\./);
    await assert.rejects(job.request("rankscope/ranks", {}), /has ended/);
    assert.equal(asked.length, 1);
  });
});

describe("the frames of a job", () => {
  it("are asked for once, whoever asks, and not of those that have ended or idle", async () => {
    const [first, second] = ranks(2);
    assert(first && second);
    const idle = member({ role: "idle", rank: null });
    const { job, asked } = jobWith([driver({ state: "exited" }), first, second, idle]);
    const both = [job.refreshFrames(), job.refreshFrames("changed")];
    assert.equal(asked.length, 1);
    assert.deepEqual(asked[0]?.args, {});
    asked[0].answer(frames([first, second]));
    assert.deepEqual(await Promise.all(both), [true, true]);
    assert.deepEqual([...job.frames.keys()], [first.id, second.id]);
    assert.equal(await job.refreshFrames("changed"), false);
  });

  it("are asked of stopped ones only when there is news", async () => {
    const [runs, stops] = ranks(2);
    assert(runs && stops);
    const members = [runs, paused(stops)];
    const { job, asked } = jobWith(members);
    const first = job.refreshFrames();
    asked[0]?.answer(frames(members));
    await first;
    const second = job.refreshFrames();
    assert.deepEqual(asked[1]?.args, { members: [runs.id] });
    asked[1].answer(frames([runs]));
    await second;
    job.members = [runs, paused(stops, "step")];
    const third = job.refreshFrames("changed");
    assert.deepEqual(asked[2]?.args, { members: [stops.id] });
    asked[2].answer(frames([stops]));
    assert.equal(await third, true);
  });

  it("are asked for again when there was news meanwhile", async () => {
    const rank = member();
    const { job, asked } = jobWith([rank]);
    const first = job.refreshFrames();
    job.members = [paused(rank)];
    const second = job.refreshFrames("changed");
    asked[0]?.answer(frames([rank], frame({ line: 1 })));
    await first;
    assert.equal(job.frames.has(rank.id), false, "that was where it ran");
    await Promise.resolve();
    asked[1]?.answer(frames([rank], frame({ line: 2 })));
    assert.equal(await second, true);
    assert.equal(job.frames.get(rank.id)?.line, 2);
  });

  it("are forgotten when the state is another, and kept while a rank is late", async () => {
    const [first, second] = ranks(2);
    assert(first && second);
    const { job, asked } = jobWith([first, second]);
    const round = job.refreshFrames();
    asked[0]?.answer(frames([first, second]));
    await round;
    const late = job.refreshFrames();
    asked[1]?.answer({ frames: { [first.id]: null }, late: [second.id] });
    await late;
    assert.equal(job.frames.get(first.id), null);
    assert.equal(job.frames.get(second.id)?.line, 42);
    assert.deepEqual([...job.late], [second.id]);
    job.members = [{ ...first, state: "exited" }, second];
    assert.deepEqual([...job.frames.keys()], [second.id]);
  });

  it("can be asked for after a silent hub has come back", async () => {
    const rank = paused(member());
    const { job, asked } = jobWith([rank]);
    const before = job.refreshFrames();
    asked[0]?.answer(frames([rank]));
    await before;
    job.members = [paused(rank, "step")];
    const silent = job.refreshFrames();
    asked[1]?.refuse(new Error("late"));
    await assert.rejects(silent, /late/);
    const round = job.refreshFrames();
    asked[2]?.answer(frames([rank], frame({ line: 43 })));
    assert.equal(await round, true);
    assert.equal(job.frames.get(rank.id)?.line, 43);
  });
});
