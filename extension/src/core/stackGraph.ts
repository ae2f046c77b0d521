/** Merged stacks as the graph draws them: boxes of stretches, edges with rank sets. */

import { countOf, cut, type MemberNames } from "./memberNames.js";
import { doings, endsIn, fileOf, placeOf, type Tone, toneOf } from "./stackText.js";
import { gathered, lastFrame, type Stretch } from "./stackTree.js";

/** One box; what it shows is text that has to be set as such. */
export interface GraphNode {
  readonly id: string;
  /** `train:42`, `984 more places`. */
  readonly title: string;
  /** The blocking call that all are in. */
  readonly call: string;
  /** `train.py · via main:35 › <module>`. */
  readonly detail: string;
  /** The rank set on the edge to it, and how many. */
  readonly ranks: string;
  readonly count: number;
  /** What its ranks do, when it is a leaf. */
  readonly doing: string;
  readonly tone: Tone;
  /** All of it, for the tooltip. */
  readonly hint: string;
  /** A click puts the places that it stands for in its stead. */
  readonly isMore: boolean;
  readonly children: readonly GraphNode[];
}

/** What fits on an edge. */
const SET_WIDTH = 24;
const VIA_SHOWN = 3;

/** `opened`: ids of what stands for many places and was opened. */
export function graphOf(
  stretches: readonly Stretch[],
  names: MemberNames,
  opened: ReadonlySet<string>,
  parent = "",
): GraphNode[] {
  const moreId = `${parent}\nothers`;
  const [outliers, others, biggest] = opened.has(moreId) ? [stretches, [], []] : gathered(stretches);
  const draw = (stretch: Stretch): GraphNode => nodeOf(stretch, names, opened);
  const more = others.length > 0 ? [moreOf(moreId, others, names)] : [];
  return [...outliers.map(draw), ...more, ...biggest.map(draw)];
}

function nodeOf(stretch: Stretch, names: MemberNames, opened: ReadonlySet<string>): GraphNode {
  const { id, members, ends, children, frames } = stretch;
  const frame = lastFrame(stretch);
  const [first] = ends;
  const call = first && ends.every((end) => end.call === first.call) ? first.call : "";
  const via = frames.slice(0, -1).map(placeOf).reverse();
  const viaText =
    via.length > 0 ? `from ${via.slice(0, VIA_SHOWN).join(" ‹ ")}${via.length > VIA_SHOWN ? " …" : ""}` : "";
  return {
    id,
    title: placeOf(frame),
    call,
    detail: [fileOf(frame), viaText].filter(Boolean).join(" · "),
    ranks: cut(names.setOf(members), SET_WIDTH),
    count: members.length,
    doing: doings(ends, names),
    tone: toneOf(endsIn(stretch)),
    hint: [names.counted(members), ...frames.map((each) => `${placeOf(each)}  ${each.path}`)].join("\n"),
    isMore: false,
    children: graphOf(children, names, opened, id),
  };
}

function moreOf(id: string, stretches: readonly Stretch[], names: MemberNames): GraphNode {
  const members = stretches.flatMap((each) => each.members).sort(names.order);
  const ends = stretches.flatMap(endsIn);
  return {
    id,
    title: countOf(stretches.length, "more place"),
    call: "",
    detail: "click to show them",
    ranks: cut(names.setOf(members), SET_WIDTH),
    count: members.length,
    doing: "",
    tone: toneOf(ends),
    hint: `${names.counted(members)}\n${doings(ends, names)}`,
    isMore: true,
    children: [],
  };
}

/** What a graph is of: a launcher that runs none of the person's code says nothing in it. */
export function graphed(stretches: readonly Stretch[], names: MemberNames): Stretch[] {
  const isRank = (id: string): boolean => names.member(id)?.role === "rank";
  return stretches.filter((stretch) => lastFrame(stretch).name !== "" || stretch.members.some(isRank));
}

/** The stretch with this id, wherever it is. */
export function findStretch(stretches: readonly Stretch[], id: string): Stretch | undefined {
  for (const stretch of stretches) {
    const found =
      stretch.id === id ? stretch : id.startsWith(stretch.id) ? findStretch(stretch.children, id) : undefined;
    if (found) return found;
  }
  return undefined;
}
