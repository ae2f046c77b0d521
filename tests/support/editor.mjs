// A real VS Code that a browser shows: the npm package code-server, in `.editor/`, made once.
//
// It is installed without its install scripts, which want system libraries and compilers for things that nobody here
// needs, and then gets the two native modules that matter: for the integrated terminal, and for output channels.

import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { clearTimeout, setTimeout } from "node:timers";

import { ROOT, runLogged, SetupError } from "./processes.mjs";

/** VS Code 1.100, the oldest one the extension supports. */
const VERSION = "4.100.3";
const FOLDER = join(ROOT, ".editor");
const VSCODE = join(FOLDER, "node_modules", "code-server", "lib", "vscode");
const SERVER = join(VSCODE, "out", "server-main.js");
/** Native modules by package, with what shows that one is built. */
const NATIVE = { "node-pty": "pty.node", "@vscode/spdlog": "spdlog.node" };
const START_SECONDS = 60;
const STOP_SECONDS = 5;

/** Where Node's headers are: node-gyp downloads them otherwise. */
function headersPrefix() {
  const prefixes = [dirname(dirname(process.execPath)), "/usr", "/usr/local"];
  return prefixes.find((prefix) => existsSync(join(prefix, "include", "node", "node.h")));
}

/** code-server, ready to run. Throws a SetupError that says what to mend. */
export function setUpEditor() {
  const stamp = `${VERSION} ${process.version} ${ROOT}`;
  const stampFile = join(FOLDER, ".stamp");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  console.log(`setup: .editor with code-server ${VERSION} (a few minutes)`);
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "package.json"), JSON.stringify({ private: true }));
  const log = join(FOLDER, "setup.log");
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const mend = "Check that npm reaches its registry, and that the disk has room, and try again.";
  runLogged(log, "npm", ["install", ...quiet, `code-server@${VERSION}`], { cwd: FOLDER, mend });
  runLogged(log, "npm", ["install", ...quiet, "--omit=dev"], { cwd: VSCODE, mend });
  for (const [module, file] of Object.entries(NATIVE)) build(module, file, log);
  writeFileSync(stampFile, stamp);
}

function build(module, file, log) {
  const prefix = headersPrefix();
  const env = { ...process.env, ...(prefix && { npm_config_nodedir: prefix }) };
  try {
    runLogged(log, "npm", ["rebuild", module, "--foreground-scripts"], { cwd: VSCODE, env });
  } catch (error) {
    // After a build that worked, node-pty's own post-install step fails on a file that only its repository has.
    if (!(error instanceof SetupError)) throw error;
  }
  if (!existsSync(join(VSCODE, "node_modules", module, "build", "Release", file))) {
    throw new SetupError(
      `${module}, which the editor needs, could not be built. It takes a C++ compiler, make and Node's headers ` +
        `(on Debian or Ubuntu: apt-get install g++ make libnode-dev). The whole log: ${log}`,
    );
  }
}

/** The folder an editor finds the extension of this checkout in, whatever else is in it. */
export function linkExtension(extensions) {
  mkdirSync(extensions, { recursive: true });
  const { publisher, name, version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const link = join(extensions, `${publisher}.${name}-${version}`);
  rmSync(link, { force: true });
  symlinkSync(ROOT, link);
}

/** Install a .vsix as a person does. Throws a SetupError with what the editor says when it refuses. */
export function installExtension(vsix, { extensions, userData }) {
  mkdirSync(userData, { recursive: true });
  runLogged(join(userData, "install.log"), process.execPath, [
    ...[SERVER, "--install-extension", vsix, "--accept-server-license-terms"],
    ...["--extensions-dir", extensions, "--user-data-dir", userData, "--server-data-dir", userData],
  ]);
}

/**
 * The user's settings of an editor that starts without welcome pages and asks the network for nothing. The Python of
 * jobs is the machine's matter: VS Code reads it from there alone when the browser is somewhere else.
 */
export function writeSettings(userData, { python, ...settings } = {}) {
  const quiet = {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": false,
    "extensions.autoCheckUpdates": false,
    "extensions.ignoreRecommendations": true,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "remote.autoForwardPorts": false,
    "chat.commandCenter.enabled": false,
    "git.enabled": false,
  };
  write(join(userData, "User"), { ...quiet, ...settings });
  if (python !== undefined) write(join(userData, "Machine"), { "rankscope.python": python });
}

function write(folder, settings) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "settings.json"), JSON.stringify(settings, undefined, 2));
}

/**
 * The server of an editor on 127.0.0.1; `url` opens `folder` in it. It ends with `close()`, which takes everything
 * that the editor started with it. Throws a SetupError with the end of its log when it does not come up.
 */
export async function startEditor({ port, extensions, folder, userData, env = process.env }) {
  mkdirSync(userData, { recursive: true });
  const log = join(userData, "server.log");
  const out = openSync(log, "w");
  const argv = [
    ...[SERVER, "--host", "127.0.0.1", "--port", String(port), "--without-connection-token"],
    ...["--accept-server-license-terms", "--telemetry-level", "off", "--extensions-dir", extensions],
    ...["--user-data-dir", userData, "--server-data-dir", userData],
  ];
  const server = spawn(process.execPath, argv, { env, stdio: ["ignore", out, out], detached: true });
  closeSync(out);
  const ended = new Promise((resolve) => {
    server.once("exit", resolve).once("error", resolve);
  });
  const close = async () => {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill("SIGTERM");
      const killer = setTimeout(() => server.kill("SIGKILL"), STOP_SECONDS * 1000);
      await ended;
      clearTimeout(killer);
    }
    endGroup(server.pid);
  };
  if (!(await answers(port, ended))) {
    await close();
    throw new SetupError(`the editor did not start:\n${readFileSync(log, "utf8").slice(-2000)}\nThe whole log: ${log}`);
  }
  return { url: `http://127.0.0.1:${port}/?folder=${encodeURIComponent(folder)}`, pid: server.pid, log, close };
}

/** The extension hosts and terminals that a server leaves when it is ended. */
function endGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Whether somebody listens there, before the time is over or `ended`. */
async function answers(port, ended) {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  const timer = setTimeout(over, START_SECONDS * 1000);
  void ended.then(over);
  try {
    while (!isOver) {
      const isThere = await new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1", () => {
          resolve(true);
          socket.destroy();
        });
        socket.once("error", () => setTimeout(resolve, 50, false));
      });
      if (isThere) return true;
    }
    return false;
  } finally {
    clearTimeout(timer);
  }
}
