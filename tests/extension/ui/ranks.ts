/** The Ranks view as a person reads it. */

import type { Locator } from "playwright-core";

import { JOB_MS, plain, RANKS_PANE, type Window } from "./window.js";

export interface RankRow {
  readonly label: string;
  /** What stands behind the label: state and place. */
  readonly description: string;
  /** What a screen reader says. */
  readonly spoken: string;
}

export class Ranks {
  constructor(private readonly window: Window) {}

  private get rows(): Locator {
    return this.window.page.locator(`${RANKS_PANE} .monaco-list-row`);
  }

  /** Unfold the view, where a person or a small window has folded it. */
  async unfold(): Promise<void> {
    const header = this.window.page.locator(`${RANKS_PANE} > .pane-header`);
    await this.window.see("the Ranks view", header);
    if ((await header.getAttribute("aria-expanded")) === "false") await header.click();
  }

  /** Drag the upper edge of the view: rows that are out of sight are not on the page. */
  async enlarge(pixels = 120): Promise<void> {
    await this.unfold();
    const box = await this.window.page.locator(RANKS_PANE).boundingBox();
    if (box === null) throw new Error("there is no Ranks view");
    const x = box.x + box.width / 2;
    await this.window.page.mouse.move(x, box.y);
    await this.window.page.mouse.down();
    await this.window.page.mouse.move(x, box.y - pixels, { steps: 4 });
    await this.window.page.mouse.up();
  }

  async all(): Promise<RankRow[]> {
    const rows: RankRow[] = [];
    for (const row of await this.rows.all()) {
      const label = await row.locator(".label-name").first().innerText({ timeout: 1000 });
      const description = (await row.locator(".label-description").allInnerTexts()).join(" ");
      const spoken = (await row.getAttribute("aria-label")) ?? "";
      rows.push({ label: plain(label), description: plain(description), spoken: plain(spoken) });
    }
    return rows;
  }

  /** Wait for a row whose label and description match. */
  async see(label: RegExp, description: RegExp, ms = JOB_MS): Promise<RankRow> {
    await this.unfold();
    return this.window.until(
      `the rank ${label} to be ${description}`,
      async () => (await this.all()).find((row) => label.test(row.label) && description.test(row.description)),
      RANKS_PANE,
      ms,
    );
  }

  /** Wait for the summary of a job: `4 ranks: 1 paused, 3 in all_reduce`. */
  async summary(text: RegExp, ms = JOB_MS): Promise<string> {
    await this.unfold();
    return this.window.until(
      `a summary ${text}`,
      async () => {
        const lines = await this.window.page.locator(`${RANKS_PANE} .pane-header`).allInnerTexts();
        return lines.map(plain).find((line) => text.test(line));
      },
      RANKS_PANE,
      ms,
    );
  }

  async click(label: RegExp): Promise<void> {
    await this.rows.filter({ hasText: label }).first().click();
  }

  /** Press an inline button of a row. */
  async press(label: RegExp, button: string): Promise<void> {
    const row = this.rows.filter({ hasText: label }).first();
    await row.hover();
    await row.locator(`.action-label[aria-label^="${button}"]`).click();
  }

  /** What the view says when there is no job. */
  async welcome(): Promise<string> {
    await this.unfold();
    const view = this.window.page.locator(`${RANKS_PANE} .welcome-view-content`);
    return plain(await (await this.window.see("the welcome text", view)).innerText());
  }
}
