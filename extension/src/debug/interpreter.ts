/** The Python of a configuration: its own, else the setting's, else the Python extension's, else that on PATH. */

import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

import { SETTINGS } from "../contributions.js";
import { findOnPath, Probes, type Python, PythonError } from "../core/python.js";
import type { Log, Mends } from "../log.js";

const EXTENSION_SECONDS = 5;
const SELECT_INTERPRETER = "python.setInterpreter";

export interface Interpreter extends Python {
  /** A person chose it, so that its folder comes first on the job's PATH. */
  readonly isChosen: boolean;
}

/** Finds interpreters and asks each once what it is. Installs and activates nothing but the Python extension itself. */
export class Interpreters {
  private readonly probes = new Probes();

  constructor(private readonly log: Log) {}

  /** Rejects with a PythonError that says what is wrong with it, or an AbortError on abort. */
  async find(
    named: string | readonly string[] | null | undefined,
    folder: vscode.WorkspaceFolder | undefined,
    signal?: AbortSignal,
  ): Promise<Interpreter> {
    const chosen = [named ?? []].flat().filter((part) => part !== "");
    const setting = vscode.workspace.getConfiguration(SETTINGS, folder?.uri).get<string>("python", "").trim();
    if (chosen.length === 0 && setting !== "") chosen.push(setting);
    if (chosen.length === 0) {
      const selected = await this.selected(folder);
      if (selected !== undefined) chosen.push(selected);
    }
    const isChosen = chosen.length > 0;
    if (!isChosen) {
      const found = findOnPath(["python3", "python"]);
      if (found === undefined) throw new PythonError("There is no Python: neither selected nor on PATH.");
      chosen.push(found);
    }
    const [program = "", ...options] = chosen;
    const python = await this.probes.probe([located(program, folder), ...options], signal);
    this.log.channel.debug(`Python ${python.version}: ${python.executable}`);
    return { ...python, isChosen };
  }

  /** How a person chooses another: with the Python extension where it is, else in the settings. */
  mends(): Mends {
    if (vscode.extensions.getExtension(PVSC_EXTENSION_ID) === undefined) {
      const open = (): unknown => vscode.commands.executeCommand("workbench.action.openSettings", `${SETTINGS}.python`);
      return { "Select interpreter": open };
    }
    return { "Select interpreter": () => vscode.commands.executeCommand(SELECT_INTERPRETER) };
  }

  /** The interpreter that is selected in the Python extension for a folder; undefined without one. */
  private async selected(folder: vscode.WorkspaceFolder | undefined): Promise<string | undefined> {
    if (vscode.extensions.getExtension(PVSC_EXTENSION_ID) === undefined) return undefined;
    const asked = async (): Promise<string | undefined> => {
      const { environments } = await PythonExtension.api();
      const active = environments.getActiveEnvironmentPath(folder?.uri);
      const environment = await environments.resolveEnvironment(active);
      return environment?.executable.uri?.fsPath ?? (isAbsolute(active.path) ? active.path : undefined);
    };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${EXTENSION_SECONDS} seconds`));
      }, EXTENSION_SECONDS * 1000);
    });
    try {
      return await Promise.race([asked(), late]);
    } catch (error) {
      this.log.channel.warn("The Python extension cannot say which interpreter is selected; PATH is used.", error);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A path as a person writes it in the settings or in launch.json; a bare name is looked up on PATH. */
function located(program: string, folder: vscode.WorkspaceFolder | undefined): string {
  const base = folder?.uri.fsPath ?? homedir();
  const path = program.replaceAll("${workspaceFolder}", base).replace(/^~(?=\/)/, homedir());
  return path.includes("/") && !isAbsolute(path) ? resolve(join(base, path)) : path;
}
