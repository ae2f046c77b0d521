/** A section of Run and Debug that is one of ours, as a person reads and clicks it. */

import type { Locator } from "playwright-core";

import { JOB_MS, plain, type Window } from "./window.js";

export class Pane {
  private readonly selector: string;

  constructor(
    private readonly window: Window,
    name: string,
  ) {
    this.selector = `.pane:has(> .pane-header[aria-label^='${name}'])`;
  }

  private get rows(): Locator {
    return this.window.page.locator(`${this.selector} .monaco-list-row`);
  }

  private get header(): Locator {
    return this.window.page.locator(`${this.selector} > .pane-header`);
  }

  async unfold(): Promise<void> {
    const header = await this.window.see("the section", this.header, JOB_MS);
    // at its left: in the middle there may be a button
    if ((await header.getAttribute("aria-expanded")) === "false") await header.click({ position: { x: 30, y: 8 } });
  }

  /** Wait for a row, or the message above the rows, that reads so; resolves to all of it. */
  async see(text: RegExp, ms = JOB_MS): Promise<string> {
    const message = this.window.page.locator(`${this.selector} .message`);
    return this.window.until(
      `the section to show ${text}`,
      async () => {
        const lines = (await message.allInnerTexts()).map(oneLine);
        for (const row of await this.rows.all()) {
          const parts = await row.locator(".label-name, .label-description").allInnerTexts();
          lines.push(parts.map(oneLine).join(" "));
        }
        return lines.find((line) => text.test(line));
      },
      this.selector,
      ms,
    );
  }

  /** Wait for what stands beside the title. */
  async summary(text: RegExp): Promise<void> {
    await this.window.until(`the title to say ${text}`, async () => text.test(oneLine(await this.header.innerText())));
  }

  async click(text: RegExp): Promise<void> {
    await this.rows.filter({ hasText: text }).first().click();
  }

  /** Press an inline button of a row. */
  async press(text: RegExp, button: string): Promise<void> {
    const row = this.rows.filter({ hasText: text }).first();
    await row.hover();
    await row.locator(`.action-label[aria-label^="${button}"]`).click();
  }

  /** Press a button beside the title. */
  async pressTitle(button: string): Promise<void> {
    await this.header.hover();
    await this.header.locator(`.action-label[aria-label^="${button}"]`).click();
  }
}

function oneLine(text: string): string {
  return plain(text.replaceAll(/\s*\n\s*/g, " "));
}
