/** Continue, pause and step ranks, one or many: VS Code itself acts on the focused session only. */

import * as vscode from "vscode";

import { COMMANDS, VIEWS } from "../contributions.js";
import { arrange, inOrder } from "../core/jobTree.js";
import { describe, shortLabel } from "../core/memberText.js";
import { complaint, remark } from "../core/outcome.js";
import type { Action, Member, Requests } from "../core/protocol.js";
import type { RankNode } from "../core/rankModel.js";
import { everybodyOf, type Focus, type Whom, whomOf } from "../core/runScope.js";
import type { Log } from "../log.js";
import type { Job, Jobs } from "./jobs.js";
import type { RankAddress } from "./rankOpener.js";
import type { ScopeChoice } from "./scopeChoice.js";

type Place = Pick<Requests["rankscope/control"]["arguments"], "path" | "line">;

interface RankItem extends vscode.QuickPickItem {
  readonly address?: RankAddress;
}

const REMARK_MILLISECONDS = 8000;

/**
 * The commands, for the ranks that `scope` says, and those of a row, for the ranks below it. They are apart since VS Code
 * passes the row with the focus to the commands of a view's title as well.
 */
export class RunControl implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
    private readonly scope: ScopeChoice,
  ) {
    this.register(COMMANDS.continueRanks, () => this.inScope("continue"));
    this.register(COMMANDS.pauseRanks, () => this.inScope("pause"));
    this.register(COMMANDS.stepOver, () => this.inScope("next"));
    this.register(COMMANDS.stepInto, () => this.inScope("stepIn"));
    this.register(COMMANDS.stepOut, () => this.inScope("stepOut"));
    this.register(COMMANDS.runToCursor, () => this.toCursor((place) => this.inScope("runToCursor", place)));
    this.register(COMMANDS.continueRow, (row) => this.below(row, "continue"));
    this.register(COMMANDS.pauseRow, (row) => this.below(row, "pause"));
    this.register(COMMANDS.stepOverRow, (row) => this.below(row, "next"));
    this.register(COMMANDS.stepIntoRow, (row) => this.below(row, "stepIn"));
    this.register(COMMANDS.stepOutRow, (row) => this.below(row, "stepOut"));
    this.register(COMMANDS.runRowToCursor, (row) => this.toCursor((place) => this.below(row, "runToCursor", place)));
    this.register(COMMANDS.pauseAll, () => this.focusedJob((job) => this.control(job, "pause", everybodyOf(job))));
    this.register(COMMANDS.continueStopped, () =>
      this.focusedJob((job) => this.control(job, "continue", { scope: "stopped" })),
    );
    this.register(COMMANDS.findRank, () => this.find());
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private register(command: string, run: (row?: RankNode) => Promise<void>): void {
    this.disposables.push(vscode.commands.registerCommand(command, run));
  }

  private async inScope(action: Action, place: Place = {}): Promise<void> {
    const job = this.jobs.focused;
    if (!job) return;
    const whom = whomOf(this.scope.present, action, this.focusIn(job));
    if (typeof whom === "string") void vscode.window.showInformationMessage(whom);
    else await this.control(job, action, { ...whom, ...place });
  }

  private async below(row: RankNode | undefined, action: Action, place: Place = {}): Promise<void> {
    const job = row && this.jobs.find(row.jobId);
    if (job) await this.control(job, action, { members: idsBelow(row), ...place });
  }

  private async toCursor(run: (place: Place) => Promise<void>): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== "python") {
      void vscode.window.showInformationMessage("Put the cursor on a line of a Python file.");
      return;
    }
    const line = editor.selection.active.line + 1;
    await run({ path: editor.document.uri.fsPath, line });
  }

  private async focusedJob(act: (job: Job) => Promise<void>): Promise<void> {
    const job = this.jobs.focused;
    if (job) await act(job);
  }

  private focusIn(job: Job): Focus {
    return { members: job.members, focused: job === this.jobs.focused ? this.jobs.focusedMember : undefined };
  }

  private async control(job: Job, action: Action, whom: Whom): Promise<void> {
    // a step keeps the focus where it is, whoever arrives first
    const { focused } = this.focusIn(job);
    const focus = focused && action !== "continue" && action !== "pause" ? { focus: focused.id } : {};
    try {
      const outcome = await vscode.window.withProgress({ location: { viewId: VIEWS.ranks } }, () =>
        job.request("rankscope/control", { action, ...whom, ...focus }),
      );
      const sentence = complaint(action, outcome);
      if (sentence) this.warn(sentence);
      const said = remark(action, outcome);
      if (said) vscode.window.setStatusBarMessage(`$(info) ${said}`, REMARK_MILLISECONDS);
    } catch (error) {
      if (job.hasEnded) return;
      const why = error instanceof Error ? error.message : String(error);
      await this.log.showError(`The ranks could not be told to ${action}: ${why}`);
    }
  }

  private warn(sentence: string): void {
    this.log.channel.warn(sentence);
    void vscode.window.showWarningMessage(sentence);
  }

  private async find(): Promise<void> {
    const jobs = this.jobs.all;
    const items = jobs.flatMap((job) => [
      ...(jobs.length > 1 ? [{ label: job.name, kind: vscode.QuickPickItemKind.Separator }] : []),
      ...inOrder(arrange(job.members)).map((member) => itemOf(job, member)),
    ]);
    const picked = await vscode.window.showQuickPick<RankItem>(items, {
      title: "Find Rank",
      placeHolder: "Rank, state, function, file, node or pid",
      matchOnDescription: true,
      matchOnDetail: true,
    });
    if (picked?.address) await vscode.commands.executeCommand(COMMANDS.openRank, picked.address);
  }
}

/** A rank of its own: its children, which seldom stop, go with it only where a whole group is meant. */
function idsBelow(node: RankNode): string[] {
  if (node.memberId !== "") return [node.memberId];
  return node.children.flatMap(idsBelow);
}

function itemOf(job: Job, member: Member): RankItem {
  const node = member.node === null ? [] : [`node-${member.node}`];
  return {
    label: shortLabel(member),
    description: describe(member, { frame: job.frames.get(member.id), isLate: job.late.has(member.id) }),
    detail: [member.group, ...node, member.host, `pid ${member.pid}`].filter(Boolean).join(" · "),
    address: { jobId: job.id, memberId: member.id },
  };
}
