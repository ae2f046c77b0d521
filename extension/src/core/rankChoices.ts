/** What a person chooses a breakpoint's ranks from, and what the choice says. */

import { type KnownGroup, type KnownRank, setOf } from "./rankGroups.js";
import { inWords } from "./rankWords.js";

/** One row with a check mark. */
export interface Choice {
  readonly id: string;
  readonly label: string;
  readonly description: string;
  /** The set that it stands for; `undefined`: no limit. */
  readonly ranks: string | undefined;
  /** The heading that it stands under. */
  readonly heading: string;
  /** For a row of a rank. */
  readonly rank?: KnownRank;
  /** For a row of a whole group. */
  readonly group?: KnownGroup;
}

const NO_LIMIT = "no limit";
const COMMON = "Common";

/** The rows for a job's groups (none without a job), and those that are checked for the set a breakpoint has now. */
export class RankChoices {
  readonly all: readonly Choice[];
  readonly checked: ReadonlySet<string>;

  constructor(
    private readonly groups: readonly KnownGroup[],
    names: Readonly<Record<string, string>>,
    private readonly present: string | undefined,
  ) {
    // in the only group its own row says the same
    const isRankZeroBelow = groups.length === 1 && groups[0]?.ranks[0]?.rank === 0;
    const rankZero = choice("0", "Rank 0", groups.length > 1 ? "of every group" : "", "0", COMMON);
    const common: Choice[] = [
      choice(NO_LIMIT, "All ranks", "no limit: the driver and every other process too", undefined, COMMON),
      ...(isRankZeroBelow ? [] : [rankZero]),
      choice("local:0", "First rank of each node", "local:0", "local:0", COMMON),
      choice("driver", "Driver", "the process that was launched", "driver", COMMON),
    ];
    const named = Object.entries(names).map(([name, set]) => choice(`name ${name}`, name, set, name, "rankSets"));
    const grouped = groups.flatMap((group) => rowsOf(group, groups));
    const rows = [...common, ...named, ...grouped];
    const checked = present === undefined ? [NO_LIMIT] : covering(present, rows, groups);
    if (checked) {
      this.all = rows;
      this.checked = new Set(checked);
    } else {
      this.all = [choice("now", present ?? "", "as it is now", present, "Now"), ...rows];
      this.checked = new Set(["now"]);
    }
  }

  /** What is checked after a change: "All ranks" stands alone, and a group goes with its ranks. */
  afterChange(before: ReadonlySet<string>, after: ReadonlySet<string>): Set<string> {
    const added = [...after].filter((id) => !before.has(id));
    const result = new Set(after);
    if (added.includes(NO_LIMIT)) return new Set([NO_LIMIT]);
    if (added.length > 0) result.delete(NO_LIMIT);
    for (const { id, group } of this.all) {
      if (!group) continue;
      const ranks = group.ranks.map(idOf);
      if (after.has(id) && !before.has(id)) for (const rank of ranks) result.add(rank);
      else if (before.has(id) && !after.has(id)) for (const rank of ranks) result.delete(rank);
      else if (ranks.every((rank) => result.has(rank))) result.add(id);
      else result.delete(id);
    }
    return result;
  }

  /** The set of what is checked: what the breakpoint has now, to the letter, where nothing has changed. */
  ranksOf(checked: ReadonlySet<string>): string | undefined {
    const isUnchanged = checked.size === this.checked.size && [...checked].every((id) => this.checked.has(id));
    if (isUnchanged) return this.present;
    const chosen = this.all.filter(({ id }) => checked.has(id));
    if (chosen.length === 0 || checked.has(NO_LIMIT)) return undefined;
    const picked = chosen.flatMap(({ rank }) => rank ?? []);
    const plain = chosen.filter(({ rank, group }) => !rank && !group);
    // bare numbers first: after `actor/0` they would be actor's
    const texts = [...plain, { ranks: setOf(picked, this.groups) }].flatMap(({ ranks }) => (ranks ? [ranks] : []));
    const isBare = (text: string) => /^[0-9]/.test(text);
    return [...texts.filter(isBare), ...texts.filter((text) => !isBare(text))].join(",");
  }
}

function choice(id: string, label: string, description: string, ranks: string | undefined, heading: string): Choice {
  return { id, label, description, ranks, heading };
}

function idOf({ group, rank }: KnownRank): string {
  return `rank ${rank} ${group}`;
}

function rowsOf(group: KnownGroup, groups: readonly KnownGroup[]): Choice[] {
  const heading = `${group.name || "ranks"}: ${group.ranks.length} ${group.ranks.length === 1 ? "rank" : "ranks"}`;
  const whole = setOf(group.ranks, groups);
  return [
    { ...choice(`group ${group.name}`, `All of ${group.name || "them"}`, inWords(whole), whole, heading), group },
    ...group.ranks.map((rank) => {
      const description = rank.member ? stateOf(rank.member) : "still to join";
      const label = `${group.name || "rank"} ${rank.rank}`;
      return { ...choice(idOf(rank), label, description, setOf([rank], groups), heading), rank };
    }),
  ];
}

function stateOf({ host, state, isGreyed }: { host: string; state: string; isGreyed: boolean }): string {
  return [host, isGreyed ? "never stops: outside 'ranks' of launch.json" : state].filter(Boolean).join(" · ");
}

/** The rows that together are the set; `undefined` where some of it is no row. */
function covering(present: string, rows: readonly Choice[], groups: readonly KnownGroup[]): string[] | undefined {
  const checked = new Set<string>();
  let group: string | undefined;
  for (const piece of present.split(",").map((part) => part.trim())) {
    const slash = piece.lastIndexOf("/");
    if (slash >= 0) group = piece.slice(0, slash);
    else if (!/^[0-9]/.test(piece)) group = undefined;
    const row =
      slash < 0 && group === undefined ? rows.find((one) => one.ranks === piece && !one.rank && !one.group) : undefined;
    const ranks = row ? [] : ranksOf(piece.slice(slash + 1), group, groups);
    if (!row && !ranks) return undefined;
    for (const id of row ? [row.id] : (ranks ?? []).map(idOf)) checked.add(id);
  }
  for (const known of groups) {
    if (known.ranks.every((rank) => checked.has(idOf(rank)))) checked.add(`group ${known.name}`);
  }
  return [...checked];
}

/** The known ranks of `all` or a stretch, provided that each of its numbers is known. */
function ranksOf(text: string, group: string | undefined, groups: readonly KnownGroup[]): KnownRank[] | undefined {
  const concerned = groups.filter(({ name }) => group === undefined || name === group);
  const known = concerned.flatMap(({ ranks }) => ranks);
  if (known.length === 0) return undefined;
  if (text === "all") return known;
  const stretch = /^([0-9]{1,9})(?:-([0-9]{1,9}))?(?::([0-9]{1,9}))?$/.exec(text);
  if (!stretch) return undefined;
  const first = Number(stretch[1]);
  const last = Number(stretch[2] ?? first);
  const step = Number(stretch[3] ?? 1);
  const found = known.filter(({ rank }) => rank >= first && rank <= last && (rank - first) % step === 0);
  const wanted = Math.floor((last - first) / step) + 1;
  return new Set(found.map(({ rank }) => rank)).size === wanted ? found : undefined;
}
