/** Failures: told when they happen, and looked into afterwards. */

import * as vscode from "vscode";

import { COMMANDS, DEBUG_TYPE } from "../contributions.js";
import type { Finding } from "../core/protocol.js";
import { failedRuns } from "../core/runs.js";
import type { Log } from "../log.js";
import type { Jobs } from "./jobs.js";

interface RunItem extends vscode.QuickPickItem {
  readonly folder: string;
}

/** Shows a toast for the first failure of a job, and opens the last moment of one that is over. */
export class PostMortem implements vscode.Disposable {
  private readonly told = new Set<string>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    jobs: Jobs,
    private readonly log: Log,
  ) {
    this.disposables = [
      jobs.onDidFind(({ job, finding }) => {
        this.tell(job.id, finding);
      }),
      vscode.commands.registerCommand(COMMANDS.openRun, (folder?: string) => this.pick(folder)),
    ];
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  /** Once for each episode: what follows from a first failure is no news. */
  private tell(job: string, finding: Finding): void {
    const episode = `${job}/${finding.episode}`;
    if (!finding.isFirst || this.told.has(episode)) return;
    this.told.add(episode);
    const mends: Record<string, () => unknown> = {};
    if (finding.path) mends["Go to line"] = () => openAt(finding);
    if (finding.record) mends["Open post-mortem"] = () => this.open(finding.record);
    void this.log.showError(`${finding.label} failed: ${finding.text}`, mends);
  }

  private async pick(folder: string | undefined): Promise<void> {
    if (folder !== undefined) {
      await this.open(folder);
      return;
    }
    const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
    const items = failedRuns(folders).map((run): RunItem => ({
      label: run.when,
      description: run.command,
      folder: run.folder,
    }));
    if (items.length === 0) {
      void vscode.window.showInformationMessage("No run of this window keeps a failure.");
      return;
    }
    const picked = await vscode.window.showQuickPick(items, {
      title: "Open a run in which something failed",
      matchOnDescription: true,
    });
    if (picked) await this.open(picked.folder);
  }

  private async open(record: string): Promise<void> {
    const name = `post-mortem ${record.split(/[\\/]/).at(-1) ?? ""}`;
    const configuration = { type: DEBUG_TYPE, request: "attach", name, record };
    const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(record));
    if (!(await vscode.debug.startDebugging(folder, configuration))) this.log.channel.warn(`${name} did not open`);
  }
}

async function openAt({ path, line }: Finding): Promise<void> {
  const at = new vscode.Range(Math.max(0, line - 1), 0, Math.max(0, line - 1), 0);
  await vscode.window.showTextDocument(vscode.Uri.file(path), { selection: at });
}
