/** Numbers over ranks: points, outliers, and what is no number; lines at minimum, mean and maximum. */

import uPlot from "uplot";

import { countOf } from "../src/core/memberNames.js";
import { listed } from "../src/core/outcome.js";
import type { Plot } from "../src/core/comparePlot.js";
import { numberText } from "../src/core/compareTable.js";
import { color, element, fill, onThemeChange } from "./dom.js";

const FEW = 64;
const MAX_NAMES = 6;
const TOP = 16;

export class PlotView {
  readonly element = element("div", { class: "plot" });
  readonly legend = element("div", { class: "legend" });
  private readonly tip = element("div", { class: "tip" });
  private drawn: uPlot | undefined;
  private plot: Plot | undefined;

  constructor(private readonly choose: (member: string) => void) {
    this.tip.hidden = true;
    onThemeChange(() => {
      this.build();
    });
    new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = this.element;
      if (width > 0) this.drawn?.setSize({ width, height });
    }).observe(this.element);
    this.element.addEventListener("click", () => {
      const member = this.plot?.members[this.drawn?.cursor.idx ?? -1];
      if (member !== undefined) this.choose(member);
    });
    this.element.addEventListener("mouseleave", () => {
      this.tip.hidden = true;
    });
  }

  show(plot: Plot): void {
    this.plot = plot;
    this.build();
    this.tell(plot);
  }

  private build(): void {
    const { plot } = this;
    if (!plot) return;
    this.drawn?.destroy();
    const isFew = plot.xs.length <= FEW;
    const size = isFew ? 7 : 4;
    const inner = color("charts-blue");
    const odd = color("charts-orange");
    const points = (stroke: string, width: number): uPlot.Series => ({
      paths: () => null,
      points: { show: true, size: width, stroke, fill: stroke },
    });
    const text = color("descriptionForeground");
    const axis: uPlot.Axis = {
      stroke: text,
      font: `11px ${color("font-family") || "sans-serif"}`,
      grid: { stroke: color("panel-border") || "transparent", width: 1 },
      ticks: { show: false },
    };
    const { clientWidth, clientHeight } = this.element;
    const ordinary = plot.ys.map((y, at) => (plot.isOutlier[at] === true ? null : y));
    const outliers = plot.ys.map((y, at) => (plot.isOutlier[at] === true ? y : null));
    this.drawn = new uPlot(
      {
        width: Math.max(200, clientWidth),
        height: Math.max(100, clientHeight),
        padding: [TOP, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
        scales: {
          x: { time: false, range: () => xSpan(plot.xs) },
          y: { range: () => ySpan(finite(plot.ys)) },
        },
        axes: [
          {
            ...axis,
            size: 26,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
            values: (_, ticks) => ticks.map((x) => this.tick(x)),
          },
          { ...axis, size: 76, values: (_, ticks) => ticks.map((y) => numberText(y)) },
        ],
        series: [{}, points(inner, size), points(odd, size + 2)],
        hooks: {
          drawClear: [
            (chart) => {
              drawLines(chart, plot, text);
            },
          ],
          draw: [
            (chart) => {
              drawBad(chart, plot, color("errorForeground"));
            },
          ],
          setCursor: [
            (chart) => {
              this.point(chart, plot);
            },
          ],
        },
      },
      [[...plot.xs], ordinary, outliers],
      this.element,
    );
    this.element.append(this.tip);
  }

  /** By rank a number; else there is a name for some places only. */
  private tick(x: number): string {
    const { plot } = this;
    if (!plot || !Number.isInteger(x)) return "";
    if (plot.isByRank) return x < 0 ? "" : String(x);
    return plot.xs.length <= 12 ? (plot.labels[x] ?? "").replace(/ · .*/, "") : "";
  }

  private point(chart: uPlot, plot: Plot): void {
    const at = chart.cursor.idx;
    const label = at === null || at === undefined ? undefined : plot.labels[at];
    this.tip.hidden = label === undefined;
    if (label === undefined || at === null || at === undefined) return;
    const y = plot.ys[at];
    this.tip.textContent = `${label}: ${y === null || y === undefined ? (plot.bad[at] ?? "") : numberText(y)}`;
    const left = chart.valToPos(plot.xs[at] ?? 0, "x") + chart.bbox.left / devicePixelRatio;
    const { clientWidth } = this.element;
    this.tip.style.left = `${Math.min(left + 8, Math.max(0, clientWidth - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = "0px";
  }

  private tell({ min, max, mean, bad, isOutlier, labels }: Plot): void {
    const far = labels.filter((_, at) => isOutlier[at] === true);
    const nan = labels.filter((_, at) => bad[at] === "NaN");
    const infinite = labels.filter((_, at) => bad[at] === "∞" || bad[at] === "−∞");
    const fact = (name: string, value: string, kind = ""): HTMLElement =>
      element("span", { class: kind }, `${name} `, element("b", { class: kind, text: value }));
    const numbers: [string, number | undefined][] = [
      ["min", min],
      ["mean", mean],
      ["max", max],
    ];
    fill(
      this.legend,
      ...numbers.flatMap(([name, value]) => (value === undefined ? [] : [fact(name, numberText(value))])),
      ...(far.length > 0 ? [fact(countOf(far.length, "outlier"), listed(far, MAX_NAMES))] : []),
      ...(nan.length > 0 ? [fact(`${nan.length} NaN`, listed(nan, MAX_NAMES), "bad")] : []),
      ...(infinite.length > 0 ? [fact(`${infinite.length} Inf`, listed(infinite, MAX_NAMES), "bad")] : []),
    );
  }
}

function finite(ys: readonly (number | null)[]): number[] {
  return ys.filter((y) => y !== null);
}

/** From the smallest to the largest with room on both sides, as a share of the span. */
function spanOf(values: readonly number[], room: number, least: (high: number) => number): [number, number] {
  if (values.length === 0) return [0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const margin = Math.max((high - low) * room, least(high));
  return [low - margin, high + margin];
}

function xSpan(xs: readonly number[]): [number, number] {
  return spanOf(xs, 0.02, () => 0.5);
}

function ySpan(ys: readonly number[]): [number, number] {
  const isFlat = ys.every((y) => y === ys[0]);
  return spanOf(ys, 0.08, (high) => (isFlat ? Math.abs(high) * 0.08 || 1 : 0));
}

/** Minimum, mean and maximum across the chart. */
function drawLines(chart: uPlot, { min, max, mean }: Plot, stroke: string): void {
  if (min === max) return;
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  for (const [value, dash] of [
    [min, [2, 4]],
    [mean, [8, 4]],
    [max, [2, 4]],
  ] as const) {
    if (value === undefined) continue;
    const y = Math.round(chart.valToPos(value, "y", true));
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

/** Where a number would be that is none: a red bar, with its name where there is room. */
function drawBad(chart: uPlot, { xs, bad }: Plot, stroke: string): void {
  const { ctx, bbox } = chart;
  const hasRoom = bad.filter(Boolean).length <= MAX_NAMES;
  ctx.save();
  ctx.fillStyle = ctx.strokeStyle = stroke;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  ctx.textAlign = "center";
  bad.forEach((kind, at) => {
    if (kind === undefined) return;
    const x = Math.round(chart.valToPos(xs[at] ?? 0, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (hasRoom) ctx.fillText(kind, x, bbox.top - 3 * devicePixelRatio);
  });
  ctx.restore();
}
