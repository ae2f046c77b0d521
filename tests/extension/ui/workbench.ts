/** A window on the sample workspace, for one scenario; nothing in it is known from another one. */

import type { Browser } from "playwright-core";

import { Debugging } from "./debugging.js";
import { harness, type Harness } from "./harness.js";
import { Ranks } from "./ranks.js";
import { SourceEditor } from "./sourceEditor.js";
import { Window } from "./window.js";

const SIZE = { width: 1400, height: 900 };
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

  /** A new window of a person whom the browser has never seen. The caller closes it. */
  static async open(browser: Browser, at: Harness = harness(), { trust = true } = {}): Promise<Workbench> {
    const context = await browser.newContext({ viewport: SIZE, colorScheme: "dark" });
    const page = await context.newPage();
    const workbench = new Workbench(page, at);
    try {
      await page.goto(at.url, { waitUntil: "commit" });
      await workbench.dialog(/trust the authors/);
      await workbench.answerDialog(trust ? "Yes, I trust the authors" : "No, I don't trust the authors");
      await workbench.see("the explorer", page.locator(".explorer-folders-view .monaco-list-row"));
    } catch (error) {
      await context.close();
      throw error;
    }
    return workbench;
  }

  get workspace(): string {
    return this.harness.workspace;
  }

  /** Ends the window, and with it its extension host: going to another page lets VS Code say good-bye. */
  async close(): Promise<void> {
    await this.page.goto("about:blank");
    await this.page.context().close();
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
