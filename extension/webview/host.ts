/** The other end of a panel. */

interface VsCode {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): VsCode;

/** What a panel's script says and hears. */
interface Speech {
  readonly sent: object;
  readonly received: object;
}

export class Host<S extends Speech> {
  private readonly vscode = acquireVsCodeApi();

  send(message: S["sent"]): void {
    this.vscode.postMessage(message);
  }

  hear(take: (message: S["received"]) => void): void {
    window.addEventListener("message", ({ data }: MessageEvent<S["received"]>) => {
      take(data);
    });
  }

  /** The text that was kept last, before the panel was hidden or its window closed; empty: none. */
  get kept(): string {
    const state = this.vscode.getState();
    return typeof state === "string" ? state : "";
  }

  keep(text: string): void {
    this.vscode.setState(text);
  }
}
