/** A comparison as a table: its columns, its order, and what is looked for. */

import type { Comparison, CompareRow, Numeric, TensorSummary } from "./protocol.js";

export interface Column {
  readonly id: string;
  readonly title: string;
  /** Numbers stand on the right. */
  readonly isNumeric: boolean;
  readonly text: (row: CompareRow) => string;
  /** For sorting: `undefined` comes last, whichever way. */
  readonly value: (row: CompareRow) => number | string | undefined;
  /** Whether a cell that differs from what most have is marked. */
  readonly isCompared: boolean;
}

/** `1.25e-7`, `NaN`, `∞`: six digits that mean something. */
export function numberText(value: Numeric | undefined): string {
  if (value === null || value === undefined) return "";
  const number = Number(value);
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return minus(String(number));
  return minus(String(Number(number.toPrecision(6))));
}

function minus(text: string): string {
  return text.startsWith("-") ? `−${text.slice(1)}` : text;
}

/** NaN and the infinities as what they are. */
export function numeric(value: Numeric | undefined): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

/** `4096×4096`, `scalar` for no dimension. */
export function shapeText(shape: readonly number[] | null | undefined): string {
  if (!shape) return "";
  return shape.length === 0 ? "scalar" : shape.join("×");
}

/** The answer in one cell. */
export function answerText(row: CompareRow): string {
  switch (row.kind) {
    case "late":
      return row.text || "no answer in time";
    case "running":
      return row.text || "it runs";
    case "error":
      return row.error ?? row.text;
    default:
      return row.text;
  }
}

/** Whether there is an answer, and nothing in it is NaN or infinite. */
export function isSound({ kind, value, tensor }: CompareRow): boolean {
  if (kind === "error" || kind === "late") return false;
  const number = numeric(value);
  if (kind === "number" && number !== undefined) return Number.isFinite(number);
  return !((tensor?.nan ?? 0) > 0 || (tensor?.inf ?? 0) > 0 || isUnsound(tensor?.mean));
}

function isUnsound(value: Numeric | undefined): boolean {
  const number = numeric(value);
  return number !== undefined && !Number.isFinite(number);
}

const NUMBERS = ["min", "max", "mean", "std", "norm", "nan", "inf"] as const;
const NUMBER_TITLES = {
  min: "min",
  max: "max",
  mean: "mean",
  std: "std",
  norm: "norm",
  nan: "NaN",
  inf: "Inf",
} as const;

/** The columns that this answer has something for. */
export function columnsOf({ rows }: Comparison): Column[] {
  const tensors = rows.flatMap(({ tensor }) => tensor ?? []);
  const has = (of: (tensor: TensorSummary) => unknown): boolean =>
    tensors.some((tensor) => of(tensor) !== undefined && of(tensor) !== null && of(tensor) !== "");
  const places = new Map(rows.map((row, at) => [row.member, at]));
  const columns: Column[] = [
    { ...textColumn("rank", "Rank", ({ label }) => label), value: ({ member }) => places.get(member) },
    textColumn("state", "State", ({ state }) => state),
  ];
  if (rows.some(({ delta }) => delta)) {
    columns.push(numberColumn("delta", "max |Δ|", ({ delta }) => delta?.max));
    columns.push(textColumn("where", "at", ({ delta }) => indexText(delta?.index)));
    columns.push(numberColumn("meanDelta", "mean |Δ|", ({ delta }) => delta?.mean));
    if (rows.some(({ delta }) => delta?.note)) {
      columns.push(textColumn("deltaNote", "Δ note", ({ delta }) => delta?.note ?? ""));
    }
  }
  const hasOthers = rows.some(({ kind, tensor }) => kind !== "running" && !tensor);
  if (tensors.length === 0 || hasOthers) {
    columns.push({
      ...textColumn("answer", "Value", (row) => (row.tensor ? "" : answerText(row)), tensors.length === 0),
      value: (row) => (row.kind === "number" ? numeric(row.value) : answerText(row) || undefined),
      isNumeric: rows.some(({ kind }) => kind === "number") && rows.every(({ kind }) => kind !== "text"),
    });
  }
  const told = (id: string, title: string, of: (tensor: TensorSummary) => string): Column =>
    textColumn(id, title, ({ tensor }) => (tensor ? of(tensor) : ""), true);
  if (has(({ shape }) => shape)) columns.push(told("shape", "Shape", ({ shape }) => shapeText(shape)));
  if (has(({ dtype }) => dtype))
    columns.push(told("dtype", "Type", ({ dtype }) => (dtype ?? "").replace("torch.", "")));
  if (has(({ digest }) => digest)) columns.push(told("digest", "Digest", ({ digest }) => digestText(digest ?? "")));
  if (has(({ device }) => device))
    columns.push({ ...told("device", "Device", ({ device }) => device ?? ""), isCompared: false });
  if (has(({ placement }) => placement)) columns.push(told("placement", "Placement", placementText));
  for (const id of NUMBERS) {
    if (has((tensor) => tensor[id])) {
      columns.push(numberColumn(id, NUMBER_TITLES[id], ({ tensor }) => tensor?.[id]));
    }
  }
  if (has(({ note }) => note)) columns.push({ ...told("note", "Note", ({ note }) => note ?? ""), isCompared: false });
  if (tensors.length === 0) columns.push(textColumn("type", "Type", ({ type }) => type, true));
  return columns;
}

function textColumn(id: string, title: string, text: (row: CompareRow) => string, isCompared = false): Column {
  return { id, title, text, value: (row) => text(row) || undefined, isNumeric: false, isCompared };
}

function numberColumn(id: string, title: string, of: (row: CompareRow) => Numeric | undefined): Column {
  const text = (row: CompareRow): string => numberText(of(row));
  return { id, title, text, value: (row) => numeric(of(row)), isNumeric: true, isCompared: false };
}

function placementText({ placement, mesh }: TensorSummary): string {
  return [placement, mesh].filter(Boolean).join(" on ");
}

function indexText(index: readonly number[] | number | null | undefined): string {
  if (index === null || index === undefined) return "";
  return typeof index === "number" ? String(index) : `[${index.join(", ")}]`;
}

/** The first characters: enough to see who differs. */
function digestText(digest: string): string {
  const [algorithm = "", hash = ""] = digest.split(":");
  return hash === ""
    ? digest.slice(0, 12)
    : `${hash.slice(0, 12)}${algorithm.startsWith("xxh3") ? "" : ` ${algorithm}`}`;
}

/** What most rows have in a column; `undefined` where there is no such thing. */
export function usual(rows: readonly CompareRow[], column: Column): string | undefined {
  if (!column.isCompared) return undefined;
  const counts = new Map<string, number>();
  for (const row of rows) {
    const text = column.text(row);
    if (text !== "") counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first && first[1] * 2 > rows.length ? first[0] : undefined;
}

/** In the order of a column; equal ones stay as they are. What has no value comes last, NaN before it. */
export function sorted(rows: readonly CompareRow[], column: Column, isDescending: boolean): CompareRow[] {
  const way = isDescending ? -1 : 1;
  return rows
    .map((row) => ({ row, value: column.value(row) }))
    .sort((a, b) => {
      const lasts = lastness(a.value) - lastness(b.value);
      if (lasts !== 0) return lasts;
      return way * order(a.value, b.value);
    })
    .map(({ row }) => row);
}

function lastness(value: number | string | undefined): number {
  if (value === undefined) return 2;
  return typeof value === "number" && Number.isNaN(value) ? 1 : 0;
}

function order(one: number | string | undefined, other: number | string | undefined): number {
  if (typeof one === "number" && typeof other === "number") return one === other ? 0 : one - other;
  if (typeof one === "number") return -1;
  if (typeof other === "number") return 1;
  return (one ?? "").localeCompare(other ?? "", "en", { numeric: true });
}

/** The rows of which some cell has the text. */
export function matching(
  rows: readonly CompareRow[],
  columns: readonly Column[],
  needle: string,
): readonly CompareRow[] {
  const wanted = needle.trim().toLowerCase();
  if (wanted === "") return rows;
  return rows.filter((row) => columns.some((column) => column.text(row).toLowerCase().includes(wanted)));
}
