/** Time-outs that run on while somebody is paused: the line above the Ranks view, and which to warn of. */

import { duration } from "./memberText.js";
import type { PausedFacts, PauseLimit } from "./protocol.js";

/** Told in full; the rest is counted. */
const MAX_TOLD = 2;
const WARN_SECONDS = 30;

/**
 * `paused 42 s · ray.get(timeout=60) of driver train.py ends in 18 s`; empty when nobody is paused or nothing runs out.
 * `age` is how many seconds ago the hub told the facts.
 */
export function lineOf(facts: PausedFacts, age: number): string {
  const limits = facts.limits ?? [];
  if (limits.length === 0) return "";
  const more = limits.length - MAX_TOLD + (facts.limitsLeftOut ?? 0);
  return [
    `paused ${duration((facts.pausedSeconds ?? 0) + age)}`,
    ...limits.slice(0, MAX_TOLD).map((limit) => textOf(limit, age)),
    ...(more > 0 ? [`${more} more time-out${more === 1 ? "" : "s"}`] : []),
  ].join(" · ");
}

function textOf(limit: PauseLimit, age: number): string {
  const name = `${limit.what} of ${limit.label}`;
  const left = leftOf(limit, age);
  if (limit.isOver) return `${name} has run out`;
  if (left === null) return `${name} may run out, nobody knows when`;
  return left > 0 ? `${name} ends in ${duration(left)}` : `${name} ends now`;
}

function leftOf({ secondsLeft }: PauseLimit, age: number): number | null {
  return secondsLeft === null ? null : Math.max(0, secondsLeft - age);
}

/** Those that fail within half a minute unless somebody continues. */
export function dueOf(facts: PausedFacts, age: number): PauseLimit[] {
  return (facts.limits ?? []).filter((limit) => {
    const left = leftOf(limit, age);
    return limit.fails && !limit.isOver && left !== null && left > 0 && left < WARN_SECONDS;
  });
}

/** The sentence of a warning. */
export function warningOf(limit: PauseLimit, age: number): string {
  return `A pause may fail the job: ${textOf(limit, age)}.`;
}
