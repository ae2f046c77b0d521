/** A Python file in the editor, its lines by their `# @bp name` marks, and what is left of them. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Locator } from "playwright-core";

import { plain, type Window } from "./window.js";

export class SourceEditor {
  constructor(
    private readonly window: Window,
    private readonly workspace: string,
  ) {}

  /** Open a file of the workspace's top folder, by the explorer. */
  async open(file: string): Promise<void> {
    await this.window.press("Control+Shift+e");
    const row = this.window.page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${file}"]`);
    await (await this.window.see(`${file} in the explorer`, row)).dblclick();
    await this.window.see(
      `${file} in the editor`,
      this.window.page.locator(`.tab.active[data-resource-name="${file}"]`),
    );
    await this.window.see("its text", this.window.page.locator(".monaco-editor .view-line"));
  }

  /** The number of the line with the mark, from 1. */
  line(file: string, mark: string): number {
    const lines = readFileSync(join(this.workspace, file), "utf8").split("\n");
    const at = lines.findIndex((text) => text.endsWith(`# @bp ${mark}`));
    if (at < 0) throw new Error(`${file} has no mark '${mark}'`);
    return at + 1;
  }

  /** Bring a marked line of the open file into view, and put the cursor there. */
  async reveal(file: string, mark: string): Promise<Locator> {
    const line = this.line(file, mark);
    await this.window.press("Control+g");
    await this.window.type(`:${line}`);
    await this.window.press("Enter");
    return this.window.see(`line ${line} in view`, this.lineNumber(line));
  }

  /** Click beside a marked line: there is a breakpoint then. */
  async addBreakpoint(file: string, mark: string): Promise<void> {
    await this.reveal(file, mark);
    const line = this.line(file, mark);
    const { x, y } = await this.glyphPoint(line);
    await this.window.until(`the hint that a click beside line ${line} sets a breakpoint`, async () => {
      await this.window.page.mouse.move(x + 200, y + 60);
      await this.window.page.mouse.move(x, y);
      return (await this.glyphs(line)).some((glyph) => glyph.includes("codicon-debug-hint"));
    });
    await this.window.page.mouse.click(x, y);
    await this.seeBreakpoint(file, mark);
  }

  /** Click the breakpoint of a marked line: it is gone then. */
  async removeBreakpoint(file: string, mark: string): Promise<void> {
    await this.reveal(file, mark);
    const { x, y } = await this.glyphPoint(this.line(file, mark));
    await this.window.page.mouse.click(x, y);
    await this.seeNoBreakpoint(file, mark);
  }

  /** A breakpoint that is limited to ranks, by "Limit to Ranks…" in the menu of the line's number and a typed set. */
  async limit(file: string, mark: string, ranks: string): Promise<void> {
    await this.openLineMenu(file, mark);
    await this.chooseFromMenu("Limit to Ranks…");
    const row = this.window.page.locator(".quick-input-widget .monaco-list-row", { hasText: "Type a rank set" });
    const box = this.window.page.locator('.quick-input-widget input[placeholder="0,3-5"]');
    await this.window.until("the box for a rank set", async () => {
      if (await row.isVisible()) await row.click({ timeout: 1000 });
      return box.isVisible();
    });
    await box.fill(ranks);
    await this.window.press("Enter");
    await this.seeText(file, mark, new RegExp(`@${ranks}`));
  }

  /** The breakpoint that is drawn beside a line, else where a click makes one. */
  private async glyphPoint(line: number): Promise<{ x: number; y: number }> {
    const drawn = await this.window.page.evaluate<{ x: number; y: number } | null>(
      `(${BREAKPOINT_AT})(${(await this.lineNumber(line).boundingBox())?.y ?? -1})`,
    );
    if (drawn !== null) return drawn;
    const number = await this.lineNumber(line).boundingBox();
    const margin = await this.window.page.locator(".editor-instance .glyph-margin").first().boundingBox();
    if (number === null || margin === null) throw new Error(`line ${line} is not in view`);
    return { x: margin.x + Math.min(9, margin.width / 2), y: number.y + number.height / 2 };
  }

  /** The entries of the menu that a right click on the line's number opens. */
  async openLineMenu(file: string, mark: string): Promise<string[]> {
    const number = await this.reveal(file, mark);
    await number.click({ button: "right" });
    const items = this.window.page.locator(`${MENU} .action-item .action-label:not(.separator)`);
    await this.window.see("the line's menu", items);
    return (await items.allInnerTexts()).map(plain);
  }

  /** Choose from the open menu. VS Code takes no click in a menu's first moments: then once more. */
  async chooseFromMenu(entry: string): Promise<void> {
    const menu = this.window.page.locator(MENU).first();
    const item = this.window.page.locator(`${MENU} .action-menu-item`, { hasText: entry });
    await this.window.see(`'${entry}' in the menu`, item);
    await this.window.until("the menu to take the click", async () => {
      if (await menu.isVisible()) await item.click({ timeout: 1000 });
      return !(await menu.isVisible());
    });
  }

  /** Wait for a breakpoint at a line, whose icon says what it is (`codicon-debug-breakpoint` and the like). */
  async seeBreakpoint(file: string, mark: string, icon = /codicon-debug-breakpoint/): Promise<string> {
    const line = this.line(file, mark);
    return this.window.until(`a breakpoint ${icon} at '${mark}'`, async () =>
      (await this.glyphs(line)).find((glyph) => icon.test(glyph)),
    );
  }

  /** Wait until a line has no breakpoint. */
  async seeNoBreakpoint(file: string, mark: string): Promise<void> {
    const line = this.line(file, mark);
    await this.window.until(
      `no breakpoint at '${mark}'`,
      async () => !(await this.glyphs(line)).some((glyph) => glyph.includes("codicon-debug-breakpoint")),
    );
  }

  /** The classes of what is drawn in the margin beside a line. */
  async glyphs(line: number): Promise<string[]> {
    const box = await this.lineNumber(line).boundingBox();
    return box === null ? [] : this.window.page.evaluate<string[]>(`(${GLYPHS_AT})(${box.y})`);
  }

  /** What is written on a line: its own text, then what decorations add. */
  async textOf(file: string, mark: string): Promise<string> {
    const box = await this.lineNumber(this.line(file, mark)).boundingBox();
    return box === null ? "" : plain(await this.window.page.evaluate<string>(`(${TEXT_AT})(${box.y})`));
  }

  /** Wait until a decoration adds this to a line's text. */
  async seeText(file: string, mark: string, text: RegExp): Promise<string> {
    const probe = async (): Promise<string> => {
      const written = await this.textOf(file, mark);
      if (!text.test(written)) throw new Error(`it reads: ${written}`);
      return written;
    };
    return this.window.until(`${text} behind '${mark}'`, probe);
  }

  /** Fill in the widget that asks for a breakpoint's condition or message, and accept. */
  async fillBreakpointWidget(text: string): Promise<void> {
    const input = this.window.page.locator(".breakpoint-widget .inputContainer .monaco-editor");
    await (await this.window.see("the breakpoint's widget", input)).click();
    await this.window.page.keyboard.type(text);
    await this.window.press("Enter");
  }

  /**
   * The hover at the end of a line, where its ranks are written, by the keyboard: under the mouse VS Code shows values
   * of variables while a rank is stopped in the file, unless Alt is held.
   */
  async hover(file: string, mark: string): Promise<string> {
    await this.reveal(file, mark);
    await this.window.press("End", "ArrowLeft");
    await this.window.press("Control+k", "Control+i");
    const hover = this.window.page.locator(".monaco-hover:visible");
    const said = await this.window.until("a hover", async () => {
      const text = plain((await hover.allInnerTexts()).join("\n"));
      return text.includes("Breakpoint") ? text : undefined;
    });
    await this.window.press("Escape");
    return said;
  }

  private lineNumber(line: number): Locator {
    return this.window.page.locator(".editor-instance .line-numbers").getByText(String(line), { exact: true }).first();
  }
}

const MENU = ".monaco-menu-container";

// Run in the page, at the height of a line.
const GLYPHS_AT = `(top) =>
  [...document.querySelectorAll(".editor-instance .glyph-margin-widgets > *, .editor-instance .margin .cgmr")]
    .filter((glyph) => Math.abs(glyph.getBoundingClientRect().top - top) < 4)
    .map((glyph) => glyph.className)`;
const BREAKPOINT_AT = `(top) => {
  const glyphs = [...document.querySelectorAll(".editor-instance .glyph-margin-widgets [class*=codicon-debug]")]
    .map((glyph) => glyph.getBoundingClientRect())
    .filter((box) => Math.abs(box.top - top) < 4);
  return glyphs.length === 0 ? null : { x: glyphs[0].x + glyphs[0].width / 2, y: glyphs[0].y + glyphs[0].height / 2 };
}`;
const TEXT_AT = `(top) => {
  const line = [...document.querySelectorAll(".editor-instance .view-lines .view-line")]
    .find((candidate) => Math.abs(candidate.getBoundingClientRect().top - top) < 4);
  if (!line) return "";
  const added = [...line.querySelectorAll("*")].flatMap((part) =>
    ["::before", "::after"].map((side) => getComputedStyle(part, side).content).filter((text) => text.startsWith('"')));
  return [line.textContent, ...added.map((text) => JSON.parse(text))].join(" ");
}`;
