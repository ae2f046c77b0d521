/** A window on the sample workspace, for one scenario; nothing in it is known from another one. */

import { chromium } from "playwright-core";

import { Debugging } from "./debugging.js";
import { harness, type Harness } from "./harness.js";
import { Ranks } from "./ranks.js";
import { SourceEditor } from "./sourceEditor.js";
import { Window } from "./window.js";

const SIZE = { width: 1400, height: 900 };
/** Flags with which a browser needs no display, no network and no sandbox of its own. */
export const BROWSER_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** How long one action on the page may take; who waits for longer tries again. */
const ACTION_MS = 5_000;
/** What the window is when it has the theme. */
const THEMES = { dark: ".monaco-workbench.vs-dark", light: ".monaco-workbench.vs:not(.vs-dark)" } as const;

export class Workbench extends Window {
  readonly source: SourceEditor;
  readonly debug = new Debugging(this);
  readonly ranks = new Ranks(this);

  private constructor(
    page: Window["page"],
    private readonly harness: Harness,
  ) {
    super(page);
    this.source = new SourceEditor(this, harness.workspace);
  }

  /** A browser of its own that has never seen the person, with one window. The caller closes it. */
  static async open(at: Harness = harness(), { trust = true } = {}): Promise<Workbench> {
    const browser = await chromium.launch({ executablePath: at.browser, headless: true, args: BROWSER_FLAGS });
    try {
      const context = await browser.newContext({ viewport: SIZE, colorScheme: "dark" });
      context.setDefaultTimeout(ACTION_MS);
      const page = await context.newPage();
      const workbench = new Workbench(page, at);
      await page.goto(at.url, { waitUntil: "commit" });
      await workbench.dialog(/trust the authors/);
      await workbench.answerDialog(trust ? "Yes, I trust the authors" : "No, I don't trust the authors");
      await workbench.see("the explorer", page.locator(".explorer-folders-view .monaco-list-row"));
      return workbench;
    } catch (error) {
      await browser.close();
      throw error;
    }
  }

  get workspace(): string {
    return this.harness.workspace;
  }

  /** Ends the window, and with it its extension host: going to another page lets VS Code say good-bye. */
  async close(): Promise<void> {
    try {
      await this.page.goto("about:blank");
    } finally {
      await this.page.context().browser()?.close();
    }
  }

  /** Both pictures, `dark-NAME.png` and `light-NAME.png`. */
  async screenshots(name: string): Promise<void> {
    await this.page.mouse.move(SIZE.width / 2, SIZE.height / 2); // over nothing that lights up
    await this.screenshot(`dark-${name}`);
    await this.theme("light");
    await this.screenshot(`light-${name}`);
    await this.theme("dark");
  }

  /** VS Code follows the system's colours here. */
  private async theme(theme: keyof typeof THEMES): Promise<void> {
    await this.page.emulateMedia({ colorScheme: theme });
    await this.see(`the ${theme} theme`, this.page.locator(THEMES[theme]));
  }
}
