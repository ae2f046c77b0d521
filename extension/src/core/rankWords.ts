/** Rank sets and ranks in words, for people. */

import type { Member } from "./protocol.js";

/** `rank 2`, `ranks 0, 3–5`, `rank 2 of actor`, `all ranks`, `driver`. The set must be one that can be read. */
export function inWords(ranks: string | undefined): string {
  if (ranks === undefined) return "every process";
  const phrases: string[] = [];
  let numbers: string[] = [];
  let group = "";
  const finishNumbers = () => {
    if (numbers.length > 0) phrases.push(ofGroup(numbersInWords(numbers), group));
    numbers = [];
  };
  for (const piece of ranks.split(",").map((part) => part.trim())) {
    const slash = piece.lastIndexOf("/");
    const named = slash >= 0 ? piece.slice(0, slash) : /^[0-9]/.test(piece) ? group : "";
    if (named !== group) finishNumbers();
    group = named;
    const rest = piece.slice(slash + 1);
    if (/^[0-9]/.test(rest)) numbers.push(rest);
    else {
      finishNumbers();
      phrases.push(rest === "all" ? ofGroup("all ranks", group) : scopeInWords(rest));
    }
  }
  finishNumbers();
  return phrases.join(" and ");
}

function ofGroup(text: string, group: string): string {
  return group === "" ? text : `${text} of ${group}`;
}

function numbersInWords(numbers: readonly string[]): string {
  const isOne = numbers.length === 1 && /^[0-9]+$/.test(numbers[0] ?? "");
  return `${isOne ? "rank" : "ranks"} ${numbers.map(stretchInWords).join(", ")}`;
}

function stretchInWords(stretch: string): string {
  const [span = "", step] = stretch.split(":");
  const text = span.replace("-", "–");
  return step === undefined ? text : `${text} in steps of ${step}`;
}

function scopeInWords(text: string): string {
  const scope = /^(local|node):(.*)$/s.exec(text);
  if (!scope) return text;
  const [, axis = "", numbers = ""] = scope;
  const isOne = /^[0-9]+$/.test(numbers);
  const words = stretchInWords(numbers);
  if (axis === "local") return `local ${isOne ? "rank" : "ranks"} ${words} of every node`;
  return `all ranks of ${isOne ? "node" : "nodes"} ${words}`;
}

/** `actor 2`, `driver`, or for what is neither the hub's label. */
export function nameOf(member: Member): string {
  if (member.role === "rank" && member.rank !== null) return `${member.group || "rank"} ${member.rank}`;
  return member.role === "driver" ? "driver" : member.label;
}

/** Up to three by name; more of one group as `12 ranks of actor`; more of several as `12 processes`. */
export function namesOf(members: readonly Member[]): string {
  const [first] = members;
  if (members.length <= 3 || !first) return members.map(nameOf).join(", ");
  const areOfOneGroup = members.every(({ role, group }) => role === "rank" && group === first.group);
  if (areOfOneGroup) return first.group ? `${members.length} ranks of ${first.group}` : `${members.length} ranks`;
  const noun = members.every(({ role }) => role === "rank") ? "ranks" : "processes";
  return `${members.length} ${noun}`;
}
