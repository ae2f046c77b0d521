/** Run and Debug in VS Code's window: start, toolbar, call stack, variables, console. */

import type { Locator } from "playwright-core";

import { JOB_MS, plain, WAIT_MS, type Window } from "./window.js";

/** Where a section's header has no buttons. */
const ON_THE_TITLE = { x: 30, y: 10 };

export type Button = "Continue" | "Pause" | "Step Over" | "Step Into" | "Step Out" | "Restart" | "Stop" | "Disconnect";

/** One row of the call stack: a session, a thread or a frame. */
export interface StackRow {
  readonly text: string;
  readonly isSelected: boolean;
}

export class Debugging {
  constructor(private readonly window: Window) {}

  private get page() {
    return this.window.page;
  }

  /** Show Run and Debug, with room for what the tests look at. */
  async show(): Promise<void> {
    await this.window.press("Control+Shift+d");
    await this.window.see("Run and Debug", this.page.locator(".debug-viewlet, .debug-pane, .pane-header").first());
  }

  /** Close or open sections of Run and Debug. */
  async fold(...names: string[]): Promise<void> {
    for (const name of names) {
      const header = this.page.locator(`.sidebar .pane-header[aria-label^="${name}"]`);
      if ((await header.getAttribute("aria-expanded")) === "true") await header.click({ position: ON_THE_TITLE });
    }
  }

  /** Make the side bar wider. */
  async widen(pixels = 90): Promise<void> {
    const box = await this.page.locator(".part.sidebar").boundingBox();
    if (box === null) throw new Error("there is no side bar");
    const [x, y] = [box.x + box.width, box.y + box.height / 2];
    await this.page.mouse.move(x, y);
    await this.page.mouse.down();
    await this.page.mouse.move(x + pixels, y, { steps: 4 });
    await this.page.mouse.up();
  }

  /** Choose a launch configuration by name. */
  async choose(name: string): Promise<void> {
    await this.window.press("Control+Shift+d");
    const choice = this.page.locator(".start-debug-action-item select");
    await this.window.see("the choice of configurations", choice);
    await this.window.until(`the configuration '${name}'`, async () =>
      (await choice.locator("option").allInnerTexts()).map(plain).includes(name),
    );
    await choice.selectOption(name);
  }

  /** Choose a launch configuration by name, and press F5. */
  async start(name: string): Promise<void> {
    await this.choose(name);
    await this.pressF5();
  }

  /**
   * Press F5 until it is taken: VS Code ignores the key while it still reads what extensions contribute. A progress bar may
   * be another's, so a session, or a word about it, has to follow.
   */
  async pressF5(): Promise<void> {
    await this.page.evaluate(WATCH_PROGRESS);
    const sign = this.page.locator(SIGNS_OF_A_START).first();
    await this.window.until(
      "F5 to be taken",
      async () => {
        await this.window.press("F5");
        const hasBegun = await holds(this.page.waitForFunction("window.debugHasBegun", undefined, { timeout: F5_MS }));
        return holds(sign.waitFor({ state: "visible", timeout: hasBegun ? START_MS : F5_MS }));
      },
      "",
      JOB_MS,
    );
  }

  /** Press a button of the debug toolbar. */
  async press(button: Button): Promise<void> {
    const action = this.page.locator(`.debug-toolbar a.action-label[aria-label^="${button}"]`).first();
    await (await this.window.see(`the button ${button}`, action)).click();
  }

  /** Wait until no debug session is left. */
  async ended(ms = JOB_MS): Promise<void> {
    await this.window.until(
      "the debug session to end",
      async () => (await this.page.locator(".debug-toolbar:visible").count()) === 0,
      ".debug-call-stack",
      ms,
    );
  }

  async stackRows(): Promise<StackRow[]> {
    const rows: StackRow[] = [];
    for (const row of await this.page.locator(STACK_ROW).all()) {
      const text = plain((await row.innerText()).replaceAll(/\s*\n\s*/g, " "));
      rows.push({ text, isSelected: /\b(selected|focused)\b/.test((await row.getAttribute("class")) ?? "") });
    }
    return rows;
  }

  /** Wait for a row of the call stack. */
  async seeStack(text: RegExp, ms = JOB_MS): Promise<string> {
    return this.window.until(
      `the call stack to show ${text}`,
      async () => (await this.stackRows()).find((row) => text.test(row.text))?.text,
      "",
      ms,
    );
  }

  async selectStack(text: RegExp): Promise<void> {
    await this.page.locator(STACK_ROW).filter({ hasText: text }).first().click();
  }

  /** Wait until the debugger stands at a line, and the editor shows it. */
  async stoppedAt(file: string, line: number, ms = JOB_MS): Promise<void> {
    const tab = this.page.locator(`.tab.active[data-resource-name="${file}"]`);
    const marker = this.page.locator(
      ".editor-instance .debug-top-stack-frame-line, .editor-instance .debug-focused-stack-frame-line",
    );
    await this.window.until(
      `a stop at ${file}:${line}`,
      async () => {
        if ((await tab.count()) === 0 || (await marker.count()) === 0) return false;
        const box = await marker.first().boundingBox();
        const number = await this.page
          .locator(".editor-instance .line-numbers")
          .getByText(String(line), { exact: true })
          .first()
          .boundingBox();
        return box !== null && number !== null && Math.abs(box.y - number.y) < 4;
      },
      "",
      ms,
    );
  }

  /** The value of a variable as the Variables section shows it. */
  async variable(name: string): Promise<string> {
    const value = this.variableRow(name).locator(".value");
    return this.window.until(
      `the variable ${name}`,
      async () => plain(await value.innerText({ timeout: 500 })) || undefined,
      ".debug-variables",
    );
  }

  /** Unfold a variable in the Variables section. */
  async unfold(name: string): Promise<void> {
    await this.variableRow(name).locator(".monaco-tl-twistie").click();
  }

  private variableRow(name: string): Locator {
    const literal = name.replaceAll(/[[\]]/g, String.raw`\$&`);
    const label = this.page.locator(".expression .name", { hasText: new RegExp(String.raw`^${literal}(?!\w)`) });
    return this.page.locator(".debug-variables .monaco-list-row").filter({ has: label }).first();
  }

  /** Choose an entry of the menu of a variable. */
  async openVariableMenu(name: string, entry: string): Promise<void> {
    const row = this.page.locator(".debug-variables .monaco-list-row").filter({
      has: this.page.locator(".expression .name", { hasText: new RegExp(`^${name}\\b`) }),
    });
    const item = this.page.locator(".monaco-menu .action-item", { hasText: entry }).first();
    // a menu does not take a click that comes right after it has opened
    await this.window.until(`'${entry}' of ${name}`, async () => {
      if (!(await item.isVisible())) await row.first().click({ button: "right", timeout: 1000 });
      await item.click({ timeout: 1000 });
      return !(await item.isVisible());
    });
  }

  /** Wait for a line of the debug console. */
  async console(text: RegExp, ms = JOB_MS): Promise<string> {
    const lines = this.page.locator(".repl .monaco-list-row");
    return this.window.until(
      `the debug console to show ${text}`,
      async () => (await lines.allInnerTexts()).map(plain).find((line) => text.test(line)),
      ".repl",
      ms,
    );
  }

  /** Show the debug console instead of the terminal. */
  async showConsole(): Promise<void> {
    await this.window.press("Control+Shift+y");
    await this.window.see("the debug console", this.page.locator(".repl .monaco-list"));
  }

  /** Evaluate in the debug console, as a person types it. */
  async evaluate(expression: string): Promise<void> {
    const input = this.page.locator(".repl-input-wrapper .monaco-editor");
    await (await this.window.see("the console's input", input)).click();
    await this.page.keyboard.type(expression);
    await this.window.press("Enter");
  }

  /** Wait for text in the integrated terminal. */
  async terminal(text: RegExp, ms = JOB_MS): Promise<void> {
    const rows = this.page.locator(".xterm-rows");
    if (!(await rows.first().isVisible())) await this.window.press("Control+`");
    await this.window.until(
      `the terminal to show ${text}`,
      async () => text.test(plain((await rows.allInnerTexts()).join("\n"))),
      ".xterm-rows",
      ms,
    );
  }

  locator(selector: string): Locator {
    return this.page.locator(selector);
  }

  /** Wait until a toolbar button is there, which says that something runs or stands. */
  async seeButton(button: Button, ms = WAIT_MS): Promise<void> {
    await this.window.see(`the button ${button}`, this.page.locator(`.debug-toolbar a[aria-label^="${button}"]`), ms);
  }
}

const F5_MS = 2000;
const START_MS = 10_000;

/** In the page: Run and Debug shows its progress as soon as a start has begun, whatever becomes of it. */
const SIGNS_OF_A_START = ".debug-toolbar:visible, .notification-toast:visible, .monaco-dialog-box:visible";

/** Whether something that is awaited, within its own bound, comes. */
function holds(awaited: Promise<unknown>): Promise<boolean> {
  return awaited.then(
    () => true,
    () => false,
  );
}

const WATCH_PROGRESS = `(() => {
  window.debugHasBegun = false;
  const observer = new MutationObserver((changes) => {
    if (!changes.some(({ target }) => target.matches(".monaco-progress-container.active"))) return;
    window.debugHasBegun = true;
    observer.disconnect();
  });
  observer.observe(document.querySelector(".part.sidebar"), { subtree: true, attributeFilter: ["class"] });
})()`;

const STACK_ROW = ".debug-call-stack .monaco-list-row";
