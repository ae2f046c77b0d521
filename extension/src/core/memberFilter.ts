/** What of many ranks is shown: a rank set, and what they do. */

import { isBlocked, isLive, type Standing } from "./memberText.js";
import type { Member } from "./protocol.js";
import { membersIn } from "./rankGroups.js";
import { RankSet, type RankSetNames } from "./rankSet.js";

export type Doing = "paused" | "blocked" | "running" | "ended";

export interface MemberFilter {
  /** As a person writes it; empty: everybody. */
  readonly ranks: string;
  /** Empty: whatever they do. */
  readonly doing: Doing | "";
}

export const NO_FILTER: MemberFilter = { ranks: "", doing: "" };

const WORDS: Readonly<Record<Doing, string>> = {
  paused: "paused",
  blocked: "in a blocking call",
  running: "running",
  ended: "ended",
};

/** `Only 0-3, paused`; empty without a filter. */
export function filterInWords({ ranks, doing }: MemberFilter): string {
  const parts = [ranks, doing === "" ? "" : WORDS[doing]].filter(Boolean);
  return parts.length > 0 ? `Only ${parts.join(", ")}` : "";
}

/** What a filter calls it. */
export function doingOf(member: Member, standing: Standing): Doing {
  if (member.state === "paused") return "paused";
  if (!isLive(member)) return "ended";
  return isBlocked(member, standing) ? "blocked" : "running";
}

/** The members of the filter's ranks by id; all when it has none. Throws a RankSetError. */
export function idsIn({ ranks }: MemberFilter, members: readonly Member[], names: RankSetNames): ReadonlySet<string> {
  const inSet = ranks === "" ? members : membersIn(RankSet.parse(ranks, names), members);
  return new Set(inSet.map(({ id }) => id));
}
