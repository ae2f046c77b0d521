/** The hover over the text behind a line: its breakpoints rank by rank. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { hoverLines, type ShownBreakpoint, type ShownJob } from "../core/breakpointText.js";
import type { Member } from "../core/protocol.js";

/** Markdown with a link to "Limit to ranks…", the only command that it may run; what comes from the job is escaped. */
export function breakpointHover(
  uri: vscode.Uri,
  lineNumber: number,
  breakpoints: readonly ShownBreakpoint[],
  standing: readonly Member[],
  job: ShownJob | undefined,
): vscode.MarkdownString {
  const hover = new vscode.MarkdownString();
  hover.isTrusted = { enabledCommands: [COMMANDS.limitToRanks] };
  for (const line of hoverLines(breakpoints, standing, job)) {
    const isItem = line.startsWith("- ");
    hover.appendMarkdown(isItem ? "- " : "\n");
    hover.appendText(isItem ? line.slice(2) : line);
    hover.appendMarkdown(isItem ? "\n" : "\n\n");
  }
  if (breakpoints.length > 0) {
    const argument = encodeURIComponent(JSON.stringify([{ lineNumber, uri: uri.toString() }]));
    hover.appendMarkdown(`\n[Limit to ranks…](command:${COMMANDS.limitToRanks}?${argument})`);
  }
  return hover;
}
