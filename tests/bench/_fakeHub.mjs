// A debug adapter that says what a hub with many ranks would say: no process behind it, so only the editor is measured.

import { createServer } from "node:net";

const HEADER_END = "\r\n\r\n";

/** One DAP connection: answers every request at once. */
class Connection {
  #socket;
  #sequence = 1;
  #buffer = Buffer.alloc(0);

  constructor(socket, hub) {
    this.#socket = socket;
    socket.on("error", () => {}); // the editor has gone
    socket.on("data", (data) => {
      this.#buffer = Buffer.concat([this.#buffer, data]);
      for (const message of this.#messages()) if (message.type === "request") hub.answer(message, this);
    });
  }

  *#messages() {
    for (;;) {
      const end = this.#buffer.indexOf(HEADER_END);
      if (end < 0) return;
      const length = Number(/Content-Length: (\d+)/.exec(this.#buffer.toString("latin1", 0, end))?.[1]);
      const start = end + HEADER_END.length;
      if (this.#buffer.length < start + length) return;
      const message = JSON.parse(this.#buffer.toString("utf8", start, start + length));
      this.#buffer = this.#buffer.subarray(start + length);
      yield message;
    }
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({ seq: this.#sequence++, ...message }));
    this.#socket.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}${HEADER_END}`), body]));
  }
}

/** Listens on `port` (after `listen()`), for `debugServer` in launch.json. `close()` ends it. */
export class FakeHub {
  members = [];
  frames = {};
  #connections = new Set();
  #server = createServer((socket) => {
    const connection = new Connection(socket, this);
    this.#connections.add(connection);
    socket.on("close", () => this.#connections.delete(connection));
  });

  get port() {
    return this.#server.address().port;
  }

  listen() {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  answer({ command, seq, arguments: args }, connection) {
    const reply = (body) => connection.send({ type: "response", request_seq: seq, success: true, command, body });
    switch (command) {
      case "initialize":
        reply({ supportsConfigurationDoneRequest: true });
        connection.send({ type: "event", event: "initialized" });
        break;
      case "threads":
        reply({ threads: [] });
        break;
      case "setBreakpoints":
        reply({ breakpoints: (args.breakpoints ?? []).map(() => ({ verified: true })) });
        break;
      case "rankscope/ranks":
        reply({ members: this.members });
        break;
      case "rankscope/frames":
        reply({ frames: this.frames, late: [] });
        break;
      case "rankscope/breakpoints":
        reply({ breakpoints: [] });
        break;
      case "disconnect":
      case "terminate":
        reply({});
        connection.send({ type: "event", event: "terminated" });
        break;
      default:
        reply({});
    }
  }

  /** Tell the editor what the ranks do now. */
  tell() {
    for (const connection of this.#connections) {
      connection.send({ type: "event", event: "rankscope/ranksChanged", body: { members: this.members } });
    }
  }

  close() {
    this.#server.close();
  }
}

/** So few nodes that the view shows their ranks without a click. */
const NODES = 8;

/** `count` ranks; `isPaused(rank)` says who stands at a breakpoint. */
export function manyRanks(count, isPaused) {
  const perNode = Math.ceil(count / NODES);
  return Array.from({ length: count }, (_, rank) => ({
    id: `m${rank}`,
    number: rank,
    label: `world ${rank} · node-${Math.floor(rank / perNode)}`,
    role: "rank",
    group: "world",
    rank,
    isFinal: true,
    localRank: rank % perNode,
    worldSize: count,
    node: Math.floor(rank / perNode),
    host: `host-${Math.floor(rank / perNode)}`,
    pid: 10_000 + rank,
    state: isPaused(rank) ? "paused" : "running",
    isArmed: true,
    isGreyed: false,
    incarnation: 0,
    session: "",
    hasSession: false,
    threadIds: [],
    stopped: isPaused(rank) ? { reason: "breakpoint" } : null,
    ending: "",
  }));
}
