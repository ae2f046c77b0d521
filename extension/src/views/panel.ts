/** A panel beside the editors whose script is one of ours: no network, nothing inline, messages typed on both ends. */

import { randomBytes } from "node:crypto";

import * as vscode from "vscode";

/** What a panel is made from. */
export interface PanelKind {
  /** In package.json and for VS Code: the id under which it comes back. */
  readonly id: string;
  readonly title: string;
  /** The script and style in `extension/dist/webview/`. */
  readonly script: string;
}

/**
 * One panel at most of its kind, opened on demand and again after a restart of the window. It is made anew whenever it has
 * been hidden: its script then says `ready` and is told everything again.
 */
export class Panel<Sent, Received extends { readonly type: string }> implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];
  private readonly received = new vscode.EventEmitter<Received>();
  private readonly shown = new vscode.EventEmitter<void>();
  private panel: vscode.WebviewPanel | undefined;

  readonly onDidReceive = this.received.event;
  /** It has become visible or hidden, or was closed. */
  readonly onDidChangeVisibility = this.shown.event;

  constructor(
    private readonly kind: PanelKind,
    private readonly extensionUri: vscode.Uri,
  ) {
    this.disposables.push(
      this.received,
      this.shown,
      vscode.window.registerWebviewPanelSerializer(kind.id, {
        deserializeWebviewPanel: (panel) => {
          this.panel?.dispose();
          this.take(panel);
          return Promise.resolve();
        },
      }),
    );
  }

  get isVisible(): boolean {
    return this.panel?.visible ?? false;
  }

  open(): void {
    if (this.panel) {
      this.panel.reveal();
      return;
    }
    const { id, title } = this.kind;
    this.take(vscode.window.createWebviewPanel(id, title, vscode.ViewColumn.Beside, {}));
  }

  /** Nothing is kept for a script that is hidden: it asks when it is there again. */
  post(message: Sent): void {
    if (this.isVisible) void this.panel?.webview.postMessage(message);
  }

  dispose(): void {
    this.panel?.dispose();
    for (const disposable of this.disposables) disposable.dispose();
  }

  private take(panel: vscode.WebviewPanel): void {
    this.panel = panel;
    const folder = vscode.Uri.joinPath(this.extensionUri, "extension", "dist", "webview");
    panel.webview.options = { enableScripts: true, enableForms: false, localResourceRoots: [folder] };
    panel.webview.onDidReceiveMessage((message: Received) => {
      this.received.fire(message);
    });
    panel.onDidChangeViewState(() => {
      this.shown.fire();
    });
    panel.onDidDispose(() => {
      if (this.panel === panel) this.panel = undefined;
      this.shown.fire();
    });
    panel.webview.html = page(panel.webview, folder, this.kind);
  }
}

function page(webview: vscode.Webview, folder: vscode.Uri, { title, script }: PanelKind): string {
  const nonce = randomBytes(16).toString("base64url");
  const fileOf = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(folder, name)).toString();
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${title}</title>
<link rel="stylesheet" href="${fileOf(`${script}.css`)}">
</head>
<body>
<script nonce="${nonce}" src="${fileOf(`${script}.js`)}"></script>
</body>
</html>`;
}
