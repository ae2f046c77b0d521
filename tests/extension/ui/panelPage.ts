/** A panel's script alone on a page, as VS Code would load it: for jobs of a size that no test can start. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { type Browser, chromium, type Page } from "playwright-core";

import { harness, ROOT } from "./harness.js";
import { BROWSER_FLAGS } from "./workbench.js";

const SIZE = { width: 1200, height: 800 };
const FILES = join(ROOT, "extension", "dist", "webview");

/** The colours of VS Code's own themes that the panels use. */
const THEMES = {
  dark: {
    ...{ foreground: "#cccccc", descriptionForeground: "#9d9d9d", errorForeground: "#f85149", focusBorder: "#0078d4" },
    ...{ "editor-background": "#1f1f1f", "editorWidget-background": "#202020", "panel-border": "#2b2b2b" },
    ...{ "widget-border": "#313131", "input-background": "#313131", "input-foreground": "#cccccc" },
    ...{ "input-border": "#3c3c3c", "input-placeholderForeground": "#989898", "dropdown-background": "#313131" },
    ...{ "dropdown-foreground": "#cccccc", "dropdown-border": "#3c3c3c", "button-background": "#0078d4" },
    ...{ "button-foreground": "#ffffff", "button-hoverBackground": "#026ec1", "button-secondaryBackground": "#313131" },
    ...{ "button-secondaryForeground": "#cccccc", "button-secondaryHoverBackground": "#3c3c3c" },
    ...{ "list-hoverBackground": "#2a2d2e", "list-activeSelectionBackground": "#04395e" },
    ...{ "list-activeSelectionForeground": "#ffffff", "list-inactiveSelectionBackground": "#37373d" },
    ...{ "charts-blue": "#3794ff", "charts-orange": "#d18616", "charts-yellow": "#cca700", "charts-green": "#89d185" },
    ...{ "debugIcon-pauseForeground": "#75beff", "debugIcon-startForeground": "#89d185" },
    ...{ "editorWarning-foreground": "#cca700", "editorHoverWidget-background": "#202020" },
    ...{ "editorHoverWidget-foreground": "#cccccc", "editorHoverWidget-border": "#454545" },
    ...{ "inputValidation-infoBackground": "#063b49", "progressBar-background": "#0078d4" },
  },
  light: {
    ...{ foreground: "#3b3b3b", descriptionForeground: "#6b6b6b", errorForeground: "#c72e0f", focusBorder: "#005fb8" },
    ...{ "editor-background": "#ffffff", "editorWidget-background": "#f8f8f8", "panel-border": "#e5e5e5" },
    ...{ "widget-border": "#e5e5e5", "input-background": "#ffffff", "input-foreground": "#3b3b3b" },
    ...{ "input-border": "#cecece", "input-placeholderForeground": "#767676", "dropdown-background": "#ffffff" },
    ...{ "dropdown-foreground": "#3b3b3b", "dropdown-border": "#cecece", "button-background": "#005fb8" },
    ...{ "button-foreground": "#ffffff", "button-hoverBackground": "#0258a8", "button-secondaryBackground": "#e5e5e5" },
    ...{ "button-secondaryForeground": "#3b3b3b", "button-secondaryHoverBackground": "#cccccc" },
    ...{ "list-hoverBackground": "#f2f2f2", "list-activeSelectionBackground": "#0060c0" },
    ...{ "list-activeSelectionForeground": "#ffffff", "list-inactiveSelectionBackground": "#e4e6f1" },
    ...{ "charts-blue": "#1a85ff", "charts-orange": "#d18616", "charts-yellow": "#bf8803", "charts-green": "#388a34" },
    ...{ "debugIcon-pauseForeground": "#007acc", "debugIcon-startForeground": "#388a34" },
    ...{ "editorWarning-foreground": "#bf8803", "editorHoverWidget-background": "#f8f8f8" },
    ...{ "editorHoverWidget-foreground": "#3b3b3b", "editorHoverWidget-border": "#c8c8c8" },
    ...{ "inputValidation-infoBackground": "#d6ecf2", "progressBar-background": "#005fb8" },
  },
} as const;
const FONTS = {
  ...{ "font-family": "sans-serif", "font-size": "13px", "editor-font-family": "monospace" },
} as const;

/** Takes what a script says, in `sent`. */
const API = `
  window.sent = [];
  window.acquireVsCodeApi = () => ({
    postMessage: (message) => window.sent.push(message),
    getState: () => window.kept,
    setState: (state) => { window.kept = state; },
  });`;

export class PanelPage {
  /** Errors of the script. */
  readonly faults: string[] = [];

  private constructor(
    readonly page: Page,
    private readonly browser: Browser,
  ) {
    page.on("pageerror", (error) => this.faults.push(String(error)));
  }

  /** The panel with this script, in the dark theme. The caller closes it. */
  static async open(script: string): Promise<PanelPage> {
    const browser = await chromium.launch({ executablePath: harness().browser, headless: true, args: BROWSER_FLAGS });
    const page = await browser.newPage({ viewport: SIZE });
    const panel = new PanelPage(page, browser);
    await page.setContent('<!DOCTYPE html><html lang="en"><head><style id="theme"></style></head><body></body></html>');
    await panel.theme("dark");
    await page.addScriptTag({ content: API });
    await page.addStyleTag({ path: join(FILES, `${script}.css`) });
    await page.addScriptTag({ path: join(FILES, `${script}.js`) });
    return panel;
  }

  async close(): Promise<void> {
    await this.browser.close();
  }

  /** Say something to the script; resolves to the milliseconds until it is drawn. */
  post(message: object): Promise<number> {
    return this.page.evaluate(`(async () => {
      const start = performance.now();
      window.dispatchEvent(new MessageEvent("message", { data: ${JSON.stringify(message)} }));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      return performance.now() - start;
    })()`);
  }

  /** What the script has said so far. */
  sent(): Promise<{ readonly type: string }[]> {
    return this.page.evaluate("window.sent");
  }

  /** `.build/screenshots/dark-NAME.png` and `light-NAME.png`. */
  async screenshots(name: string): Promise<void> {
    const folder = join(ROOT, ".build", "screenshots");
    mkdirSync(folder, { recursive: true });
    for (const theme of ["light", "dark"] as const) {
      await this.theme(theme);
      await this.page.screenshot({ path: join(folder, `${theme}-${name}.png`) });
    }
  }

  private async theme(theme: keyof typeof THEMES): Promise<void> {
    const variables = Object.entries({ ...THEMES[theme], ...FONTS }).map(
      ([name, value]) => `--vscode-${name}: ${value};`,
    );
    const css = `:root { ${variables.join(" ")} color-scheme: ${theme}; background: var(--vscode-editor-background); }`;
    await this.page.evaluate(`document.querySelector("#theme").textContent = ${JSON.stringify(css)};
      document.body.className = "vscode-${theme}";`);
  }
}
