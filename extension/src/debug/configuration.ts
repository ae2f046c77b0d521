/**
 * Launch configurations: what F5 offers, the defaults, and what is refused before anything is started.
 * What comes out has only keys that the hub takes (`rankscope/hub/settings.py`); our own begin with `__`.
 */

import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, relative, resolve } from "node:path";

import * as vscode from "vscode";

import { DEBUG_TYPE, SETTINGS } from "../contributions.js";
import { checkConfiguration, type Fault, summaryOf } from "../core/launchConfig.js";
import { EXTENSION_MARK, type ExtensionMark } from "../core/protocol.js";
import { PythonError } from "../core/python.js";
import { findHub, type HubAddress } from "../core/runs.js";
import type { Log, Mends } from "../log.js";
import type { Interpreter, Interpreters } from "./interpreter.js";
import { openLaunchFile } from "./launchFile.js";

/** What the descriptor factory finds in a resolved configuration: the Python of its hub, or the hub that is there. */
export const INTERPRETER_KEY = "__interpreter";
export const HUB_KEY = "__hub";

/** A session of ranks, as the hub asks for it: everything is said already. */
export function isChild(configuration: vscode.DebugConfiguration): boolean {
  return typeof (configuration.session as { ranks?: unknown } | undefined)?.ranks === "string";
}

/** Registers the providers of the debug type; owns nothing else. */
export class Configuration implements vscode.DebugConfigurationProvider, vscode.Disposable {
  private readonly mark: ExtensionMark;
  private readonly disposables: readonly vscode.Disposable[];

  constructor(
    private readonly log: Log,
    private readonly interpreters: Interpreters,
    context: vscode.ExtensionContext,
  ) {
    this.mark = { version: (context.extension.packageJSON as { version: string }).version };
    const { Initial, Dynamic } = vscode.DebugConfigurationProviderTriggerKind;
    this.disposables = [
      vscode.debug.registerDebugConfigurationProvider(DEBUG_TYPE, this, Initial),
      vscode.debug.registerDebugConfigurationProvider(
        DEBUG_TYPE,
        { provideDebugConfigurations: (folder) => ofOpenFile(folder) },
        Dynamic,
      ),
    ];
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  /** For a new launch.json. */
  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [
      launch("RankScope: current file", { program: "${file}" }),
      launch("RankScope: torchrun", {
        command: 'torchrun --standalone --nproc-per-node 4 "${file}"',
      }),
    ];
  }

  /** F5 without a launch.json: the open Python file. */
  resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration | undefined {
    const given = configuration as Partial<vscode.DebugConfiguration>;
    if (given.type || given.request || given.name) return configuration;
    const file = openPythonFile();
    if (file === undefined) {
      this.refuse("Open a Python file to run it, or write a launch.json.", {
        "Create launch.json": () => vscode.commands.executeCommand("debug.addConfiguration"),
      });
      return;
    }
    return { ...configuration, ...launch(basename(file), { program: file }) };
  }

  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
    token?: vscode.CancellationToken,
  ): Promise<vscode.DebugConfiguration | undefined> {
    if (isChild(configuration)) return { ...configuration, [EXTENSION_MARK]: this.mark };
    if (!vscode.workspace.isTrusted) {
      this.refuse("RankScope starts a job only in a workspace that you trust.", {
        "Manage trust": () => vscode.commands.executeCommand("workbench.trust.manage"),
      });
      return;
    }
    const place = folder ?? vscode.workspace.workspaceFolders?.[0];
    const resolved = withPaths(configuration, place);
    const faults = [...checkConfiguration(configuration), ...missingFiles(resolved)];
    if (faults.length > 0) {
      this.refuseFaults(faults, configuration, folder);
      return;
    }
    const common = {
      ...resolved,
      ...foldersOf(place),
      maxSessions: (configuration.maxSessions as number | null | undefined) ?? setting(place).get("maxSessions", 64),
      ...consoleOptions(configuration),
      [EXTENSION_MARK]: this.mark,
    };
    // a run that is over has no hub of its own any more: one is started for it, as for a launch
    const isOver = configuration.record !== undefined;
    if (configuration.request === "attach" && !isOver) return this.attaching(common, configuration, folder);
    return this.launching(common, configuration, folder, token);
  }

  /** With the hub of the run that is meant. */
  private attaching(
    common: vscode.DebugConfiguration,
    { run, cwd, name }: vscode.DebugConfiguration,
    folder: vscode.WorkspaceFolder | undefined,
  ): vscode.DebugConfiguration | undefined {
    const place = (run as string | null | undefined) ?? "";
    const folders = cwd && typeof common.cwd === "string" ? [common.cwd] : localFolders(folder);
    const hub: HubAddress | undefined = findHub(place, folders);
    if (hub) return { ...common, run: undefined, [HUB_KEY]: hub };
    const where = place === "" ? `in .rankscope/runs of ${folders.join(", ") || "this window"}` : `at '${place}'`;
    this.refuse(`No run that goes on is found ${where}.`, {
      "Open launch.json": () => openLaunchFile(folder, name, "run"),
    });
  }

  /** With the Python that the hub, and a program or module, is run by. */
  private async launching(
    common: vscode.DebugConfiguration,
    { name, python }: vscode.DebugConfiguration,
    folder: vscode.WorkspaceFolder | undefined,
    token?: vscode.CancellationToken,
  ): Promise<vscode.DebugConfiguration | undefined> {
    const controller = new AbortController();
    const cancelled = token?.onCancellationRequested(() => {
      controller.abort();
    });
    try {
      const named = python as string | string[] | null | undefined;
      const interpreter: Interpreter = await this.interpreters.find(
        named,
        folder ?? vscode.workspace.workspaceFolders?.[0],
        controller.signal,
      );
      return { ...common, python: [...interpreter.argv], [INTERPRETER_KEY]: interpreter };
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      if (!(error instanceof PythonError)) throw error;
      const mends = { ...this.interpreters.mends(), "Open launch.json": () => openLaunchFile(folder, name, "python") };
      this.refuse(error.message, mends, error.detail);
      return;
    } finally {
      cancelled?.dispose();
    }
  }

  private refuseFaults(
    faults: readonly Fault[],
    { name }: vscode.DebugConfiguration,
    folder: vscode.WorkspaceFolder | undefined,
  ): undefined {
    const detail = faults.map(({ key, message, hint }) => `  ${key}: ${message}. ${hint}`).join("\n");
    this.refuse(summaryOf(faults), { "Open launch.json": () => openLaunchFile(folder, name, faults[0]?.key) }, detail);
  }

  /** Say why, and let VS Code start nothing. The message outlives the refusal. */
  private refuse(sentence: string, mends: Mends, detail = ""): undefined {
    void this.log.showError(sentence, mends, detail);
    return undefined;
  }
}

function launch(name: string, more: object): vscode.DebugConfiguration {
  return { type: DEBUG_TYPE, request: "launch", name, ...more };
}

/** A job in a terminal is looked at there: VS Code would put the debug console before it. */
function consoleOptions({ console, internalConsoleOptions, request }: vscode.DebugConfiguration): object {
  const isInTerminal = request === "launch" && console !== "internalConsole";
  return isInTerminal && internalConsoleOptions === undefined ? { internalConsoleOptions: "neverOpen" } : {};
}

function setting(folder: vscode.WorkspaceFolder | undefined): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration(SETTINGS, folder?.uri);
}

/** The Python file in front of the person. */
function openPythonFile(): string | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document?.languageId === "python" && document.uri.scheme === "file" ? document.uri.fsPath : undefined;
}

/** What can be run of the open file, for "Select and start debugging". */
function ofOpenFile(folder: vscode.WorkspaceFolder | undefined): vscode.DebugConfiguration[] {
  const file = openPythonFile();
  if (file === undefined) return [];
  const within = folder && relative(folder.uri.fsPath, file);
  const path = within === undefined || within.startsWith("..") ? file : within;
  const program = path === file ? file : `\${workspaceFolder}/${path}`;
  const quoted = /[^\w./-]/.test(path) ? `"${path}"` : path;
  return [
    launch(`RankScope: ${basename(file)}`, { program }),
    launch(`RankScope: torchrun ${basename(file)}`, {
      command: `torchrun --standalone --nproc-per-node 4 ${quoted}`,
    }),
  ];
}

/** Paths as the hub, which runs elsewhere, understands them: from the folder, or the job's own. */
function withPaths(
  configuration: vscode.DebugConfiguration,
  folder: vscode.WorkspaceFolder | undefined,
): vscode.DebugConfiguration {
  const { program, cwd, envFile } = configuration as Record<string, unknown>;
  const base =
    folder?.uri.fsPath ?? (typeof program === "string" && isAbsolute(program) ? dirname(program) : homedir());
  const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
  return {
    ...configuration,
    cwd: isText(cwd) ? resolve(base, cwd) : base,
    ...(isText(envFile) ? { envFile: resolve(base, envFile) } : {}),
  };
}

/** Files and folders that are named and are not there. */
function missingFiles({ request, program, cwd, envFile }: vscode.DebugConfiguration): Fault[] {
  const faults: Fault[] = [];
  const folder = cwd as string;
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    return [{ key: "cwd", message: `the folder '${folder}' does not exist`, hint: "Name a folder that exists." }];
  }
  if (request !== "launch") return [];
  if (typeof program === "string" && program !== "" && !existsSync(resolve(folder, program))) {
    faults.push({ key: "program", message: `'${program}' does not exist`, hint: `Looked in ${folder}.` });
  }
  if (typeof envFile === "string" && envFile !== "" && !existsSync(envFile)) {
    faults.push({ key: "envFile", message: `'${envFile}' does not exist`, hint: "Name a file of NAME=value lines." });
  }
  return faults;
}

/** The folders of the window, the configuration's own first. */
function localFolders(first: vscode.WorkspaceFolder | undefined): string[] {
  const folders = [...(first ? [first] : []), ...(vscode.workspace.workspaceFolders ?? [])];
  return [...new Set(folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath))];
}

function foldersOf(first: vscode.WorkspaceFolder | undefined): object {
  const folders = localFolders(first);
  const [workspaceFolder] = folders;
  return workspaceFolder === undefined ? {} : { workspaceFolder, workspaceFolders: folders };
}
