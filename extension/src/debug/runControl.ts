/** Pause and continue, for one rank or many: VS Code itself acts on the focused session only. */

import * as vscode from "vscode";

import { COMMANDS, VIEWS } from "../contributions.js";
import { arrange, inOrder } from "../core/jobTree.js";
import { describe, isLive, shortLabel } from "../core/memberText.js";
import { complaint } from "../core/outcome.js";
import type { Action, Member, Requests } from "../core/protocol.js";
import type { Log } from "../log.js";
import type { Job, Jobs } from "./jobs.js";
import type { RankAddress } from "./rankOpener.js";

type Whom = Omit<Requests["rankscope/control"]["arguments"], "action">;

interface RankItem extends vscode.QuickPickItem {
  readonly address?: RankAddress;
}

export class RunControl implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];

  constructor(
    private readonly jobs: Jobs,
    private readonly log: Log,
  ) {
    this.register(COMMANDS.pauseRank, (address?: RankAddress) => this.controlOne("pause", address));
    this.register(COMMANDS.continueRank, (address?: RankAddress) => this.controlOne("continue", address));
    this.register(COMMANDS.pauseAll, () => this.pauseAll());
    this.register(COMMANDS.continueStopped, () => this.controlFocused("continue", () => ({ scope: "stopped" })));
    this.register(COMMANDS.findRank, () => this.find());
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private register(command: string, run: (address?: RankAddress) => Promise<void>): void {
    this.disposables.push(vscode.commands.registerCommand(command, run));
  }

  /** The rank of the row, else the focused one. */
  private async controlOne(action: Action, address?: RankAddress): Promise<void> {
    const job = address ? this.jobs.find(address.jobId) : this.jobs.focused;
    const memberId = address ? address.memberId : this.jobs.focusedMember?.id;
    if (job && memberId) await this.control(job, action, { members: [memberId] });
  }

  /** The driver is no rank, and waits in a call that no pause interrupts; alone, it is what a person means. */
  private async pauseAll(): Promise<void> {
    await this.controlFocused("pause", (job) => (job.members.some(isLiveRank) ? { ranks: "all" } : {}));
  }

  private async controlFocused(action: Action, whom: (job: Job) => Whom): Promise<void> {
    const job = this.jobs.focused;
    if (job) await this.control(job, action, whom(job));
  }

  private async control(job: Job, action: Action, whom: Whom): Promise<void> {
    try {
      const outcome = await vscode.window.withProgress({ location: { viewId: VIEWS.ranks } }, () =>
        job.request("rankscope/control", { action, ...whom }),
      );
      const sentence = complaint(action, outcome);
      if (sentence) this.warn(sentence);
    } catch (error) {
      if (job.hasEnded) return;
      const why = error instanceof Error ? error.message : String(error);
      await this.log.showError(`Could not ${action}: ${why}`);
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

function isLiveRank(member: Member): boolean {
  return member.role === "rank" && isLive(member);
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
