/** How merged stacks read: where a stretch is, who is in it and what they do there; and all of it as text. */

import { listed } from "./outcome.js";
import type { Icon } from "./memberText.js";
import { fileName, type MemberNames } from "./memberNames.js";
import type { MergedStacks, StackNode, StackState } from "./protocol.js";
import { type End, endOf, type Frame, type Stretch, type Told } from "./stackTree.js";

/** What the members of a stretch do, when they do not all do the same: `mixed`. */
export type Tone = StackState | "mixed";

/** `train:42`; of a module's own level `train.py:42`. */
export function placeOf({ name, path, line, kind }: Frame | StackNode): string {
  if (kind === "thread") return name;
  if (name === "") return "none of your code";
  const place = name.startsWith("<") && path !== "" ? fileName(path) : name;
  return line > 0 ? `${place}:${line}` : place;
}

/** `train.py`, unless the place says it. */
export function fileOf({ name, path, kind }: Frame): string {
  return kind === "thread" || name.startsWith("<") ? "" : fileName(path);
}

/** `breakpoint`, `in all_reduce`, `running`. */
export function phraseOf({ member, state, call }: End, names: MemberNames): string {
  if (state === "paused") {
    const reason = names.member(member)?.stopped?.reason ?? "pause";
    return reason === "pause" ? "paused" : reason;
  }
  if (call !== "") return `in ${call}`;
  return state === "blocked" ? "blocked" : "running";
}

/** What all of them do: `in all_reduce`, `1 breakpoint, 3 in all_reduce`; the fewest first. */
export function doings(ends: readonly End[], names: MemberNames): string {
  const counts = new Map<string, number>();
  for (const end of ends) {
    const phrase = phraseOf(end, names);
    counts.set(phrase, (counts.get(phrase) ?? 0) + 1);
  }
  const [only] = counts.keys();
  if (counts.size <= 1) return only ?? "";
  return [...counts]
    .sort(([, a], [, b]) => a - b)
    .map(([phrase, count]) => `${count} ${phrase}`)
    .join(", ");
}

/** Every end in a stretch and below. */
export function endsIn({ ends, children }: Stretch): End[] {
  return [...ends, ...children.flatMap(endsIn)];
}

export function toneOf(ends: readonly End[]): Tone {
  const [first] = ends;
  return first && ends.every(({ state }) => state === first.state) ? first.state : "mixed";
}

const ICONS: Readonly<Record<Tone, Icon>> = {
  paused: { name: "debug-pause", color: "debugIcon.pauseForeground" },
  blocked: { name: "watch", color: "charts.yellow" },
  running: { name: "play-circle", color: "debugIcon.startForeground" },
  mixed: { name: "type-hierarchy-sub" },
};

export function iconOf(tone: Tone): Icon {
  return ICONS[tone];
}

/** The whole answer as text: one stack per place, each with all its frames, outermost first. */
export function stacksAsText(answer: MergedStacks, names: MemberNames, title: string): string {
  const blocks: { readonly size: number; readonly text: string }[] = [];
  const walk = (node: StackNode, above: readonly string[], told: Told): void => {
    const lines = node.name === "" ? above : [...above, `  ${lineOf(node)}`];
    const deeper = new Set(node.children.flatMap(({ members }) => members));
    const ends = node.members.filter((id) => !deeper.has(id)).map((id) => endOf(id, told, names));
    for (const child of node.children) {
      walk(child, lines, { state: child.state ?? told.state, call: child.call ?? told.call });
    }
    if (ends.length === 0) return;
    const who = names.counted(ends.map(({ member }) => member));
    blocks.push({ size: ends.length, text: [`${who} · ${doings(ends, names)}`, ...lines].join("\n") });
  };
  walk(answer.tree, [], { state: undefined, call: "" });
  blocks.sort((a, b) => a.size - b.size);
  return [title, ...blocks.map(({ text }) => text), ...missing(answer)].join("\n\n") + "\n";
}

function lineOf({ name, path, line, kind }: StackNode): string {
  if (kind === "thread") return `[${name}]`;
  return path === "" ? name : `${name}  ${path}${line > 0 ? `:${line}` : ""}`;
}

/** Who is not in the tree, and whose stack came another way, as sentences. */
export function missing({ late, failed, native }: MergedStacks): string[] {
  const sentences: string[] = [];
  if (late.length > 0) sentences.push(`No answer in time: ${late.map(({ label }) => label).join(", ")}.`);
  const byReason = new Map<string, string[]>();
  for (const [label, why] of Object.entries(failed)) byReason.set(why, [...(byReason.get(why) ?? []), label]);
  for (const [why, labels] of byReason) sentences.push(`${labels.join(", ")}: ${why}`);
  return [...sentences, readFromOutside({ native })].filter((sentence) => sentence !== "");
}

/** Whose interpreter did not answer, so that py-spy has read its stack; empty: nobody's. */
export function readFromOutside({ native }: Pick<MergedStacks, "native">): string {
  return native.length === 0 ? "" : `Read from outside by py-spy: ${listed(native)}.`;
}
