/** Ranks that hang each other: told when it is found, and why, when somebody asks. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import type { Finding } from "../core/protocol.js";
import type { Log } from "../log.js";
import { showLine } from "../views/goTo.js";
import type { Jobs } from "./jobs.js";

const SCHEME = "rankscope-hang";
const DETAILS = "Show details";
const LINE = "Go to line";

/** Owns the pages that it has shown; they are read-only and nobody is asked to save them. */
export class Hangs implements vscode.Disposable, vscode.TextDocumentContentProvider {
  private readonly pages = new Map<string, string>();
  private readonly told = new Set<string>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
  ) {
    this.disposables = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.pages.delete(uri.toString())),
      jobs.onDidFind(({ job, finding }) => {
        void this.tell(job.id, finding);
      }),
      vscode.commands.registerCommand(COMMANDS.whyStuck, () => this.why()),
    ];
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.pages.get(uri.toString()) ?? "What was said here is no longer kept.";
  }

  /** Once: that a hang has ended by itself is no news. Divergences stand in the Problems panel. */
  private async tell(job: string, finding: Finding): Promise<void> {
    const id = `${job}/${finding.id}`;
    if (finding.kind === "crash" || finding.kind === "divergence" || this.told.has(id)) return;
    this.told.add(id);
    const buttons = finding.path ? [DETAILS, LINE] : [DETAILS];
    const chosen = await vscode.window.showWarningMessage(finding.text, ...buttons);
    if (chosen === DETAILS) await this.show(finding.details?.text ?? finding.text);
    if (chosen === LINE) await showLine(finding);
  }

  private async why(): Promise<void> {
    const job = this.jobs.focused;
    if (!job) {
      void vscode.window.showInformationMessage("No job runs.");
      return;
    }
    try {
      const { text, findings } = await job.request("rankscope/whyStuck", {});
      const [first = "", ...others] = findings;
      const more = others.length > 0 ? ` And ${others.length} more.` : "";
      const chosen = await (findings.length > 0
        ? vscode.window.showWarningMessage(first + more, DETAILS)
        : vscode.window.showInformationMessage(text.split("\n")[0] ?? "", DETAILS));
      if (chosen === DETAILS) await this.show(text);
    } catch (error) {
      await this.log.showError(error instanceof Error ? error.message : String(error));
    }
  }

  private async show(page: string): Promise<void> {
    const time = new Date().toTimeString().slice(0, 8).replaceAll(":", ".");
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/Why is it stuck at ${time}.txt` });
    this.pages.set(uri.toString(), page);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
  }
}
