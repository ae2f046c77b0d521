/** A window on the sample workspace, for one scenario; nothing in it is known from another one. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser } from "playwright-core";

import { Debugging } from "./debugging.js";
import { harness, type Harness } from "./harness.js";
import { Ranks } from "./ranks.js";
import { SourceEditor } from "./sourceEditor.js";
import { Window } from "./window.js";

const SIZE = { width: 1400, height: 900 };
const THEMES = { dark: "Default Dark Modern", light: "Default Light Modern" } as const;

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
    const context = await browser.newContext({ viewport: SIZE, deviceScaleFactor: 1 });
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
    await this.screenshot(`dark-${name}`);
    await this.theme("light");
    await this.screenshot(`light-${name}`);
    await this.theme("dark");
  }

  private async theme(theme: keyof typeof THEMES): Promise<void> {
    const file = join(this.harness.userData, "User", "settings.json");
    const settings = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    writeFileSync(file, JSON.stringify({ ...settings, "workbench.colorTheme": THEMES[theme] }, undefined, 2));
    const mark = theme === "dark" ? ".monaco-workbench.vs-dark" : ".monaco-workbench.vs";
    await this.see(`the ${theme} theme`, this.page.locator(mark));
  }
}
