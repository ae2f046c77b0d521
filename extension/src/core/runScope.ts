/** Whom Continue, Pause and the steps act on: what a person has picked, as the hub is asked for it. */

import { isLive, shortLabel } from "./memberText.js";
import type { Action, Member, Requests } from "./protocol.js";

/** `rank` and `group` go with the focus; a `set` is a rank set as written. */
export type RunScope =
  { readonly kind: "rank" | "group" | "stopped" } | { readonly kind: "set"; readonly ranks: string };

export const STOPPED: RunScope = { kind: "stopped" };

export type Whom = Omit<Requests["rankscope/control"]["arguments"], "action">;

/** What is looked at when a command comes. */
export interface Focus {
  readonly members: readonly Member[];
  readonly focused: Member | undefined;
}

/** As a person reads it in the status bar: `stopped ranks`, `world 2 (focused)`, `all of world`, `0-3`. */
export function scopeText(scope: RunScope, focus: Focus): string {
  const member = memberOf(scope, focus);
  switch (scope.kind) {
    case "stopped":
      return "stopped ranks";
    case "rank":
      return member ? `${shortLabel(member)} (focused)` : "focused rank";
    case "group":
      return member ? `all of ${member.group || "its group"}` : "focused rank's group";
    case "set":
      return scope.ranks === "all" ? "all ranks" : scope.ranks;
  }
}

/** What to ask the hub for, or a sentence that says why there is nobody to ask. */
export function whomOf(scope: RunScope, action: Action, focus: Focus): Whom | string {
  const member = memberOf(scope, focus);
  switch (scope.kind) {
    case "stopped":
      // nobody who is stopped can be paused: then it is the others who are meant
      return action === "pause" ? everybodyOf(focus) : { scope: "stopped" };
    case "rank":
      return member ? { members: [member.id] } : NO_FOCUS;
    case "group":
      return member ? { scope: "group", member: member.id } : NO_FOCUS;
    case "set":
      return { ranks: scope.ranks };
  }
}

const NO_FOCUS = "No rank is focused: choose one in the call stack or in the Ranks view.";

/** The driver is no rank, and waits in a call that no pause interrupts; alone, it is what a person means. */
export function everybodyOf({ members }: Pick<Focus, "members">): Whom {
  return members.some((member) => member.role === "rank" && isLive(member)) ? { ranks: "all" } : {};
}

/** The focused one; for a group, any rank where there is one group only. */
function memberOf({ kind }: RunScope, { members, focused }: Focus): Member | undefined {
  if (kind === "rank") return focused;
  if (kind !== "group" || focused?.role === "rank") return kind === "group" ? focused : undefined;
  const ranks = members.filter((member) => member.role === "rank" && isLive(member));
  return new Set(ranks.map(({ group }) => group)).size === 1 ? ranks[0] : undefined;
}
