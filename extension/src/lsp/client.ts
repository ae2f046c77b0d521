/** The language server: findings of runs and mistakes in the source, in the Problems panel. Needs no debug session. */

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import * as vscode from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type ServerOptions,
} from "vscode-languageclient/node";

import { COMMANDS, SETTINGS } from "../contributions.js";
import { environmentFor, PythonError } from "../core/python.js";
import type { Interpreters } from "../debug/interpreter.js";
import type { Log } from "../log.js";

const CLEAR_ON_SERVER = "rankscope.server.clearFindings";
/** What the server may offer as actions of this extension. */
const OFFERED = [COMMANDS.breakOnRanks, COMMANDS.compare, COMMANDS.openRun];
const MOST_RESTARTS = 3;
const STOP_MS = 2000;
/** Settings that choose the interpreter. */
const PYTHON = `${SETTINGS}.python`;
const LINT = `${SETTINGS}.lint`;

/** Owns the server's process of this window. It runs in trusted workspaces only: the interpreter is the workspace's. */
export class ProblemsClient implements vscode.Disposable {
  private readonly packageFolder: string;
  private readonly disposables: vscode.Disposable[];
  private client: LanguageClient | undefined;
  private restarts = 0;
  /** The starts and stops so far: each waits for the one before. */
  private last: Promise<void> = Promise.resolve();

  constructor(
    private readonly log: Log,
    private readonly interpreters: Interpreters,
    private readonly context: vscode.ExtensionContext,
  ) {
    const packaged = join(context.extensionPath, "python");
    this.packageFolder = existsSync(packaged) ? packaged : join(context.extensionPath, "python_adapter");
    this.disposables = [
      vscode.commands.registerCommand(COMMANDS.clearFindings, () => this.clear()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.restart();
      }),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration(PYTHON)) this.restart();
        else if (change.affectsConfiguration(LINT)) {
          void this.client?.sendNotification("workspace/didChangeConfiguration", { settings: this.settings() });
        }
      }),
    ];
    this.restart();
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
    this.last = this.last.then(() => this.stop());
  }

  private restart(): void {
    if (!vscode.workspace.isTrusted) return;
    this.last = this.last.then(async () => {
      await this.stop();
      await this.start();
    });
  }

  /** Never rejects: what is wrong is said. */
  private async start(): Promise<void> {
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    try {
      const { executable, isChosen } = await this.interpreters.find(null, folder);
      const client = this.make(executable, environmentFor(executable, isChosen));
      this.client = client;
      await client.start();
    } catch (error) {
      this.client = undefined;
      // F5 says what is wrong with the interpreter; who only reads a file is not told
      if (error instanceof PythonError) this.log.channel.warn(`no findings and no lints: ${error.message}`);
      else await this.log.showUnexpected("RankScope's language server did not start.", error);
    }
  }

  private async stop(): Promise<void> {
    const { client } = this;
    this.client = undefined;
    try {
      await client?.stop(STOP_MS);
    } catch (error) {
      this.log.channel.warn("the language server did not stop as it should", error);
    }
  }

  private make(command: string, environment: NodeJS.ProcessEnv): LanguageClient {
    const path = environment.PYTHONPATH;
    const PYTHONPATH = path ? `${this.packageFolder}${delimiter}${path}` : this.packageFolder;
    const server: ServerOptions = {
      command,
      args: ["-m", "rankscope.lsp"],
      // -m looks there first: nothing of the person's may take the place of a library
      options: { cwd: this.packageFolder, env: { ...environment, PYTHONPATH } },
    };
    return new LanguageClient(SETTINGS, "RankScope", server, {
      documentSelector: [{ scheme: "file", language: "python" }],
      outputChannel: this.log.channel,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: {
        ...this.settings(),
        commands: OFFERED,
        readme: join(this.context.extensionPath, "README.md"),
      },
      initializationFailedHandler: () => false, // start() rejects, and says so
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => this.closed(),
      },
    });
  }

  private closed(): CloseHandlerResult {
    this.restarts += 1;
    if (this.restarts <= MOST_RESTARTS) return { action: CloseAction.Restart, handled: true };
    void this.log.showError("RankScope's language server has ended again and again: there are no new lints.");
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  private settings(): object {
    const settings = vscode.workspace.getConfiguration(SETTINGS);
    const disabledRules = settings.get<readonly string[]>("lint.disabledRules", []);
    return { lint: { enabled: settings.get("lint.enabled", true), disabledRules } };
  }

  private async clear(): Promise<void> {
    await this.client?.sendRequest("workspace/executeCommand", { command: CLEAR_ON_SERVER, arguments: [] });
  }
}
