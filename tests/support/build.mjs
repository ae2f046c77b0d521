// The extension as one file, extension/dist/main.js. As a script: `node tests/support/build.mjs [--watch]`.

import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { main, ROOT, SetupError } from "./processes.mjs";
import { setUpNode } from "./setup.mjs";

export const BUNDLE = join(ROOT, "extension", "dist", "main.js");

const OPTIONS = {
  absWorkingDir: ROOT,
  entryPoints: ["extension/src/main.ts"],
  outfile: BUNDLE,
  bundle: true,
  minify: true,
  keepNames: true, // stacks and names of errors in the log stay readable
  sourcemap: "linked",
  sourcesContent: false,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  logLevel: "warning",
};

/** Bundle once. Throws a SetupError when the sources do not build. */
export async function build() {
  const esbuild = await import("esbuild");
  try {
    await esbuild.build(OPTIONS);
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
  const context = await esbuild.context({ ...OPTIONS, plugins: [telling] });
  await context.watch();
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
