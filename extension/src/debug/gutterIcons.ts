/** The small pictures beside breakpoints: their ranks in up to four characters, drawn to be read at 16 pixels. */

import * as vscode from "vscode";

const DARK = "#c5c5c5";
const LIGHT = "#424242";
/** Beyond this, types that no editor shows are given up. */
const KEPT = 64;

/** One decoration type per text, made when it is first needed: the API has no icon per line. Owns them. */
export class GutterIcons implements vscode.Disposable {
  private readonly types = new Map<string, vscode.TextEditorDecorationType>();

  typeOf(text: string): vscode.TextEditorDecorationType {
    let type = this.types.get(text);
    if (!type) {
      type = vscode.window.createTextEditorDecorationType({
        gutterIconSize: "contain",
        dark: { gutterIconPath: iconUri(text, DARK) },
        light: { gutterIconPath: iconUri(text, LIGHT) },
      });
      this.types.set(text, type);
    }
    return type;
  }

  /** Give up types that nothing shows any more once there are many. */
  keepOnly(shown: ReadonlySet<string>): void {
    if (this.types.size <= KEPT) return;
    for (const [text, type] of this.types) {
      if (shown.has(text)) continue;
      type.dispose();
      this.types.delete(text);
    }
  }

  dispose(): void {
    for (const type of this.types.values()) type.dispose();
    this.types.clear();
  }
}

/** Base64, because the editor puts the URI into a style sheet without escaping it. */
function iconUri(text: string, color: string): vscode.Uri {
  return vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(iconSvg(text, color)).toString("base64")}`);
}

function iconSvg(text: string, color: string): string {
  const frame = `<rect x="0.5" y="2.5" width="15" height="11" rx="2.5" fill="none" stroke="${color}" stroke-opacity="0.45"/>`;
  const content = text === "≡" ? threeLines(color) : letters(text, color);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">${frame}${content}</svg>`;
}

function threeLines(color: string): string {
  const lines = [5.5, 8, 10.5].map((y) => `<path d="M4 ${y}h8" stroke="${color}" stroke-width="1.2"/>`);
  return lines.join("");
}

function letters(text: string, color: string): string {
  const escaped = text.replace(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`);
  const size = text.length <= 2 ? 9 : 8;
  // four characters are squeezed into the frame
  const width = text.length > 2 ? ` textLength="12.5" lengthAdjust="spacingAndGlyphs"` : "";
  const font = `font-family="system-ui,sans-serif" font-weight="600" font-size="${size}"`;
  return `<text x="8" y="${8 + size * 0.36}" text-anchor="middle" fill="${color}" ${font}${width}>${escaped}</text>`;
}
