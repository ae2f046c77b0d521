/** A comparison in words, and as text that can be pasted. */

import { columnsOf, isSound } from "./compareTable.js";
import { countOf, grouped } from "./memberNames.js";
import { listed } from "./outcome.js";
import type { CompareGroup, Comparison, CompareRow } from "./protocol.js";

/** `1,024 ranks agree`, `2 different answers from 16 ranks`; empty when nobody has answered. */
export function verdict({ rows, groups }: Comparison): string {
  const answered = rows.filter(({ kind }) => isAnswer(kind)).length;
  if (answered === 0) return "";
  const ranks = countOf(answered, "rank");
  if (answered === 1) return `${ranks} has answered`;
  const different = groups.filter(({ kind }) => isAnswer(kind)).length;
  return different <= 1 ? `${ranks} agree` : `${countOf(different, "different answer")} from ${ranks}`;
}

/** Neither an error nor silence. */
export function isAnswer(kind: CompareRow["kind"]): boolean {
  return kind === "number" || kind === "tensor" || kind === "text";
}

/** So many groups can be read at a glance. */
const MAX_GROUPS = 12;

/** The groups to look at first: all when they are few, else the largest, and whatever stands out. */
export function notableGroups({ groups, rows, stats }: Comparison): readonly CompareGroup[] {
  if (groups.length <= MAX_GROUPS) return groups;
  const byMember = new Map(rows.map((row) => [row.member, row]));
  const outliers = new Set(stats?.outliers);
  const standsOut = ({ members: [first = ""] }: CompareGroup): boolean => {
    const row = byMember.get(first);
    return outliers.has(first) || (row !== undefined && (!isSound(row) || !isAnswer(row.kind)));
  };
  const ordered = [
    ...groups.filter(({ count }) => count > 1),
    ...groups.filter((group) => group.count === 1 && standsOut(group)),
    ...groups.filter((group) => group.count === 1 && !standsOut(group)),
  ];
  return ordered.slice(0, MAX_GROUPS);
}

/** What is not there, and why: one sentence each. */
export function notesOf({ rows, late, absent, warning }: Comparison): string[] {
  const running = rows.filter(({ kind }) => kind === "running").length;
  const failed = rows.filter(({ kind }) => kind === "error").length;
  const notes: string[] = [];
  if (absent) notes.push(`There is no such rank: ${absent}.`);
  if (late.length > 0) notes.push(`No answer in time from ${listed(late)}.`);
  if (failed > 0) notes.push(`${countOf(failed, "rank")} could not answer.`);
  if (running > 0) {
    const does = running === 1 ? "rank runs" : "ranks run";
    notes.push(`${grouped(running)} ${does}: there only names, attributes and indexes can be looked up.`);
  }
  if (warning) notes.push(/[.!?]$/.test(warning) ? warning : `${warning}.`);
  return notes;
}

/** Groups, then a table with tabs between its cells, as a spreadsheet takes it. */
export function comparisonAsText(answer: Comparison, title: string): string {
  const columns = columnsOf(answer);
  const oneLine = (text: string): string => text.replaceAll(/\s*[\n\t]\s*/g, " ");
  const lines = [
    title,
    ...answer.groups.map(({ ranks, count, text }) => `${ranks} (${count}): ${oneLine(text)}`),
    ...notesOf(answer),
    "",
    columns.map((column) => column.title).join("\t"),
    ...answer.rows.map((row) => columns.map((column) => oneLine(column.text(row))).join("\t")),
  ];
  return lines.join("\n") + "\n";
}
