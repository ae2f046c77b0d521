/** The output channel, and errors that a person sees. */

import * as vscode from "vscode";

/** Owns the "RankScope" output channel; its level is set in the Output view. */
export class Log implements vscode.Disposable {
  readonly channel = vscode.window.createOutputChannel("RankScope", { log: true });

  /**
   * Show a sentence with its mends as buttons and "Show log"; resolves to the chosen mend's result when it has run.
   * `detail` goes to the log only.
   */
  async showError(sentence: string, mends: Readonly<Record<string, () => unknown>> = {}, detail = ""): Promise<void> {
    this.channel.error(detail ? `${sentence}\n${detail}` : sentence);
    const chosen = await vscode.window.showErrorMessage(sentence, ...Object.keys(mends), "Show log");
    if (chosen === "Show log") this.channel.show();
    else if (chosen !== undefined) await mends[chosen]?.();
  }

  dispose(): void {
    this.channel.dispose();
  }
}
