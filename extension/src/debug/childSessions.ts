/** Child sessions: opened when the hub asks for them, and named for what they are. */

import * as vscode from "vscode";

import { sessionName } from "../core/focus.js";
import { EXTENSION_MARK, type ChildConfiguration } from "../core/protocol.js";
import type { Log } from "../log.js";
import type { Job, Jobs } from "./jobs.js";

/** The hub decides which children there are; VS Code ends them with their parent. */
export class ChildSessions implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];
  /** Jobs whose person has been told that a child could not be opened. */
  private readonly told = new WeakSet<Job>();

  constructor(
    jobs: Jobs,
    private readonly log: Log,
  ) {
    this.disposables.push(
      jobs.onDidAskForChild(({ job, child }) => {
        void this.open(job, child.configuration);
      }),
      jobs.onDidStartChild(rename),
      jobs.onDidChangeRanks(rename),
      jobs.onDidChangeFrames(rename),
    );
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private async open(job: Job, child: ChildConfiguration): Promise<void> {
    const configuration: vscode.DebugConfiguration = {
      ...child,
      [EXTENSION_MARK]: job.session.configuration[EXTENSION_MARK] as unknown,
    };
    let why = "VS Code did not start it";
    try {
      const hasStarted = await vscode.debug.startDebugging(job.session.workspaceFolder, configuration, {
        parentSession: job.session,
        lifecycleManagedByParent: true,
        consoleMode: vscode.DebugConsoleMode.MergeWithParent,
        compact: false,
        suppressSaveBeforeStart: true,
        suppressDebugView: true,
      });
      if (hasStarted) return;
    } catch (error) {
      why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    if (job.hasEnded) return;
    if (this.told.has(job)) {
      this.log.channel.error(`No session for ${child.name}: ${why}`);
      return;
    }
    this.told.add(job);
    await this.log.showError(
      `The session of ${child.name} could not be opened. The job runs on, and the Ranks view shows the rank.`,
      {},
      why,
    );
  }
}

/** VS Code shows by itself whether a session runs or is paused. */
function rename(job: Job): void {
  for (const [ranks, session] of job.children) {
    const name = sessionName(ranks, job.members, (member) => job.frames.get(member.id)?.call ?? "");
    if (session.name !== name) session.name = name;
  }
}
