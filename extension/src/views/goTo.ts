/** From a place in a view to the line, with a rank that stands there in focus. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { cut, MemberNames } from "../core/memberNames.js";
import type { RankAddress } from "../debug/rankOpener.js";
import type { Job } from "../debug/jobs.js";

const STATUS_MILLISECONDS = 6000;

/**
 * Show the line; of the members one that is paused takes the focus, so that Variables and console are its own. Without a
 * line the member is shown where it stands. Throws when the file cannot be opened.
 */
export async function goTo(
  job: Job,
  members: readonly string[],
  frame: { readonly path: string; readonly line: number } | undefined,
): Promise<void> {
  const isPaused = new Set(job.members.filter(({ state }) => state === "paused").map(({ id }) => id));
  const member = members.find((id) => isPaused.has(id)) ?? (frame ? undefined : members[0]);
  if (member !== undefined) {
    const address: RankAddress = { jobId: job.id, memberId: member };
    await vscode.commands.executeCommand(COMMANDS.openRank, address);
  }
  if (!frame) return;
  const names = new MemberNames(job.members);
  vscode.window.setStatusBarMessage(`Here: ${cut(names.counted(members), 60)}`, STATUS_MILLISECONDS);
  await showLine(frame);
}

/** Put the cursor on the line, before its first word. */
export async function showLine(frame: { readonly path: string; readonly line: number }): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(frame.path));
  const { text } = document.lineAt(Math.min(frame.line, document.lineCount) - 1);
  const start = new vscode.Position(frame.line - 1, text.length - text.trimStart().length);
  await vscode.window.showTextDocument(document, {
    selection: new vscode.Range(start, start),
    viewColumn: vscode.ViewColumn.One,
  });
}
