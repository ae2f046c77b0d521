// `npm start`: the editor with the extension of this checkout, on the sample jobs. The desktop VS Code where `code` is on
// PATH, else VS Code in the browser, whose address is printed; that one ends with Ctrl-C.
//
//   npm start -- [FOLDER] [--browser] [--port PORT]

import { accessSync, constants, existsSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { build } from "./build.mjs";
import { linkExtension, setUpEditor, startEditor, writeSettings } from "./editor.mjs";
import { main, PYTHON, ROOT, run, SetupError, venvEnvironment } from "./processes.mjs";
import { setUpNode, setUpPython } from "./setup.mjs";

const SAMPLES = join(ROOT, "tests", "extension", "workspace");
const HOME = join(ROOT, ".editor", "start"); // settings and data of the editor that is started here

/** The desktop VS Code, if there is one. */
function desktopCode() {
  const files = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "code"));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** A window of its own, which does not touch the person's settings. Resolves when the window is closed. */
function startDesktop(code, folder) {
  writeSettings(join(HOME, "desktop"), { "rankscope.python": PYTHON });
  const options = ["--wait", "--new-window", "--user-data-dir", join(HOME, "desktop")];
  console.log(`start: ${code} with the extension, on ${folder}; F5 runs the open job`);
  return run(code, [...options, `--extensionDevelopmentPath=${ROOT}`, folder], { env: venvEnvironment() });
}

/** VS Code in the browser, until Ctrl-C. */
async function startBrowser(folder, port) {
  setUpEditor();
  const userData = join(HOME, "browser");
  const extensions = join(HOME, "extensions");
  linkExtension(extensions);
  writeSettings(userData, { python: PYTHON });
  const stopped = new Promise((done) => process.once("SIGINT", done).once("SIGTERM", done));
  const free = await freePort(port);
  const editor = await startEditor({ port: free, extensions, folder, userData, env: venvEnvironment() });
  try {
    console.log(`start: open ${editor.url} in a browser; F5 runs the open job, Ctrl-C here ends the editor`);
    await stopped;
  } finally {
    await editor.close();
  }
  return 0;
}

/** The port asked for, or one that nobody has now. Throws a SetupError when it is taken. */
function freePort(asked) {
  return new Promise((found, fail) => {
    const server = createServer();
    server.once("error", () => fail(new SetupError(`port ${asked} is taken; choose one with --port`)));
    server.listen(asked, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

await main(async (args) => {
  const options = { browser: { type: "boolean", default: false }, port: { type: "string", default: "0" } };
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const folder = resolve(positionals[0] ?? SAMPLES);
  if (!existsSync(folder)) throw new SetupError(`there is no folder ${folder}`);
  setUpPython();
  await setUpNode();
  await build();
  const code = values.browser ? undefined : desktopCode();
  return code === undefined ? startBrowser(folder, Number(values.port)) : startDesktop(code, folder);
});
