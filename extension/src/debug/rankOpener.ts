/** Opening a rank: its session and frame where it is paused, else the file at the line where it is. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { describe, isLive, shortLabel } from "../core/memberText.js";
import type { Member, TopFrame } from "../core/protocol.js";
import type { Log } from "../log.js";
import type { Job, Jobs } from "./jobs.js";

/** Which member of which job; a row of the Ranks view is one. */
export interface RankAddress {
  readonly jobId: string;
  readonly memberId: string;
}

const SESSION_SECONDS = 15;
const FOCUS_SECONDS = 2;
const STATUS_MILLISECONDS = 6000;

export class RankOpener implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];
  /** Counts what was asked to be opened: an older wish gives way to a newer one. */
  private latest = 0;

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
  ) {
    this.disposables.push(
      vscode.commands.registerCommand(COMMANDS.openRank, (address?: RankAddress) => this.open(address)),
    );
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private async open(address?: RankAddress): Promise<void> {
    const job = address && this.jobs.find(address.jobId);
    const member = job?.members.find(({ id }) => id === address?.memberId);
    if (!job || !member) return;
    const number = ++this.latest;
    const isWanted = (): boolean => number === this.latest && !job.hasEnded;
    try {
      if (!isLive(member)) {
        say(`${shortLabel(member)} · ${describe(member)}`);
        return;
      }
      await this.openSession(job, member);
      if (isWanted() && (await this.focus(job, member.id))) return;
      const frame = isWanted() ? await this.frameOf(job, member.id) : undefined;
      if (!isWanted()) return;
      if (frame) await show(frame);
      else say(`${shortLabel(member)} runs none of your code at the moment.`);
    } catch (error) {
      if (!isWanted()) return;
      const why = error instanceof Error ? error.message : String(error);
      await this.log.showError(`${shortLabel(member)} could not be opened: ${why}`);
    }
  }

  /** A rank beyond `maxSessions` gets its session now. */
  private async openSession(job: Job, member: Member): Promise<void> {
    if (member.session === "" || member.hasSession || member.isGreyed) return;
    const isOpen = until(
      SESSION_SECONDS,
      [this.jobs.onDidChangeRanks, this.jobs.onDidEnd],
      () => job.hasEnded || job.members.some(({ id, hasSession }) => id === member.id && hasSession),
    );
    await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: `Opening ${shortLabel(member)}` },
      async () => {
        await job.request("rankscope/openSession", { session: member.session });
        if (!(await isOpen)) throw new Error(`its session was not there within ${SESSION_SECONDS} s.`);
      },
    );
  }

  /** Whether VS Code shows the member's frame: only one that is paused has any. */
  private async focus(job: Job, memberId: string): Promise<boolean> {
    const isPaused = job.members.some(({ id, state }) => id === memberId && state === "paused");
    if (!isPaused) return false;
    const isShown = (): boolean => this.jobs.focused === job && this.jobs.focusedMember?.id === memberId;
    if (isShown() && vscode.debug.activeStackItem instanceof vscode.DebugStackFrame) {
      await vscode.commands.executeCommand("workbench.action.debug.callStackTop");
      return true;
    }
    const [focused, from] = [this.jobs.focused, this.jobs.focusedMember];
    const isFocused = until(FOCUS_SECONDS, [this.jobs.onDidChangeFocus], isShown);
    try {
      // A hub can take the focus away from its own sessions only.
      if (from && focused && focused !== job) await focused.request("rankscope/focus", { member: "", from: from.id });
      await job.request("rankscope/focus", { member: memberId, ...(from && { from: from.id }) });
    } catch (error) {
      // It may have run on just now: its line is shown instead.
      this.log.channel.info(`No focus on ${memberId}: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
    return isFocused;
  }

  private async frameOf(job: Job, memberId: string): Promise<TopFrame | null | undefined> {
    const { frames } = await job.request("rankscope/frames", { members: [memberId] });
    return frames[memberId] ?? job.frames.get(memberId);
  }
}

/** Wait for something that an event may bring; resolves to whether it came within the bound. */
function until(seconds: number, events: readonly vscode.Event<unknown>[], isSo: () => boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const subscriptions: vscode.Disposable[] = [];
    const settle = (isReached: boolean): void => {
      clearTimeout(timer);
      for (const subscription of subscriptions) subscription.dispose();
      resolve(isReached);
    };
    const timer = setTimeout(() => {
      settle(isSo());
    }, seconds * 1000);
    const check = (): void => {
      if (isSo()) settle(true);
    };
    for (const event of events) subscriptions.push(event(check));
    check();
  });
}

async function show(frame: TopFrame): Promise<void> {
  const at = new vscode.Position(frame.line - 1, 0);
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(frame.path));
  const { text } = document.lineAt(Math.min(at.line, document.lineCount - 1));
  const start = at.with({ character: text.length - text.trimStart().length });
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(start, start) });
}

function say(sentence: string): void {
  vscode.window.setStatusBarMessage(sentence, STATUS_MILLISECONDS);
}
