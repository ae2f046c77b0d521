/** What a request to several ranks came to, in one sentence. */

import type { Action, Outcome } from "./protocol.js";

const MAX_NAMES = 12;

const WORDS: Readonly<Record<Action, { readonly do: string; readonly done: string; readonly pending: string }>> = {
  continue: { do: "continue", done: "continued", pending: "continuing" },
  pause: { do: "pause", done: "paused", pending: "pause pending" },
  next: { do: "step", done: "stepped", pending: "step pending" },
  stepIn: { do: "step in", done: "stepped", pending: "step pending" },
  stepOut: { do: "step out", done: "stepped", pending: "step pending" },
  runToCursor: { do: "run to the cursor", done: "there", pending: "on the way to the cursor" },
};

/** What a rank that was told something a while ago has yet to do: `pause pending`. */
export function pendingText(action: string): string {
  return Object.hasOwn(WORDS, action) ? WORDS[action as Action].pending : "step pending";
}

/** What a person has to know; `undefined` when everybody did as asked, or will arrive by himself. */
export function complaint(action: Action, outcome: Outcome): string | undefined {
  const sentences: string[] = [];
  const { late, absent = [] } = outcome;
  const words = WORDS[action];
  if (late.length > 0) {
    const total = count(outcome);
    const has = late.length === 1 ? "has" : "have";
    const who = total === 1 ? `${listed(late)} ${has}` : `${late.length} of ${total} ${has}`;
    const names = total === 1 ? "" : `: ${listed(late)}`;
    sentences.push(`${who} not ${words.done} in time${names}.`);
  }
  const byReason = new Map<string, string[]>();
  for (const [label, why] of Object.entries(outcome.failed)) {
    byReason.set(why, [...(byReason.get(why) ?? []), label]);
  }
  for (const [why, labels] of byReason) sentences.push(`${listed(labels)} could not ${words.do}: ${ended(why)}`);
  if (absent.length > 0) sentences.push(`Not in the job: ${listed(absent)}.`);
  return sentences.length > 0 ? sentences.join(" ") : undefined;
}

/** What is worth a word in the status bar: nobody was concerned, or some are yet to arrive. */
export function remark(action: Action, outcome: Outcome): string | undefined {
  const { done, pending = [] } = outcome;
  if (count(outcome) === 0) {
    return action === "pause" ? "Nobody to pause: none of these ranks runs." : "None of these ranks is stopped.";
  }
  if (pending.length === 0) return undefined;
  const who = pending.map(({ label, call, waitsFor }) => {
    const where = call ? ` in ${call}` : "";
    return `${label}${where}${waitsFor.length > 0 ? `, waits for ${listed(waitsFor, 4)}` : ""}`;
  });
  const words = WORDS[action];
  return `${done.length} of ${count(outcome)} ${words.done} · ${words.pending}: ${listed(who, 4)}`;
}

/** `a, b, … and 12 more`. */
export function listed(names: readonly string[], most = MAX_NAMES): string {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} … and ${names.length - most} more`;
}

function count({ done, late, failed, pending = [] }: Outcome): number {
  return done.length + late.length + pending.length + Object.keys(failed).length;
}

function ended(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
