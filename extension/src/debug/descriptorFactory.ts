/** Which hub serves a session: a launch gets one of its own, ranks get that of their job, an attach the one named. */

import { existsSync } from "node:fs";
import { join } from "node:path";

import * as vscode from "vscode";

import { DEBUG_TYPE, SETTINGS } from "../contributions.js";
import { environmentFor } from "../core/python.js";
import type { HubAddress } from "../core/runs.js";
import type { Log, Mends } from "../log.js";
import { HUB_KEY, INTERPRETER_KEY, isChild } from "./configuration.js";
import { HubError, HubProcess } from "./hubProcess.js";
import type { Interpreter, Interpreters } from "./interpreter.js";
import { openLaunchFile } from "./launchFile.js";

const PROGRESS_AFTER_MS = 1000;

/** Owns the hubs of this window's jobs, by root session. */
export class DescriptorFactory implements vscode.DebugAdapterDescriptorFactory, vscode.Disposable {
  private readonly addresses = new Map<string, HubAddress>();
  private readonly hubs = new Map<string, HubProcess>();
  private readonly starts = new Set<AbortController>();
  private readonly packageFolder: string;
  private readonly disposables: readonly vscode.Disposable[];

  constructor(
    private readonly log: Log,
    private readonly interpreters: Interpreters,
    context: vscode.ExtensionContext,
  ) {
    const packaged = join(context.extensionPath, "python");
    this.packageFolder = existsSync(packaged) ? packaged : join(context.extensionPath, "python_adapter");
    this.disposables = [
      vscode.debug.registerDebugAdapterDescriptorFactory(DEBUG_TYPE, this),
      vscode.debug.onDidTerminateDebugSession((session) => {
        this.release(session);
      }),
    ];
  }

  /**
   * The window closes: a hub that starts is ended, and one that serves loses its connection, which ends it and the
   * job that it has launched, unless another window looks at that job.
   */
  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
    for (const start of this.starts) start.abort();
  }

  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const { configuration } = session;
    const known = isChild(configuration) ? this.hubOf(session) : (configuration[HUB_KEY] as HubAddress | undefined);
    const address = known ?? (isChild(configuration) ? undefined : await this.startFor(session));
    if (!address) throw new Error("The job of these ranks has ended.");
    this.addresses.set(session.id, address);
    this.log.channel.debug(`session '${session.name}' is served by ${JSON.stringify(address)}`);
    return address.kind === "unix"
      ? new vscode.DebugAdapterNamedPipeServer(address.path)
      : new vscode.DebugAdapterServer(address.port, "127.0.0.1");
  }

  /** The hub of the nearest ancestor. */
  private hubOf(session: vscode.DebugSession): HubAddress | undefined {
    for (let at = session.parentSession; at; at = at.parentSession) {
      const address = this.addresses.get(at.id);
      if (address) return address;
    }
    return undefined;
  }

  /** A hub of its own for a job. When there is none, the person knows why, and VS Code hears of a cancelled start. */
  private async startFor(session: vscode.DebugSession): Promise<HubAddress> {
    const controller = new AbortController();
    this.starts.add(controller);
    const ready = showLate(`Starting the hub of '${session.name}'…`, controller);
    try {
      const hub = await this.start(session, controller.signal);
      this.hubs.set(session.id, hub);
      void this.watch(hub, session.name);
      return { kind: "unix", path: hub.pipe };
    } catch (error) {
      if (!controller.signal.aborted) this.tell(error, session);
      throw new vscode.CancellationError();
    } finally {
      this.starts.delete(controller);
      ready();
    }
  }

  private async start(
    { configuration, workspaceFolder }: vscode.DebugSession,
    signal: AbortSignal,
  ): Promise<HubProcess> {
    const resolved = configuration[INTERPRETER_KEY] as Interpreter | undefined;
    const { executable, isChosen } = resolved ?? (await this.interpreters.find(null, workspaceFolder, signal));
    return HubProcess.start({
      python: executable,
      packageFolder: this.packageFolder,
      environment: environmentFor(executable, isChosen),
      seconds: vscode.workspace.getConfiguration(SETTINGS).get("startTimeout", 30),
      debugger: process.env.RANKSCOPE_HUB_DEBUG,
      signal,
      log: (level, text) => {
        this.log.write(level, text);
      },
    });
  }

  private tell(error: unknown, { configuration, workspaceFolder, name }: vscode.DebugSession): void {
    if (!(error instanceof Error)) throw error;
    const python = (configuration[INTERPRETER_KEY] as Interpreter | undefined)?.executable ?? "Python";
    const mends: Mends = {
      ...this.interpreters.mends(),
      "Open launch.json": () => openLaunchFile(workspaceFolder, name, "python"),
    };
    if (!(error instanceof HubError)) {
      void this.log.showUnexpected(`The hub did not start: ${error.message}`, error);
      return;
    }
    const { message, missingModule } = error; // what the hub said is in the log already
    const sentence =
      missingModule === undefined ? message : `The hub did not start: ${python} cannot import '${missingModule}'.`;
    void this.log.showError(sentence, mends);
  }

  /** Say so when a hub dies under its job. */
  private async watch(hub: HubProcess, name: string): Promise<void> {
    const { why, isExpected } = await hub.ended;
    if (isExpected) return;
    await this.log.showError(`The hub of '${name}' has ended; the job's ranks run on without a debugger.`, {}, why);
  }

  private release({ id }: vscode.DebugSession): void {
    this.addresses.delete(id);
    const hub = this.hubs.get(id);
    this.hubs.delete(id);
    void hub?.release();
  }
}

/** Shows progress that can be cancelled, if it is not called off soon. */
function showLate(title: string, controller: AbortController): () => void {
  let done = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    done = resolve;
  });
  const timer = setTimeout(() => {
    void vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title, cancellable: true },
      async (_progress, token) => {
        const cancelled = token.onCancellationRequested(() => {
          controller.abort();
        });
        await over;
        cancelled.dispose();
      },
    );
  }, PROGRESS_AFTER_MS);
  return () => {
    clearTimeout(timer);
    done();
  };
}
