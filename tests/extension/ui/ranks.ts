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

  /** Unfold the view, where a person, a small window or VS Code at the start of a job has folded it. */
  async unfold(): Promise<void> {
    const header = this.window.page.locator(`${RANKS_PANE} > .pane-header`);
    await this.window.see("the Ranks view", header);
    if ((await header.getAttribute("aria-expanded")) === "true") return;
    // at its left: in the middle there may be a button
    await header.click({ position: { x: 30, y: 8 } });
    await this.window.until("the Ranks view to unfold", async () => {
      return (await header.getAttribute("aria-expanded")) === "true";
    });
  }

  /** What `probe` finds in the unfolded view. */
  private async find<T>(what: string, probe: () => Promise<T | undefined>, ms: number): Promise<T> {
    const unfolded = async (): Promise<T | undefined> => {
      await this.unfold();
      return probe();
    };
    return this.window.until(what, unfolded, RANKS_PANE, ms);
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
    return this.find(
      `the rank ${label} to be ${description}`,
      async () => (await this.all()).find((row) => label.test(row.label) && description.test(row.description)),
      ms,
    );
  }

  /** Wait for the summary of a job: `4 ranks: 1 paused, 3 in all_reduce`. */
  async summary(text: RegExp, ms = JOB_MS): Promise<string> {
    return this.find(
      `a summary ${text}`,
      async () => {
        const lines = await this.window.page.locator(`${RANKS_PANE} .pane-header`).allInnerTexts();
        return lines.map(plain).find((line) => text.test(line));
      },
      ms,
    );
  }

  /** Wait for the line between the title and the rows. */
  async message(text: RegExp, ms = JOB_MS): Promise<string> {
    return this.find(
      `a message ${text}`,
      async () => {
        const lines = await this.window.page.locator(`${RANKS_PANE} .message`).allInnerTexts();
        return lines.map(plain).find((line) => text.test(line));
      },
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

  /** Press a button of the view's title, which shows them under the mouse. */
  async pressTitle(button: string): Promise<void> {
    await this.unfold();
    const header = this.window.page.locator(`${RANKS_PANE} > .pane-header`);
    await header.hover();
    await header.locator(`.action-label[aria-label^="${button}"]`).click();
  }

  /** Open a row's menu. */
  async openMenu(label: RegExp): Promise<void> {
    await this.rows.filter({ hasText: label }).first().click({ button: "right" });
  }

  /** What the view says when there is no job. */
  async welcome(): Promise<string> {
    await this.unfold();
    const view = this.window.page.locator(`${RANKS_PANE} .welcome-view-content`);
    return plain(await (await this.window.see("the welcome text", view)).innerText());
  }
}
