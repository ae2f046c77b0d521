/** What the Ranks view shows: job › group › node › rank, and what of it an update has changed. */

import { arrange, type Group, type JobTree, type Place } from "./jobTree.js";
import { contextOf, describe, factsOf, type Icon, iconOf, shortLabel, speak } from "./memberText.js";
import type { Member, Skews, TopFrame } from "./protocol.js";
import { headOf, summarise, type StandingOf } from "./rankSummary.js";

/** A job as the model takes it in. */
export interface JobFacts {
  readonly id: string;
  readonly name: string;
  readonly members: readonly Member[];
  /** By member id: `null` where it runs none of the person's code. */
  readonly frames: ReadonlyMap<string, TopFrame | null>;
  /** Ids of members that did not tell their frame in time. */
  readonly late: ReadonlySet<string>;
  /** How old the hub's facts are, seconds. */
  readonly age?: number;
  /** Of the groups that stopped together. */
  readonly skews?: Skews;
}

export type RankNodeKind = "job" | "group" | "node" | "member" | "replaced";

interface Look {
  readonly label: string;
  readonly description: string;
  readonly icon: Icon;
  readonly contextValue: string;
  readonly spoken: string;
  readonly isExpanded: boolean;
}

/** One row. The same object as long as the row exists; the model alone changes it. */
export interface RankNode extends Look {
  readonly id: string;
  readonly kind: RankNodeKind;
  readonly jobId: string;
  /** Empty for a row that is no process. */
  readonly memberId: string;
  readonly parent: RankNode | undefined;
  readonly children: readonly RankNode[];
  /** Markdown, made when it is asked for. */
  readonly tooltip: () => string;
}

type Writable = { -readonly [K in keyof RankNode]: RankNode[K] };

/** Rows to draw anew, with all below them; `all` when the top ones are others. */
export type RankChange = "all" | readonly RankNode[];

/** More changed rows than this under one parent are drawn together: VS Code draws row by row. */
const MAX_SINGLE = 32;
const MAX_EXPANDED_NODES = 8;

export class RankModel {
  private nodes = new Map<string, Writable>();
  private top: readonly RankNode[] = [];
  private line = "";
  private stopped = 0;

  get roots(): readonly RankNode[] {
    return this.top;
  }

  /** `4 ranks: 1 paused, 3 in all_reduce`; empty without a job. */
  get summary(): string {
    return this.line;
  }

  /** How many members are paused. */
  get stoppedCount(): number {
    return this.stopped;
  }

  find(jobId: string, memberId: string): RankNode | undefined {
    return this.nodes.get(idOf(jobId, memberId));
  }

  /** Rows of the members that `shows` is true of, all without it; what the heads say is always of all. */
  update(jobs: readonly JobFacts[], shows?: (job: JobFacts, member: Member) => boolean): RankChange {
    const trees = jobs.map((job) => arrange(job.members));
    const build = new Build(this.nodes, shows !== undefined);
    const isAlone = jobs.length === 1;
    const shown = shows ? jobs.map((job) => arrange(job.members.filter((member) => shows(job, member)))) : trees;
    const roots = jobs.flatMap((job, at) => build.job(job, shown[at] ?? arrange([]), isAlone));
    const hasOtherRoots = !isSame(this.top, roots);
    this.nodes = build.nodes;
    this.top = roots;
    this.line = lineOf(jobs, trees);
    this.stopped = jobs.flatMap((job) => job.members).filter((member) => member.state === "paused").length;
    return hasOtherRoots ? "all" : gathered(build.changed);
  }
}

function idOf(jobId: string, part: string): string {
  return `${jobId}:${part}`;
}

function ranksOf(tree: JobTree): Member[] {
  return tree.groups.flatMap((group) => group.ranks.map(({ member }) => member));
}

function standingIn(job: JobFacts): StandingOf {
  return ({ id }) => ({ frame: job.frames.get(id), isLate: job.late.has(id), age: job.age ?? 0 });
}

function lineOf(jobs: readonly JobFacts[], trees: readonly JobTree[]): string {
  if (jobs.length === 0) return "";
  const standings = new Map(jobs.flatMap((job) => job.members.map((member) => [member, standingIn(job)] as const)));
  const drivers = trees.flatMap((tree) => tree.drivers);
  const line = summarise(trees.flatMap(ranksOf), drivers.at(-1)?.member, (m) => standings.get(m)?.(m) ?? {});
  const idle = trees.reduce((sum, tree) => sum + tree.idle, 0);
  const tail = idle > 0 ? ` · ${idle} idle worker${idle === 1 ? "" : "s"} not shown` : "";
  return (jobs.length > 1 ? `${jobs.length} jobs · ` : "") + line + tail;
}

/** One pass over all jobs: reuses the rows there are and notes those that look different. */
class Build {
  readonly nodes = new Map<string, Writable>();
  readonly changed = new Set<RankNode>();

  constructor(
    private readonly old: ReadonlyMap<string, Writable>,
    private readonly isFiltered: boolean,
  ) {}

  job(job: JobFacts, tree: JobTree, isAlone: boolean): RankNode[] {
    const rows = this.rowsOf(job, tree, isAlone && tree.groups.length === 1);
    if (isAlone) return rows;
    const summary = summarise(ranksOf(tree), tree.drivers.at(-1)?.member, standingIn(job));
    const look = heading(job.name, summary, { name: "debug-alt" }, "job");
    return [this.row(idOf(job.id, "job"), "job", job, look, rows)];
  }

  private rowsOf(job: JobFacts, tree: JobTree, isOnlyGroup: boolean): RankNode[] {
    return [
      ...tree.drivers.map((driver) => this.member(job, driver)),
      ...tree.groups.map((group) => this.group(job, group, isOnlyGroup)),
      ...tree.orphans.map((orphan) => this.member(job, orphan)),
    ];
  }

  private group(job: JobFacts, group: Group, isOnly: boolean): RankNode {
    const ranks = group.ranks.map(({ member }) => member);
    // The counts of an only group are in the view's own line.
    const counts = isOnly ? headOf(ranks) : summarise(ranks, undefined, standingIn(job));
    const shown = this.isFiltered ? `${ranks.length} shown` : counts;
    const description = [shown, ...skewOf(job, group.name)].join(" · ");
    const look = heading(group.label, description, { name: "layers" }, "group");
    const below = group.nodes.length > 0 ? this.nodesOf(job, group) : this.members(job, group.ranks);
    return this.row(idOf(job.id, `group ${group.name}`), "group", job, look, below);
  }

  private nodesOf(job: JobFacts, group: Group): RankNode[] {
    const isExpanded = group.nodes.length <= MAX_EXPANDED_NODES;
    return group.nodes.map(({ node, host, ranks }) => {
      const look = heading(`node-${node}`, host, { name: "server" }, "node", isExpanded);
      return this.row(idOf(job.id, `node ${node} ${group.name}`), "node", job, look, this.members(job, ranks));
    });
  }

  private members(job: JobFacts, places: readonly Place[]): RankNode[] {
    return places.map((each) => this.member(job, each));
  }

  private member(job: JobFacts, { member, replaced, children, endedChildren }: Place): RankNode {
    const standing = standingIn(job)(member);
    const restarts = member.incarnation > 0 ? [`restarted ${member.incarnation}×`] : [];
    const look = {
      label: shortLabel(member),
      description: [describe(member, standing), ...restarts].join(" · "),
      icon: iconOf(member, standing),
      contextValue: contextOf(member),
      spoken: [speak(member, standing), ...restarts.map((each) => each.replace("×", " times"))].join(", "),
      isExpanded: false,
    };
    const below = [...this.members(job, children), ...replaced.map((old) => this.replaced(job, old))];
    const tooltip = (): string =>
      factsOf(member, standing) + (endedChildren > 0 ? `\n- child processes that have ended: ${endedChildren}` : "");
    return this.row(idOf(job.id, member.id), "member", job, look, below, member.id, tooltip);
  }

  private replaced(job: JobFacts, member: Member): RankNode {
    const label = `incarnation ${member.incarnation}`;
    const description = describe({ ...member, isFinal: true });
    const look = {
      label,
      description,
      icon: { name: "history", color: "disabledForeground" },
      contextValue: "replaced ended",
      spoken: `${label} of ${shortLabel(member)}, ${description}`,
      isExpanded: false,
    };
    const tooltip = (): string => factsOf(member);
    return this.row(idOf(job.id, member.id), "replaced", job, look, [], member.id, tooltip);
  }

  private row(
    id: string,
    kind: RankNodeKind,
    job: JobFacts,
    look: Look,
    children: readonly RankNode[],
    memberId = "",
    tooltip = (): string => "",
  ): RankNode {
    const old = this.old.get(id);
    const node = old ?? { id, kind, jobId: job.id, memberId, parent: undefined, children, tooltip, ...look };
    if (!old || !looksSame(old, look) || old.kind !== kind || !isSame(old.children, children)) this.changed.add(node);
    Object.assign(node, look, { kind, children, tooltip, parent: undefined });
    for (const child of children) (child as Writable).parent = node;
    this.nodes.set(id, node);
    return node;
  }
}

/** `stopped within 43 ms`. */
function skewOf({ skews = {} }: JobFacts, group: string): string[] {
  const skew = Object.hasOwn(skews, group) ? skews[group] : undefined;
  if (!skew) return [];
  const who = skew.stopped < skew.size ? `${skew.stopped} of ${skew.size} ` : "";
  return [`${who}stopped within ${Math.round(skew.milliseconds)} ms`];
}

function heading(label: string, description: string, icon: Icon, contextValue: string, isExpanded = true): Look {
  return { label, description, icon, contextValue, spoken: `${label}, ${description}`, isExpanded };
}

function looksSame(a: Look, b: Look): boolean {
  return (
    a.label === b.label &&
    a.description === b.description &&
    a.icon.name === b.icon.name &&
    a.icon.color === b.icon.color &&
    a.contextValue === b.contextValue &&
    a.spoken === b.spoken
  );
}

function isSame(a: readonly RankNode[], b: readonly RankNode[]): boolean {
  return a.length === b.length && a.every((node, at) => node === b[at]);
}

/** The fewest rows that stand for all changed ones. A new row is drawn with its parent, whose children are others. */
function gathered(changed: ReadonlySet<RankNode>): RankNode[] {
  const perParent = new Map<RankNode, number>();
  for (const { parent } of changed) if (parent) perParent.set(parent, (perParent.get(parent) ?? 0) + 1);
  const drawn = new Set(changed);
  for (const [parent, count] of perParent) if (count > MAX_SINGLE) drawn.add(parent);
  const isBelow = ({ parent }: RankNode): boolean => parent !== undefined && (drawn.has(parent) || isBelow(parent));
  return [...drawn].filter((node) => !isBelow(node));
}
