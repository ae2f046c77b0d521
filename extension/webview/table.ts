/** A table of many rows of which only those in sight are on the page. Sorted by its heads, walked by keys. */

import { type Column, columnsOf, isSound, matching, sorted, usual } from "../src/core/compareTable.js";
import type { Comparison, CompareRow } from "../src/core/protocol.js";
import { button, element, fill } from "./dom.js";

const ROW = 24;
const SPARE_ROWS = 8;
const LEAST_CHARACTERS = 5;
const MOST_CHARACTERS = 48;
/** A head has a mark of its order. */
const MARK_CHARACTERS = 2;

export class Table {
  readonly element = element("div", {
    class: "grid code",
    attributes: { role: "grid", tabindex: 0, "aria-label": "Answers of the ranks" },
  });
  private readonly head = element("div", { class: "row head", attributes: { role: "row" } });
  private readonly body = element("div", { class: "rows", attributes: { role: "rowgroup" } });
  private columns: readonly Column[] = [];
  private usuals = new Map<Column, string | undefined>();
  private all: readonly CompareRow[] = [];
  private rows: readonly CompareRow[] = [];
  private order = { id: "rank", isDescending: false };
  private needle = "";
  private members: ReadonlySet<string> | undefined;
  private current = "";
  private template = "";

  /** `sifted` is told how many rows are shown. */
  constructor(
    private readonly open: (member: string) => void,
    private readonly sifted: (count: number) => void,
  ) {
    this.element.append(this.head, this.body);
    this.element.addEventListener("scroll", () => {
      this.draw();
    });
    this.element.addEventListener("keydown", (event) => {
      if (this.press(event.key)) event.preventDefault();
    });
    new ResizeObserver(() => {
      this.draw();
    }).observe(this.element);
  }

  show(answer: Comparison): void {
    this.columns = columnsOf(answer);
    this.all = answer.rows;
    this.usuals = new Map(this.columns.map((column) => [column, usual(answer.rows, column)]));
    this.template = this.columns.map((column) => `${this.widthOf(column)}ch`).join(" ");
    this.element.setAttribute("aria-colcount", String(this.columns.length));
    this.arrange();
  }

  /** Only rows with this text in one of their cells, and of these members; `undefined`: of all. */
  sift(needle: string, members: ReadonlySet<string> | undefined): void {
    this.needle = needle;
    this.members = members;
    this.element.scrollTop = 0;
    this.arrange();
  }

  /** Make a member's row the current one, in sight. */
  select(member: string): void {
    this.current = member;
    const at = this.rows.findIndex((row) => row.member === member);
    if (at >= 0) this.reveal(at);
    this.draw();
  }

  private arrange(): void {
    const column = this.columns.find(({ id }) => id === this.order.id) ?? this.columns[0];
    const { members } = this;
    const inGroup = members ? this.all.filter(({ member }) => members.has(member)) : this.all;
    const found = matching(inGroup, this.columns, this.needle);
    this.rows = column ? sorted(found, column, this.order.isDescending) : found;
    this.sifted(this.rows.length);
    this.element.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.drawHead();
    this.draw();
  }

  private widthOf(column: Column): number {
    let longest = column.title.length + MARK_CHARACTERS;
    for (const row of this.all) longest = Math.max(longest, column.text(row).length);
    return Math.min(MOST_CHARACTERS, Math.max(LEAST_CHARACTERS, longest)) + 2.5;
  }

  private drawHead(): void {
    this.head.style.gridTemplateColumns = this.template;
    fill(
      this.head,
      ...this.columns.map((column) => {
        const isOrder = column.id === this.order.id;
        const mark = isOrder ? (this.order.isDescending ? " ▾" : " ▴") : "";
        const made = button(column.title + mark, `Sort by ${column.title}`, () => {
          this.sortBy(column);
        });
        if (column.isNumeric) made.className = "number";
        made.setAttribute("role", "columnheader");
        const order = this.order.isDescending ? "descending" : "ascending";
        if (isOrder) made.setAttribute("aria-sort", order);
        return made;
      }),
    );
  }

  private sortBy({ id, isNumeric }: Column): void {
    const isAgain = id === this.order.id;
    this.order = { id, isDescending: isAgain ? !this.order.isDescending : isNumeric };
    this.arrange();
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - SPARE_ROWS);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW) + SPARE_ROWS);
    this.body.style.height = `${this.rows.length * ROW}px`;
    this.body.style.position = "relative";
    fill(this.body, ...this.rows.slice(first, last).map((row, at) => this.row(row, first + at)));
  }

  private row(row: CompareRow, at: number): HTMLElement {
    const isCurrent = row.member === this.current;
    const made = element(
      "div",
      {
        class: `row${isCurrent ? " is-current" : ""}`,
        attributes: { role: "row", "aria-rowindex": at + 2, "aria-selected": String(isCurrent) },
        on: {
          click: () => {
            this.current = row.member;
            this.open(row.member);
            this.draw();
          },
        },
      },
      ...this.columns.map((column) => this.cell(row, column)),
    );
    made.style.top = `${at * ROW}px`;
    made.style.gridTemplateColumns = this.template;
    return made;
  }

  private cell(row: CompareRow, column: Column): HTMLElement {
    const text = column.text(row);
    const most = this.usuals.get(column);
    const classes = [column.isNumeric ? "number" : "", isBadCell(row, column, text) ? "bad" : ""];
    const isOther = most !== undefined && text !== "" && text !== most;
    if (isOther || (column.id === "delta" && Number(row.delta?.max) > 0)) classes.push("differs");
    const attributes = { role: "gridcell" };
    return element("div", { class: classes.filter(Boolean).join(" "), title: text, text, attributes });
  }

  private press(key: string): boolean {
    const at = this.rows.findIndex(({ member }) => member === this.current);
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: this.rows.length - 1,
    };
    if (key === "Enter" && at >= 0) {
      this.open(this.current);
      return true;
    }
    const wanted = steps[key];
    if (wanted === undefined) return false;
    const next = this.rows[Math.min(this.rows.length - 1, Math.max(0, wanted))];
    if (next) this.select(next.member);
    return true;
  }

  private reveal(at: number): void {
    const { clientHeight, scrollTop } = this.element;
    const top = at * ROW;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + 2 * ROW > scrollTop + clientHeight) this.element.scrollTop = top + 2 * ROW - clientHeight;
  }
}

function isBadCell(row: CompareRow, { id, isNumeric }: Column, text: string): boolean {
  if (id === "nan" || id === "inf") return text !== "" && text !== "0";
  if (id === "answer") return row.kind === "error" || row.kind === "late" || !isSound(row);
  return isNumeric && /NaN|∞/.test(text);
}
