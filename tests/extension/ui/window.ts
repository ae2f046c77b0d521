/** One browser window with VS Code in it: bounded waits, commands, quick picks, notifications, pictures. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Locator, Page } from "playwright-core";

import { ROOT } from "./harness.js";

/** How long anything on the page may take before a test gives up. */
export const WAIT_MS = 20_000;
/** The same where a job starts first: interpreters, torch, Ray. */
export const JOB_MS = 60_000;
const POLL_MS = 40;
const PALETTE_MS = 4_000;
const CLICK_MS = 2_000;
const PAINT_MS = 3_000;

/** VS Code writes no-break spaces where a person reads spaces. */
export function plain(text: string): string {
  return text.replaceAll("\u00a0", " ").replaceAll("\u200b", "").trim();
}

export class Window {
  constructor(readonly page: Page) {}

  /**
   * The first result of `probe` that is neither false nor undefined. Fails after `ms` with what was awaited, what
   * `probe` saw last, and the text of the page's part that `where` selects.
   */
  async until<T>(what: string, probe: () => Promise<T | false | undefined>, where = "", ms = WAIT_MS): Promise<T> {
    const deadline = performance.now() + ms;
    let fault = "";
    while (performance.now() < deadline) {
      try {
        const found = await probe();
        if (found !== false && found !== undefined) return found;
        fault = "";
      } catch (error) {
        if (this.page.isClosed()) throw error;
        fault = error instanceof Error ? error.message.split("\n", 1).join() : String(error);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    throw new Error(
      `waited ${Math.round(ms / 1000)} s for ${what}${fault && ` (${fault})`}\n${await this.describe(where)}`,
    );
  }

  /** What the page shows, for the message of an error. */
  private async describe(where: string): Promise<string> {
    const parts: [string, string][] = [
      ...(where ? [["there", where] as [string, string]] : []),
      ["notifications", ".notifications-toasts"],
      ["dialog", ".monaco-dialog-box"],
      ["call stack", ".debug-call-stack"],
      ["ranks", RANKS_PANE],
      ["console", ".repl .monaco-list"],
      ["terminal", ".terminal-outer-container .xterm-accessibility-tree, .xterm-rows"],
    ];
    const lines: string[] = [];
    for (const [name, selector] of parts) {
      const texts = await this.page.locator(selector).allInnerTexts();
      const text = plain(texts.join(" | ").replaceAll(/\s*\n\s*/g, " / "));
      if (text) lines.push(`  ${name}: ${text.slice(0, 1500)}`);
    }
    return lines.join("\n");
  }

  /** Wait until an element is there. */
  async see(what: string, locator: Locator, ms = WAIT_MS): Promise<Locator> {
    await this.until(what, async () => (await locator.count()) > 0 && (await locator.first().isVisible()), "", ms);
    return locator.first();
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Run a command by its title in the palette, as soon as it is offered: the palette lists what was so when it opened. */
  async command(title: string): Promise<void> {
    await this.until(
      `the command '${title}'`,
      async () => {
        await this.press("Escape", "F1");
        return this.pick(title, `>${title}`, PALETTE_MS).then(() => true);
      },
      QUICK_INPUT,
    );
  }

  /** Choose the row with this label in the quick pick, after typing a filter. */
  async pick(label: string | RegExp, filter?: string, ms = WAIT_MS): Promise<void> {
    if (filter !== undefined) await this.type(filter);
    const row = this.page.locator(`${QUICK_INPUT} .monaco-list-row`);
    await this.until(
      `${label} in the quick pick`,
      async () => {
        const labels = (await row.locator(ROW_LABEL).allInnerTexts()).map(plain);
        const at = labels.findIndex((text) => (typeof label === "string" ? text === label : label.test(text)));
        if (at < 0) return false;
        await row.nth(at).click({ timeout: CLICK_MS });
        return true;
      },
      QUICK_INPUT,
      ms,
    );
  }

  /** Tick rows of a quick pick that takes several, and accept. */
  async tick(...labels: (string | RegExp)[]): Promise<void> {
    for (const label of labels) await this.pick(label);
    await this.page.locator(`${QUICK_INPUT} .quick-input-action .monaco-button`, { hasText: "OK" }).click();
  }

  /** The rows of the open quick pick. */
  async pickRows(): Promise<string[]> {
    await this.see("a quick pick", this.page.locator(`${QUICK_INPUT} .monaco-list-row`));
    const rows = await this.page.locator(`${QUICK_INPUT} .monaco-list-row`).allInnerTexts();
    return rows.map((text) => plain(text.replaceAll("\n", " ")));
  }

  /** Type into the open quick input. */
  async type(text: string): Promise<void> {
    const input = this.page.locator(`${QUICK_INPUT} .quick-input-box input`);
    await this.see("the quick input", input);
    await input.fill(text);
  }

  /** The notification whose sentence matches; it stays until it is closed. */
  async notification(sentence: RegExp, ms = WAIT_MS): Promise<{ text: string; buttons: string[] }> {
    const toasts = this.page.locator(TOAST);
    return this.until(
      `a notification ${sentence}`,
      async () => {
        for (const toast of await toasts.all()) {
          const text = plain(await toast.locator(".notification-list-item-message").innerText());
          if (!sentence.test(text)) continue;
          const buttons = await toast
            .locator(".notification-list-item-buttons-container .monaco-button")
            .allInnerTexts();
          return { text, buttons: buttons.map(plain) };
        }
        return undefined;
      },
      ".notifications-toasts",
      ms,
    );
  }

  /** Press a button of the notification whose sentence matches. */
  async answerNotification(sentence: RegExp, button: string): Promise<void> {
    await this.notification(sentence);
    const toast = this.page.locator(TOAST).filter({ hasText: sentence }).first();
    await toast.locator(".monaco-button", { hasText: button }).click();
  }

  /** A modal dialog, as VS Code shows an error at F5. */
  async dialog(sentence: RegExp, ms = WAIT_MS): Promise<{ text: string; buttons: string[] }> {
    const box = this.page.locator(".monaco-dialog-box");
    return this.until(
      `a dialog ${sentence}`,
      async () => {
        if ((await box.count()) === 0) return undefined;
        const text = plain((await box.locator(".dialog-message-container").innerText()).replaceAll(/\s+/g, " "));
        if (!sentence.test(text)) return undefined;
        const buttons = await box.locator(".dialog-buttons .monaco-button").allInnerTexts();
        return { text, buttons: buttons.map(plain).filter(Boolean) };
      },
      ".monaco-dialog-box",
      ms,
    );
  }

  async answerDialog(button: string): Promise<void> {
    await this.page.locator(".monaco-dialog-box .dialog-buttons .monaco-button", { hasText: button }).first().click();
    await this.until("the dialog to close", async () => (await this.page.locator(".monaco-dialog-box").count()) === 0);
  }

  /** Whether the page is drawn: a browser whose compositor hangs shows no change any more, and takes no click. */
  async paints(): Promise<boolean> {
    const drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
    return Promise.race([
      this.page.evaluate<boolean>(drawn).catch(() => false),
      new Promise<boolean>((resolve) => setTimeout(resolve, PAINT_MS, false)),
    ]);
  }

  /** A picture of the window, kept as `.build/screenshots/<name>.png`. */
  async screenshot(name: string): Promise<void> {
    const folder = join(ROOT, ".build", "screenshots");
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }
}

export const RANKS_PANE = ".pane:has(> .pane-header[aria-label^='Ranks'])";
export const QUICK_INPUT = ".quick-input-widget";
const ROW_LABEL = ".quick-input-list-rows > .quick-input-list-row:first-child .label-name";
const TOAST = ".notifications-toasts .notification-toast";
