/** Boxes and edges of a tree from left to right; only what is in sight is on the page. */

import { hierarchy, type HierarchyPointNode, tree } from "d3-hierarchy";
import { select } from "d3-selection";
import { zoom, type ZoomBehavior, zoomIdentity, type ZoomTransform } from "d3-zoom";

import type { GraphNode } from "../src/core/stackGraph.js";
import { grouped } from "../src/core/memberNames.js";
import { element, fill, svg } from "./dom.js";

const BOX_WIDTH = 260;
const BOX_HEIGHT = 48;
const ROW = 64;
const GAP = 160;
const COLUMN = BOX_WIDTH + GAP;
const ROOT_WIDTH = 130;
const WIDEST_EDGE = 16;
const THINNEST_EDGE = 1.5;
const LABEL_HEIGHT = 17;
const MARGIN = 24;
const SMALLEST = 0.08;
const LARGEST = 2;
/** Smaller than this a first look is no use: then the beginning is shown. */
const READABLE = 0.6;

/** A place with so many times fewer ranks than the typical one is marked. */
const ODD = 3;

type Point = HierarchyPointNode<GraphNode>;

const ROOT = "root";

export interface GraphActions {
  readonly open: (node: GraphNode) => void;
}

export class Graph {
  readonly element: HTMLDivElement;
  private readonly world = element("div", {
    class: "world",
    attributes: { role: "tree", "aria-label": "Merged stacks" },
  });
  private readonly edges = svg("svg", { "aria-hidden": "true" });
  private readonly zooming: ZoomBehavior<HTMLDivElement, unknown>;
  private transform: ZoomTransform = zoomIdentity;
  private points: Point[] = [];
  private total = 1;
  /** How many stand where the median rank does. */
  private typical = 1;
  private needle = "";
  private found = new Set<Point>();
  private leading = new Set<Point>();
  private current = ROOT;
  private hasBeenShown = false;

  constructor(private readonly actions: GraphActions) {
    this.element = element("div", { class: "canvas", attributes: { tabindex: 0 } }, this.world);
    this.zooming = zoom<HTMLDivElement, unknown>()
      .scaleExtent([SMALLEST, LARGEST])
      .on("zoom", ({ transform }: { transform: ZoomTransform }) => {
        this.transform = transform;
        this.draw();
      });
    select(this.element).call(this.zooming).on("dblclick.zoom", null);
    this.element.addEventListener("keydown", (event) => {
      if (this.press(event.key)) event.preventDefault();
    });
    new ResizeObserver(() => {
      if (!this.hasBeenShown && this.points.length > 0) this.fit();
      else this.draw();
    }).observe(this.element);
  }

  /** Widths of edges are shares of `total`. */
  show(nodes: readonly GraphNode[], total: number, summary: string): void {
    this.total = Math.max(1, total);
    if (nodes.length === 0) {
      this.points = [];
      this.draw();
      return;
    }
    const [only] = nodes;
    const head: GraphNode = {
      ...{ id: ROOT, title: summary.split(" in ")[0] ?? "", call: "", detail: "", ranks: "", count: total, doing: "" },
      ...{ tone: "mixed", hint: summary, isMore: false, children: nodes },
    };
    // where all have begun the same way that is the root
    const root = only && nodes.length === 1 ? only : head;
    const laid = tree<GraphNode>()
      .nodeSize([ROW, COLUMN])
      .separation(() => 1)(hierarchy(root, ({ children }) => children));
    this.points = laid.descendants();
    for (const point of this.points) {
      if (point.depth > 0) point.y = boxWidth(laid) + GAP + (point.depth - 1) * COLUMN;
    }
    this.typical = typicalCount(this.points);
    this.sift();
    if (!this.points.some(({ data }) => data.id === this.current)) this.current = root.id;
    if (this.hasBeenShown || !this.fit()) this.draw();
  }

  /** How many places match. */
  search(needle: string): number {
    this.needle = needle.trim().toLowerCase();
    this.sift();
    this.draw();
    return this.found.size;
  }

  goToNextFound(): void {
    const found = [...this.found];
    const at = found.findIndex(({ data }) => data.id === this.current);
    const next = found[(at + 1) % Math.max(1, found.length)];
    if (next) this.goTo(next, false);
  }

  zoom(factor: number): void {
    select(this.element).call((canvas) => {
      this.zooming.scaleBy(canvas, factor);
    });
  }

  /** Show all of it, or as much from its root on as can be read. False while there is no room. */
  fit(): boolean {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (width === 0 || height === 0 || this.points.length === 0) return false;
    const xs = this.points.map(({ x }) => x);
    const [top, bottom] = [Math.min(...xs), Math.max(...xs) + BOX_HEIGHT];
    const right = Math.max(...this.points.map((point) => point.y + boxWidth(point)));
    const whole = Math.min((width - 2 * MARGIN) / right, (height - 2 * MARGIN) / (bottom - top), 1);
    const isFirst = !this.hasBeenShown;
    const scale = isFirst ? Math.max(whole, READABLE) : Math.max(whole, SMALLEST);
    const isCut = scale > whole;
    // the outliers are on top
    const down =
      isCut && (bottom - top) * scale > height ? MARGIN - top * scale : (height - (top + bottom) * scale) / 2;
    this.hasBeenShown = true;
    select(this.element).call((canvas) => {
      this.zooming.transform(
        canvas,
        zoomIdentity.translate(Math.max(MARGIN, (width - right * scale) / 2), down).scale(scale),
      );
    });
    return true;
  }

  // --- drawing -----------------------------------------------------------------------------------

  private draw(): void {
    const { x, y, k } = this.transform;
    this.world.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    const { clientWidth: width, clientHeight: height } = this.element;
    const inSight = (left: number, top: number, right: number, bottom: number): boolean =>
      right * k + x > -COLUMN && left * k + x < width + COLUMN && bottom * k + y > -ROW && top * k + y < height + ROW;
    const hadFocus = document.activeElement?.classList.contains("box") === true;
    const boxes: HTMLElement[] = [];
    const edges: Element[] = [];
    for (const point of this.points) {
      if (inSight(point.y, point.x, point.y + boxWidth(point), point.x + BOX_HEIGHT)) boxes.push(this.box(point));
      const { parent } = point;
      if (!parent) continue;
      const [top, bottom] = [Math.min(parent.x, point.x), Math.max(parent.x, point.x) + BOX_HEIGHT];
      if (!inSight(parent.y + boxWidth(parent), top, point.y, bottom)) continue;
      edges.push(this.edge(parent, point));
      boxes.push(this.edgeText(point));
    }
    fill(this.edges, ...edges);
    fill(this.world, this.edges, ...boxes);
    if (hadFocus) this.boxOf(this.current)?.focus({ preventScroll: true });
  }

  private boxOf(id: string): HTMLElement | undefined {
    return [...this.world.querySelectorAll<HTMLElement>(".box")].find(({ dataset }) => dataset.id === id);
  }

  private box(point: Point): HTMLElement {
    const { data, depth } = point;
    const isRoot = data.id === ROOT;
    const isHead = depth === 0 && !isRoot;
    const isOdd = !isRoot && !data.isMore && data.children.length === 0 && data.count * ODD <= this.typical;
    const title = data.call === "" ? data.title : `${data.title} › ${data.call}`;
    const doing = data.call === "" ? data.doing : "";
    const classes = ["box", isRoot ? "root" : data.tone, data.isMore ? "more" : "", isOdd ? "is-odd" : ""];
    if (this.isDimmed(point)) classes.push("is-dimmed");
    const made = element(
      "button",
      {
        class: classes.filter(Boolean).join(" "),
        title: data.hint,
        attributes: {
          role: "treeitem",
          type: "button",
          "aria-level": depth + 1,
          "aria-label": [title, data.ranks && `ranks ${data.ranks}`, doing, data.detail].filter(Boolean).join(", "),
          tabindex: data.id === this.current ? 0 : -1,
        },
        on: {
          click: () => {
            this.current = data.id;
            if (!isRoot) this.actions.open(data);
          },
          focus: () => {
            this.current = data.id;
          },
        },
      },
      element("div", { class: "title", text: title }),
      element("div", {
        class: "detail",
        text: [isHead ? counted(data) : "", doing, data.detail].filter(Boolean).join(" · "),
      }),
    );
    made.dataset.id = data.id;
    place(made, point.y, point.x, boxWidth(point));
    return made;
  }

  private edge(parent: Point, point: Point): Element {
    const { data } = point;
    const [x0, y0] = [parent.y + boxWidth(parent), parent.x + BOX_HEIGHT / 2];
    const [x1, y1] = [point.y, point.x + BOX_HEIGHT / 2];
    const bend = x0 + GAP * 0.18;
    return svg("path", {
      class: `edge ${data.tone}${this.isDimmed(point) ? " is-dimmed" : ""}`,
      d: `M${x0},${y0} C${bend},${y0} ${x0 + 10},${y1} ${bend + 14},${y1} L${x1},${y1}`,
      "stroke-width": this.widthOf(data).toFixed(1),
    });
  }

  private edgeText(point: Point): HTMLElement {
    const { data } = point;
    const text = element(
      "div",
      { class: `edge-text${this.isDimmed(point) ? " is-dimmed" : ""}`, title: data.hint },
      element("b", { text: data.ranks }),
      ...(data.count === 1 ? [] : [element("span", { text: `(${grouped(data.count)})` })]),
    );
    const above = LABEL_HEIGHT + this.widthOf(data) / 2;
    place(text, point.y - GAP * 0.74, point.x + BOX_HEIGHT / 2 - above, GAP * 0.72);
    return text;
  }

  private widthOf({ count }: GraphNode): number {
    return Math.max(THINNEST_EDGE, (WIDEST_EDGE * count) / this.total);
  }

  /** Which places match, and which lead to them. */
  private sift(): void {
    this.found = new Set();
    this.leading = new Set();
    if (this.needle === "") return;
    for (const point of this.points) {
      const { title, call, doing, hint } = point.data;
      if (point.data.id === ROOT || !`${title} ${call} ${doing} ${hint}`.toLowerCase().includes(this.needle)) continue;
      this.found.add(point);
      for (const each of point.ancestors()) this.leading.add(each);
    }
  }

  private isDimmed(point: Point): boolean {
    return this.needle !== "" && !this.leading.has(point);
  }

  // --- keys --------------------------------------------------------------------------------------

  private press(key: string): boolean {
    switch (key) {
      case "+":
      case "=":
        this.zoom(1.3);
        return true;
      case "-":
        this.zoom(1 / 1.3);
        return true;
      case "0":
        return this.fit();
      case "ArrowLeft":
      case "ArrowRight":
      case "ArrowUp":
      case "ArrowDown": {
        const next = this.neighbour(key);
        if (next) this.goTo(next, true);
        return true;
      }
      default:
        return false;
    }
  }

  private neighbour(key: "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown"): Point | undefined {
    const here = this.points.find(({ data }) => data.id === this.current);
    if (!here) return this.points[0];
    if (key === "ArrowLeft") return here.parent ?? undefined;
    if (key === "ArrowRight") return here.children?.[0];
    const row = this.points.filter(({ depth }) => depth === here.depth).sort((a, b) => a.x - b.x);
    return row[row.indexOf(here) + (key === "ArrowDown" ? 1 : -1)];
  }

  /** Into the middle when it is out of sight. */
  private goTo(point: Point, isFocused: boolean): void {
    this.current = point.data.id;
    const { x, y, k } = this.transform;
    const [left, top] = [point.y * k + x, point.x * k + y];
    const { clientWidth: width, clientHeight: height } = this.element;
    if (left < 0 || top < 0 || left + boxWidth(point) * k > width || top + BOX_HEIGHT * k > height) {
      select(this.element).call((canvas) => {
        this.zooming.translateTo(canvas, point.y + boxWidth(point) / 2, point.x + BOX_HEIGHT / 2);
      });
    } else this.draw();
    if (isFocused) this.boxOf(this.current)?.focus({ preventScroll: true });
  }
}

function typicalCount(points: readonly Point[]): number {
  const places = points.filter(({ data }) => data.children.length === 0 && !data.isMore);
  const counts = places.map(({ data }) => data.count).sort((a, b) => a - b);
  const half = counts.reduce((sum, count) => sum + count, 0) / 2;
  let passed = 0;
  return counts.find((count) => (passed += count) >= half) ?? 1;
}

function boxWidth({ data }: Point): number {
  return data.id === ROOT ? ROOT_WIDTH : BOX_WIDTH;
}

function counted({ ranks, count }: GraphNode): string {
  return count === 1 ? ranks : `${ranks} (${grouped(count)})`;
}

function place({ style }: HTMLElement, left: number, top: number, width: number): void {
  style.left = `${left}px`;
  style.top = `${top}px`;
  style.width = `${width}px`;
}
