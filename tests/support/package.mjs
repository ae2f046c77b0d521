// `npm run package`: the .vsix, which holds the Python side and the libraries that it needs, and the wheel; both in
// .build/package/. The names of what was made are the last lines.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { build, WEBVIEWS } from "./build.mjs";
import { main, PYTHON, ROOT, runLogged, SetupError, VENV } from "./processes.mjs";
import { setUpNode, setUpPython } from "./setup.mjs";

export const PACKAGES = join(ROOT, ".build", "package");
const STAGE = join(PACKAGES, "stage");
const LOG = join(PACKAGES, "package.log");
const BUNDLED = join(VENV, "bundled");
const MAX_VSIX_MB = 12;

const PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input"];
const MEND = "Check that pip reaches its package index, and try again.";

/**
 * What is imported besides the standard library, in versions that are tested: where it goes in the package, and what each
 * is called in its folder. The language server's are out of the sight of jobs. exceptiongroup is for Python 3.10 alone,
 * and need not be installed here.
 */
const LIBRARIES = {
  bundled: { debugpy: ["debugpy"], msgpack: ["msgpack"] },
  "lsp/bundled": {
    pygls: ["pygls"],
    lsprotocol: ["lsprotocol"],
    cattrs: ["cattrs"],
    attrs: ["attr", "attrs"],
    typing_extensions: ["typing_extensions.py"],
    exceptiongroup: ["exceptiongroup"],
  },
};
const VERSIONS = { exceptiongroup: "1.3.2" };

// Compiled for one Python on one platform, or only of use there. What debugpy loads by ctypes, to trace threads that
// run already, is bound to no Python: pydevd_tracing.py.
const DROPPED =
  /(^|[/\\])(__pycache__|tests?|bin|RECORD)$|\.(py[cdxio]|px[di]|c|cpp|h|hpp|so|dll|dylib|exe|pdb|lib|bat|sh)$/;
const KEPT = /pydevd_attach_to_process[/\\]attach[\w.]*\.(so|dylib)$/;

function copyPlain(from, to) {
  cpSync(from, to, { recursive: true, filter: (file) => file === from || KEPT.test(file) || !DROPPED.test(file) });
}

/** The libraries in pure Python, in the package's folder `to`. Made once per version. */
function bundleLibraries(to) {
  const names = Object.values(LIBRARIES).flatMap(Object.keys);
  const versions = names.map((name) => `${name}==${VERSIONS[name] ?? installedVersion(name)}`);
  const stamp = join(BUNDLED, ".stamp");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== versions.join()) {
    rmSync(BUNDLED, { recursive: true, force: true });
    const install = [...PIP, "install", "--no-deps", "--no-compile", "--only-binary=:all:", "--target", BUNDLED];
    const anywhere = ["--platform", "any", "--implementation", "py", "--abi", "none", "--python-version", "3.10"];
    for (const requirement of versions) {
      // msgpack has a wheel per platform only; without its C extension it falls back to Python by itself
      const isPure = requirement.startsWith("debugpy");
      runLogged(LOG, PYTHON, [...install, ...(isPure ? anywhere : []), requirement], { mend: MEND });
    }
    writeFileSync(stamp, versions.join());
  }
  // Their metadata stays out: in the job these are not installed. Their licences go along.
  for (const [folder, libraries] of Object.entries(LIBRARIES)) {
    for (const [name, parts] of Object.entries(libraries)) {
      for (const part of parts) copyPlain(join(BUNDLED, part), join(to, folder, part));
      const info = readdirSync(BUNDLED).find((file) => file.startsWith(`${name}-`) && file.endsWith(".dist-info"));
      cpSync(join(BUNDLED, info ?? "", "licenses"), join(to, folder, "licenses", name), { recursive: true });
    }
  }
}

function installedVersion(name) {
  const folders = readdirSync(join(VENV, "lib")).map((python) => join(VENV, "lib", python, "site-packages"));
  const info = folders.flatMap((folder) => readdirSync(folder)).find((file) => file.startsWith(`${name}-`));
  const version = /^\w+-([\w.]+)\.dist-info$/.exec(info ?? "")?.[1];
  if (version === undefined) throw new SetupError(`${name} is not installed in ${relative(ROOT, VENV)}`);
  return version;
}

/** Everything that goes into the .vsix, as it will lie there. */
async function stage() {
  rmSync(STAGE, { recursive: true, force: true });
  mkdirSync(STAGE, { recursive: true });
  // without the scripts and tools of the checkout
  const manifest = { ...readManifest(), scripts: undefined, devDependencies: undefined };
  writeFileSync(join(STAGE, "package.json"), JSON.stringify(manifest, undefined, 2));
  for (const file of ["README.md", "CHANGELOG.md", "LICENSE", ".vscodeignore", join("extension", "media")]) {
    cpSync(join(ROOT, file), join(STAGE, file), { recursive: true });
  }
  cpSync(await build(), join(STAGE, "extension", "dist", "main.js"));
  cpSync(WEBVIEWS, join(STAGE, "extension", "dist", "webview"), { recursive: true });
  const python = join(STAGE, "python", "rankscope");
  copyPlain(join(ROOT, "python_adapter", "rankscope"), python);
  bundleLibraries(python);
}

function readManifest() {
  return JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
}

/** The .vsix; its path. */
export async function packageExtension() {
  mkdirSync(PACKAGES, { recursive: true });
  await stage();
  const { name, version } = readManifest();
  const vsix = join(PACKAGES, `${name}-${version}.vsix`);
  rmSync(vsix, { force: true });
  const vsce = join(ROOT, "node_modules", "@vscode", "vsce", "vsce");
  const options = ["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"];
  runLogged(LOG, process.execPath, [vsce, "package", ...options, "--out", vsix], { cwd: STAGE });
  const size = megabytes(vsix);
  if (size > MAX_VSIX_MB) throw new SetupError(`${basename(vsix)} has ${size.toFixed(1)} MB, more than ${MAX_VSIX_MB}`);
  return vsix;
}

/** The wheel of the Python side; its path. Built from a copy: setuptools leaves folders beside the sources. */
export function packageWheel() {
  mkdirSync(PACKAGES, { recursive: true });
  const sources = join(PACKAGES, "wheel");
  rmSync(sources, { recursive: true, force: true });
  for (const file of readdirSync(PACKAGES)) if (file.endsWith(".whl")) rmSync(join(PACKAGES, file));
  const isSource = (file) => !/(__pycache__|\.egg-info|python_adapter\/(build|dist))$/.test(file);
  cpSync(join(ROOT, "python_adapter"), sources, { recursive: true, filter: isSource });
  const flags = ["--no-deps", "--no-build-isolation", "--wheel-dir", PACKAGES];
  runLogged(LOG, PYTHON, [...PIP, "wheel", ...flags, sources], { mend: MEND });
  const wheel = readdirSync(PACKAGES).find((file) => file.endsWith(".whl"));
  if (wheel === undefined) throw new SetupError(`pip made no wheel. The whole log: ${LOG}`);
  return join(PACKAGES, wheel);
}

function megabytes(file) {
  return statSync(file).size / 1e6;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    setUpPython();
    await setUpNode();
    for (const file of [await packageExtension(), packageWheel()]) {
      console.log(`package: ${relative(ROOT, file)} ${megabytes(file).toFixed(1)} MB`);
    }
    return 0;
  });
}
