/** The output channel, and errors that a person sees. */

import * as vscode from "vscode";

import type { Level } from "./core/logLines.js";

/** Buttons of an error, and what each does. */
export type Mends = Readonly<Record<string, () => unknown>>;

/** Owns the "RankScope" output channel; its level is set in the Output view. */
export class Log implements vscode.Disposable {
  readonly channel = vscode.window.createOutputChannel("RankScope", { log: true });

  /** One line of a process, with the level it has there. */
  write(level: Level, text: string): void {
    if (level === "warning") this.channel.warn(text);
    else this.channel[level](text);
  }

  /**
   * Show a sentence with its mends as buttons and "Show log"; resolves when a chosen mend has run, or the person has
   * closed the message. Never rejects. `detail` goes to the log only.
   */
  async showError(sentence: string, mends: Mends = {}, detail = ""): Promise<void> {
    this.channel.error(detail ? `${sentence}\n${detail}` : sentence);
    const chosen = await vscode.window.showErrorMessage(sentence, ...Object.keys(mends), "Show log");
    if (chosen === "Show log") this.channel.show();
    else if (chosen !== undefined) {
      try {
        await mends[chosen]?.();
      } catch (error) {
        this.channel.error(`'${chosen}' failed: ${stackOf(error)}`);
      }
    }
  }

  /** Something that nobody expected: one plain sentence for the person, the stack for the log. Never rejects. */
  showUnexpected(sentence: string, error: unknown): Promise<void> {
    return this.showError(sentence, {}, stackOf(error));
  }

  dispose(): void {
    this.channel.dispose();
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
