/**
 * The hub of one job: a Python process of its own session, with a private folder for its socket.
 *
 * It ends by itself once the job has ended and every editor has left. What can go wrong with that is bounded here:
 * a start that hangs or is cancelled, a hub that no longer answers, an end that takes too long. The class owns the
 * process and the folder; when the process is gone, so is the folder.
 */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

import { type Level, LogLines } from "../core/logLines.js";

const FREE_END_SECONDS = 20; // more than the hub takes to end a job that resists
const POLITE_SECONDS = 8;
const ANSWER_SECONDS = 3;
const LAST_WORDS_SECONDS = 0.5;
const LAST_WORDS_LINES = 12;

export interface HubOptions {
  /** The interpreter that runs the hub. */
  readonly python: string;
  /** The folder that holds the package `rankscope`. */
  readonly packageFolder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Within which it must be ready. */
  readonly seconds: number;
  readonly signal?: AbortSignal;
  /** The port on 127.0.0.1 where a debugger waits for the hub; for working on the hub itself. */
  readonly debugger?: string | undefined;
  /** How long it may take to end by itself, and when told to; for tests. */
  readonly freeEndSeconds?: number;
  readonly politeSeconds?: number;
  readonly log: (level: Level, text: string) => void;
}

/** A hub that did not start: one sentence, and its last words. */
export class HubError extends Error {
  constructor(
    message: string,
    readonly lastWords: string,
  ) {
    super(message);
    this.name = "HubError";
  }

  /** The module that its Python lacks or cannot load, if that is why. */
  get missingModule(): string | undefined {
    return /(?:No module named|cannot import name .+ from) '([^']+)'/.exec(this.lastWords)?.[1];
  }
}

/** How a hub has ended. `isExpected`: by itself with 0, or because it was told to. */
export interface Ending {
  readonly why: string;
  readonly isExpected: boolean;
}

type Process = ChildProcessByStdio<null, Readable, Readable>;

export class HubProcess {
  /** Where editors connect: a Unix socket. */
  readonly pipe: string;
  /** Resolves when the process has ended and its folder is gone. Never rejects. */
  readonly ended: Promise<Ending>;

  private readonly folder = mkdtempSync(join(tmpdir(), "rankscope-hub-"));
  private readonly process: Process;
  private readonly lastLines: string[] = [];
  private hasEnded = false;
  private isToldToEnd = false;

  private constructor(private readonly options: HubOptions) {
    this.pipe = join(this.folder, "editor");
    this.process = this.spawn();
    this.ended = this.watchEnd();
    const lines = new LogLines();
    createInterface({ input: this.process.stderr }).on("line", (line) => {
      this.lastLines.push(line);
      if (this.lastLines.length > LAST_WORDS_LINES) this.lastLines.shift();
      const [level, text] = lines.read(line);
      options.log(level, text);
    });
  }

  /** Start one and wait until it listens. Rejects with a HubError, or an AbortError on abort; then nothing is left. */
  static async start(options: HubOptions): Promise<HubProcess> {
    options.signal?.throwIfAborted();
    const hub = new HubProcess(options);
    try {
      await hub.becomesReady();
    } catch (error) {
      await hub.kill();
      throw error;
    }
    options.log("info", `hub ${hub.pid} listens on ${hub.pipe}`);
    return hub;
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** The job's session has gone: the hub ends by itself, or serves another window; one that does neither is ended. */
  async release(): Promise<void> {
    if (await this.endsWithin(this.options.freeEndSeconds ?? FREE_END_SECONDS)) return;
    if (await this.answers()) {
      this.options.log("info", `hub ${this.pid} serves another client`);
      return;
    }
    this.options.log("warning", `hub ${this.pid} does not answer and is ended`);
    await this.end();
  }

  /** End it, and with it its job: politely, then by force. Idempotent. */
  async end(): Promise<void> {
    this.isToldToEnd = true;
    this.signal("SIGTERM");
    if (!(await this.endsWithin(this.options.politeSeconds ?? POLITE_SECONDS))) await this.kill();
  }

  /** End it at once. */
  async kill(): Promise<void> {
    this.isToldToEnd = true;
    this.signal("SIGKILL");
    await this.ended;
  }

  private spawn(): Process {
    const { python, packageFolder, environment } = this.options;
    const path = environment.PYTHONPATH;
    const PYTHONPATH = path ? `${packageFolder}${delimiter}${path}` : packageFolder;
    const port = this.options.debugger;
    const under = port ? ["-m", "debugpy", "--connect", `127.0.0.1:${port}`, "--configure-subProcess", "False"] : [];
    const argv = [...under, "-m", "rankscope.hub", "--editor", `unix:${this.pipe}`];
    this.options.log("info", `${python} ${argv.join(" ")}`);
    return spawn(python, argv, {
      cwd: this.folder, // -m looks there first: nothing of the person's may take the place of a library
      env: { ...environment, PYTHONPATH },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  private watchEnd(): Promise<Ending> {
    return new Promise((resolve) => {
      const end = (why: string, isExpected: boolean): void => {
        this.hasEnded = true;
        rmSync(this.folder, { recursive: true, force: true });
        this.options.log(isExpected ? "info" : "error", `hub ${this.pid}: ${why}`);
        resolve({ why, isExpected });
      };
      this.process.once("error", (error) => {
        if (this.process.pid === undefined) end(error.message, false);
      });
      this.process.once("exit", (code, killer) => {
        end(
          killer === null ? `it ended with ${code ?? 0}` : `it was ended by ${killer}`,
          code === 0 || this.isToldToEnd,
        );
      });
    });
  }

  private async becomesReady(): Promise<void> {
    const { seconds, signal } = this.options;
    const line = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(this.failure(`it was not ready within ${seconds} seconds`));
      }, seconds * 1000);
      const abort = (): void => {
        reject(new DOMException("The start was cancelled.", "AbortError"));
      };
      signal?.addEventListener("abort", abort, { once: true });
      if (signal?.aborted === true) abort();
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      createInterface({ input: this.process.stdout }).on("line", (text) => {
        settle();
        resolve(text); // the first line; of later ones nobody hears
      });
      void this.ended.then(async ({ why }) => {
        settle();
        await bounded(this.spoken(), LAST_WORDS_SECONDS);
        reject(this.failure(why));
      });
    });
    const said = parse(line);
    if (said.ready === true) return;
    const message = said.message;
    throw this.failure(typeof message === "string" ? message.replace(/\.$/, "") : `it said '${line}'`);
  }

  private failure(why: string): HubError {
    return new HubError(`The hub did not start: ${why}.`, this.lastLines.join("\n"));
  }

  /** Its standard error has been read to the end. */
  private spoken(): Promise<void> {
    return new Promise((resolve) => {
      if (this.process.stderr.closed) resolve();
      else this.process.stderr.once("close", resolve);
    });
  }

  private async endsWithin(seconds: number): Promise<boolean> {
    return (await bounded(this.ended, seconds)) !== undefined;
  }

  /** Whether it answers on a connection of its own. */
  private async answers(): Promise<boolean> {
    const socket = connect(this.pipe);
    const body = JSON.stringify({ seq: 1, type: "request", command: "initialize", arguments: { adapterID: "ping" } });
    const answer = new Promise<boolean>((resolve) => {
      socket.once("data", () => {
        resolve(true);
      });
      socket.once("error", () => {
        resolve(false);
      });
      socket.once("connect", () => socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`));
    });
    const isAnswered = await bounded(answer, ANSWER_SECONDS);
    socket.destroy();
    return isAnswered === true;
  }

  private signal(signal: NodeJS.Signals): void {
    if (!this.hasEnded) this.process.kill(signal);
  }
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** What a promise resolves to, or undefined after a while. */
async function bounded<T>(promise: Promise<T>, seconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, seconds * 1000, undefined);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
