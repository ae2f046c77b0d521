/** The rows of the Stacks view: stretches of own frames, with what is folded away below them. */

import type { Icon } from "./memberText.js";
import { countOf, fileName, type MemberNames } from "./memberNames.js";
import type { MergedStacks, StackNode } from "./protocol.js";
import { doings, endsIn, fileOf, iconOf, placeOf, toneOf } from "./stackText.js";
import { type Frame, gathered, lastFrame, type Stacks, type Stretch } from "./stackTree.js";

export interface StackRow {
  readonly id: string;
  readonly label: string;
  readonly description: string;
  /** What a screen reader says. */
  readonly spoken: string;
  readonly icon: Icon | undefined;
  /** For `when` clauses. */
  readonly contextValue: string;
  /** `undefined`: there is nothing below. */
  readonly isExpanded: boolean | undefined;
  /** Whose stack goes through it. */
  readonly members: readonly string[];
  /** Where a click goes. */
  readonly frame: { readonly path: string; readonly line: number } | undefined;
  /** Markdown, without anything that a job's program chose left as such. */
  readonly tooltip: () => string;
  readonly children: () => readonly StackRow[];
}

/** A side bar shows so much of a rank set. */
const SET_WIDTH = 28;
const FOLDED: Icon = { name: "ellipsis" };

/** The rows of one answer; all below the first level are made when they are asked for. */
export class StackRows {
  constructor(
    private readonly answer: MergedStacks,
    private readonly stacks: Stacks,
    private readonly names: MemberNames,
  ) {}

  roots(): StackRow[] {
    const { outside, stretches, threads } = this.stacks;
    const shown = new Set(stretches.flatMap(({ members }) => members));
    return [
      ...this.silent(),
      ...this.siblings(stretches, ""),
      ...(threads.length > 0 ? [this.threads(threads)] : []),
      ...this.library(outside, "outside", shown),
    ];
  }

  private threads(stretches: readonly Stretch[]): StackRow {
    return this.row({
      id: "threads",
      label: countOf(stretches.length, "other thread"),
      description: stretches.map(({ frames }) => frames[0]?.name ?? "").join(", "),
      icon: FOLDED,
      isExpanded: false,
      members: stretches.flatMap(({ members }) => members),
      children: () => this.siblings(stretches, "threads"),
    });
  }

  private siblings(stretches: readonly Stretch[], parent: string): StackRow[] {
    const [outliers, others, biggest] = gathered(stretches);
    const rows = [...outliers, ...biggest].map((stretch) => this.stretch(stretch));
    if (others.length > 0) rows.splice(outliers.length, 0, this.others(others, parent));
    return rows;
  }

  private others(stretches: readonly Stretch[], parent: string): StackRow {
    const members = stretches.flatMap((each) => each.members);
    return this.row({
      id: `${parent}\nothers`,
      label: countOf(stretches.length, "more place"),
      description: this.names.counted(members, SET_WIDTH),
      icon: FOLDED,
      isExpanded: false,
      members,
      children: () => stretches.map((stretch) => this.stretch(stretch)),
    });
  }

  private stretch(stretch: Stretch): StackRow {
    const { id, members, ends, children } = stretch;
    const frame = lastFrame(stretch);
    const isLeaf = children.length === 0;
    const ending = isLeaf ? this.ending(stretch) : { call: "", doing: "" };
    const folded = this.folded(stretch);
    const set = this.names.counted(members, SET_WIDTH);
    const label = placeOf(frame) + (ending.call === "" ? "" : ` › ${ending.call}`);
    return this.row({
      id,
      label,
      description: [set, ending.doing, fileOf(frame)].filter(Boolean).join(" · "),
      icon: iconOf(toneOf(endsIn(stretch))),
      contextValue: isLeaf ? "place stands" : "place",
      isExpanded: isLeaf ? (folded.length > 0 ? false : undefined) : true,
      members,
      frame: goesTo(frame),
      tooltip: () => this.factsOf(stretch),
      children: () => [
        ...folded,
        ...(isLeaf || ends.length === 0 ? [] : [this.here(stretch)]),
        ...this.siblings(children, id),
      ],
    });
  }

  /** A call that all are in belongs to the place, any other doing to the ranks. */
  private ending({ ends }: Stretch): { call: string; doing: string } {
    const [first] = ends;
    const call = first?.call ?? "";
    if (call !== "" && ends.every((end) => end.call === call && end.state !== "paused")) return { call, doing: "" };
    return { call: "", doing: doings(ends, this.names) };
  }

  /** Those who stand in a frame from which others have gone deeper. */
  private here(stretch: Stretch): StackRow {
    const { call, doing } = this.ending(stretch);
    const frame = lastFrame(stretch);
    const members = stretch.ends.map(({ member }) => member).sort(this.names.order);
    return this.row({
      id: `${stretch.id}\nhere`,
      label: call === "" ? `at ${placeOf(frame)}` : `at ${placeOf(frame)} › ${call}`,
      description: [this.names.counted(members, SET_WIDTH), doing].filter(Boolean).join(" · "),
      icon: iconOf(toneOf(stretch.ends)),
      contextValue: "place stands",
      members,
      frame: goesTo(frame),
    });
  }

  /** What leads to a stretch's last frame, and the installed code that it calls. */
  private folded({ id, frames, members }: Stretch): StackRow[] {
    const who = new Set(members);
    const last = frames.length - 1;
    const rows = (from: number, to: number): StackRow[] =>
      frames
        .slice(from, to)
        .flatMap((frame, at) => [
          ...(from + at < last ? [this.frame(frame, `${id}\n${from + at}`, members)] : []),
          ...this.library(frame.library, `${id}\n${from + at}`, who),
        ]);
    if (last === 0) return rows(0, 1);
    const outer = this.row({
      id: `${id}\nouter`,
      label: countOf(last, "outer frame"),
      description: frames.slice(0, last).map(placeOf).join(" › "),
      icon: FOLDED,
      isExpanded: false,
      members,
      children: () => rows(0, last),
    });
    return [outer, ...rows(last, last + 1)];
  }

  private frame(frame: Frame, id: string, members: readonly string[]): StackRow {
    const icon = frame.kind === "thread" ? { name: "list-tree" } : { name: "symbol-method" };
    const tooltip = (): string => `${escaped(frame.name)}\n\n${escaped(frame.path)}:${frame.line}`;
    const description = fileOf(frame);
    return this.row({ id, label: placeOf(frame), description, icon, members, frame: goesTo(frame), tooltip });
  }

  private library(nodes: readonly StackNode[], id: string, who: ReadonlySet<string>): StackRow[] {
    const shown = installed(nodes, who);
    if (shown.length === 0) return [];
    const members = [...new Set(shown.flatMap((node) => node.members.filter((member) => who.has(member))))];
    const hasNative = shown.some(isNative);
    const count = countInstalled(shown, who);
    return [
      this.row({
        id: `${id}\nlibrary`,
        label: countOf(count, hasNative ? "library and native frame" : "library frame"),
        description: [...new Set(shown.map(packageOf))].join(", "),
        icon: { name: "library" },
        isExpanded: false,
        members,
        children: () => this.rawRows(shown, `${id}\nlibrary`, who),
      }),
    ];
  }

  /** One below the other as long as there is no fork. */
  private rawRows(nodes: readonly StackNode[], id: string, who: ReadonlySet<string>): StackRow[] {
    const [only] = nodes;
    if (nodes.length !== 1 || !only) return nodes.map((node) => this.raw(node, id, who, installed(node.children, who)));
    return [this.raw(only, id, who, []), ...this.rawRows(installed(only.children, who), `${id}\n${only.name}`, who)];
  }

  private raw(node: StackNode, parent: string, who: ReadonlySet<string>, below: readonly StackNode[]): StackRow {
    const members = node.members.filter((member) => who.has(member));
    const id = `${parent}\n${node.path}:${node.line}:${node.name}`;
    return this.row({
      id,
      label: placeOf(node),
      description: [this.names.counted(members, SET_WIDTH), fileName(node.path)].filter(Boolean).join(" · "),
      icon: { name: node.kind === "native" ? "chip" : "symbol-method", color: "disabledForeground" },
      isExpanded: below.length > 0 ? true : undefined,
      members,
      frame: node.kind === "native" ? undefined : goesTo(node),
      tooltip: () => `${escaped(node.name)}\n\n${escaped(node.path)}${node.line > 0 ? `:${node.line}` : ""}`,
      children: () => this.rawRows(below, id, who),
    });
  }

  /** Those who are not in the tree. */
  private silent(): StackRow[] {
    const { late, failed } = this.answer;
    const rows: StackRow[] = [];
    if (late.length > 0) {
      const members = late.map(({ member }) => member).sort(this.names.order);
      const whys = late.map(({ label, why }) => `${label}: ${why}`);
      rows.push(this.fault("No answer", this.names.counted(members, SET_WIDTH), members, whys));
    }
    const byReason = new Map<string, string[]>();
    for (const [label, why] of Object.entries(failed)) byReason.set(why, [...(byReason.get(why) ?? []), label]);
    for (const [why, labels] of byReason) rows.push(this.fault(why, labels.join(", "), [], labels));
    return rows;
  }

  private fault(label: string, description: string, members: readonly string[], details: readonly string[]): StackRow {
    return this.row({
      id: `fault ${label}`,
      label,
      description,
      icon: { name: "warning", color: "problemsWarningIcon.foreground" },
      members,
      tooltip: () => [escaped(label), "", ...details.map((detail) => `- ${escaped(detail)}`)].join("\n"),
    });
  }

  private factsOf(stretch: Stretch): string {
    const frames = stretch.frames.map((frame) => `- ${escaped(placeOf(frame))} · ${escaped(frame.path)}`);
    const ends = endsIn(stretch);
    return [
      `**${escaped(placeOf(lastFrame(stretch)))}** · ${escaped(this.names.counted(stretch.members))}`,
      "",
      escaped(doings(ends, this.names)),
      "",
      ...frames,
    ].join("\n");
  }

  private row(facts: Partial<StackRow> & Pick<StackRow, "id" | "label" | "description" | "members">): StackRow {
    return {
      spoken: [facts.label.replace(" › ", ", in "), facts.description].filter(Boolean).join(", "),
      icon: undefined,
      contextValue: "",
      isExpanded: undefined,
      frame: undefined,
      tooltip: () => escaped(`${facts.label} ${facts.description}`),
      children: () => [],
      ...facts,
    };
  }
}

function goesTo({ path, line }: { path: string; line: number }): StackRow["frame"] {
  return path === "" || line <= 0 ? undefined : { path, line };
}

/** The installed code of these members: own frames below it have rows of their own. */
function installed(nodes: readonly StackNode[], who: ReadonlySet<string>): StackNode[] {
  return nodes.filter(
    ({ kind, members }) => (kind === "library" || kind === "native") && members.some((member) => who.has(member)),
  );
}

function countInstalled(nodes: readonly StackNode[], who: ReadonlySet<string>): number {
  return nodes.reduce((sum, { children }) => sum + 1 + countInstalled(installed(children, who), who), 0);
}

function isNative(node: StackNode): boolean {
  return node.kind === "native" || node.children.some(isNative);
}

/** `torch` of `…/site-packages/torch/distributed/c10d.py`, else the file. */
function packageOf({ path, name }: StackNode): string {
  const installedAs = /(?:site|dist)-packages[\\/]([^\\/]+)/.exec(path)?.[1];
  return installedAs ?? (path === "" ? name : fileName(path));
}

function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!|<>&~$]/g, "\\$&").replace(/\s*\n\s*/g, " ");
}
