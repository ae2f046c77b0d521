/** What a request to several ranks came to, in one sentence. */

import type { Action, Outcome } from "./protocol.js";

const MAX_NAMES = 12;

/** `undefined` when everybody did as asked. */
export function complaint(action: Action, outcome: Outcome): string | undefined {
  const sentences: string[] = [];
  const { late } = outcome;
  if (late.length > 0) {
    const what = action === "pause" ? "paused" : "continued";
    const why = action === "pause" ? " A rank in a blocking call pauses when the call returns." : "";
    const total = count(outcome);
    const has = late.length === 1 ? "has" : "have";
    const who = total === 1 ? `${listed(late)} ${has}` : `${late.length} of ${total} ${has}`;
    const names = total === 1 ? "" : `: ${listed(late)}`;
    sentences.push(`${who} not ${what} in time${names}.${why}`);
  }
  const byReason = new Map<string, string[]>();
  for (const [label, why] of Object.entries(outcome.failed)) {
    byReason.set(why, [...(byReason.get(why) ?? []), label]);
  }
  for (const [why, labels] of byReason) sentences.push(`${listed(labels)} could not ${action}: ${ended(why)}`);
  return sentences.length > 0 ? sentences.join(" ") : undefined;
}

/** `a, b, … and 12 more`. */
export function listed(names: readonly string[], most = MAX_NAMES): string {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} … and ${names.length - most} more`;
}

function count({ done, late, failed }: Outcome): number {
  return done.length + late.length + Object.keys(failed).length;
}

function ended(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
