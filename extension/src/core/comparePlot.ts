/** Numbers over ranks: what of a comparison can be drawn, and what stands out. */

import { numeric } from "./compareTable.js";
import type { Comparison, CompareRow } from "./protocol.js";

export type Bad = "NaN" | "∞" | "−∞";

/** Everything by row: the place on the axis, the number if it is finite, else what it is. */
export interface Plot {
  readonly members: readonly string[];
  readonly labels: readonly string[];
  /** The rank where there is one group, else the place in the table. */
  readonly xs: readonly number[];
  readonly isByRank: boolean;
  readonly ys: readonly (number | null)[];
  readonly bad: readonly (Bad | undefined)[];
  readonly isOutlier: readonly boolean[];
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly mean: number | undefined;
}

export interface Metric {
  readonly id: string;
  readonly title: string;
}

const TENSOR_METRICS: readonly Metric[] = [
  { id: "mean", title: "mean" },
  { id: "min", title: "min" },
  { id: "max", title: "max" },
  { id: "std", title: "std" },
  { id: "norm", title: "norm" },
  { id: "nan", title: "number of NaN" },
  { id: "inf", title: "number of Inf" },
  { id: "delta", title: "max |Δ|" },
];
const VALUE: Metric = { id: "value", title: "value" };

/** What can be plotted; empty: nothing, or only one number. */
export function metricsOf({ rows }: Comparison): Metric[] {
  const canBe = (metric: Metric): boolean => rows.filter((row) => numberOf(row, metric.id) !== undefined).length > 1;
  return [VALUE, ...TENSOR_METRICS].filter(canBe);
}

function numberOf({ value, tensor, delta, kind }: CompareRow, metric: string): number | undefined {
  switch (metric) {
    case "value":
      return kind === "number" ? numeric(value) : undefined;
    case "delta":
      return numeric(delta?.max);
    case "mean":
    case "min":
    case "max":
    case "std":
    case "norm":
    case "nan":
    case "inf":
      return numeric(tensor?.[metric]);
    default:
      return undefined;
  }
}

export function plotOf({ rows, stats }: Comparison, metric: string): Plot {
  const told = rows.filter((row) => numberOf(row, metric) !== undefined);
  const values = told.map((row) => numberOf(row, metric) ?? NaN);
  const finite = values.filter(Number.isFinite);
  const isByRank = told.every(({ rank, group }) => rank !== null && group === told[0]?.group);
  const named = metric === "value" && stats ? new Set(stats.outliers) : undefined;
  const isFar = named ? undefined : outlying(finite);
  const order = told.map((_, at) => at);
  if (isByRank) order.sort((a, b) => (told[a]?.rank ?? 0) - (told[b]?.rank ?? 0));
  const by = <T>(of: (row: CompareRow, value: number, at: number) => T): T[] =>
    order.flatMap((at, place) => {
      const row = told[at];
      return row ? [of(row, values[at] ?? NaN, place)] : [];
    });
  return {
    members: by(({ member }) => member),
    labels: by(({ label }) => label),
    xs: by(({ rank }, _, place) => (isByRank ? (rank ?? place) : place)),
    isByRank,
    ys: by((_, value) => (Number.isFinite(value) ? value : null)),
    bad: by((_, value) => badness(value)),
    isOutlier: by(({ member }, value) => named?.has(member) ?? isFar?.(value) ?? false),
    min: finite.length > 0 ? finite.reduce((a, b) => Math.min(a, b)) : undefined,
    max: finite.length > 0 ? finite.reduce((a, b) => Math.max(a, b)) : undefined,
    mean: finite.length > 0 ? finite.reduce((sum, value) => sum + value / finite.length, 0) : undefined,
  };
}

function badness(value: number): Bad | undefined {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return undefined;
  return value > 0 ? "∞" : "−∞";
}

/** Five times the usual distance (1.4826 · median absolute deviation) from the median. */
const FAR = 5 * 1.4826;

function outlying(values: readonly number[]): (value: number) => boolean {
  if (values.length < 4) return () => false;
  const centre = median(values);
  const spread = median(values.map((value) => Math.abs(value - centre)));
  return (value) => Number.isFinite(value) && Math.abs(value - centre) > FAR * spread;
}

function median(values: readonly number[]): number {
  const inOrder = [...values].sort((a, b) => a - b);
  const middle = inOrder.length >> 1;
  const upper = inOrder[middle] ?? NaN;
  return inOrder.length % 2 === 1 ? upper : (upper + (inOrder[middle - 1] ?? NaN)) / 2;
}
