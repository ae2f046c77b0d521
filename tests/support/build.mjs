// The extension as one file, extension/dist/main.js, and the panels' scripts in extension/dist/webview/. As a script: `node tests/support/build.mjs [--watch]`.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { main, ROOT, SetupError } from "./processes.mjs";
import { setUpNode } from "./setup.mjs";

export const BUNDLE = join(ROOT, "extension", "dist", "main.js");
export const WEBVIEWS = join(ROOT, "extension", "dist", "webview");

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  minify: true,
  keepNames: true, // stacks and names of errors in the log stay readable
  sourcemap: "linked",
  sourcesContent: false,
  logLevel: "warning",
};

const EXTENSION = {
  ...COMMON,
  entryPoints: ["extension/src/main.ts"],
  outfile: BUNDLE,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
};

const PANELS = {
  ...COMMON,
  entryPoints: ["stacks", "compare"].flatMap((name) => [
    `extension/webview/${name}.ts`,
    `extension/webview/${name}.css`,
  ]),
  outdir: WEBVIEWS,
  sourcemap: false,
  platform: "browser",
  target: "es2022",
  format: "iife",
  metafile: true,
};

/** The licences of the libraries that are in the panels' scripts. */
function writeLicences({ inputs }) {
  const packages = Object.keys(inputs).map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  const texts = [...new Set(packages.filter(Boolean))]
    .sort()
    .map((name) => `${name}\n\n${readFileSync(join(ROOT, "node_modules", name, "LICENSE"), "utf8").trim()}\n`);
  mkdirSync(WEBVIEWS, { recursive: true });
  writeFileSync(join(WEBVIEWS, "LICENSES.txt"), texts.join("\n---\n\n"));
}

/** Bundle once. Throws a SetupError when the sources do not build. */
export async function build() {
  const esbuild = await import("esbuild");
  try {
    const [panels] = await Promise.all([esbuild.build(PANELS), esbuild.build(EXTENSION)]);
    writeLicences(panels.metafile);
  } catch (error) {
    throw new SetupError(`the extension does not build: ${error.message}`);
  }
  return BUNDLE;
}

/** Bundle again whenever a source changes, until the process is ended. The lines are what .vscode/tasks.json reads. */
async function watch() {
  const esbuild = await import("esbuild");
  const telling = {
    name: "telling",
    setup({ onStart, onEnd }) {
      onStart(() => console.log("build: started"));
      onEnd(({ errors }) => console.log(`build: ${errors.length === 0 ? "done" : "failed"}`));
    },
  };
  for (const options of [EXTENSION, PANELS]) {
    const context = await esbuild.context({ ...options, plugins: [telling] });
    await context.watch();
  }
  return new Promise(() => {});
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async (args) => {
    await setUpNode();
    if (args.includes("--watch")) return watch();
    console.log(`build: ${relative(ROOT, await build())}`);
    return 0;
  });
}
