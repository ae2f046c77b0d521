/** The graph of merged stacks, in a panel beside the editors. */

import * as vscode from "vscode";

import { COMMANDS, PANELS } from "../contributions.js";
import { countOf } from "../core/memberNames.js";
import type { FromStacks, ToStacks } from "../core/panelMessages.js";
import { RankSetError } from "../core/rankSet.js";
import { findStretch, graphed, graphOf } from "../core/stackGraph.js";
import { missing } from "../core/stackText.js";
import { countPlaces, lastFrame } from "../core/stackTree.js";
import type { Jobs } from "../debug/jobs.js";
import type { Log } from "../log.js";
import { goTo } from "./goTo.js";
import { Panel } from "./panel.js";
import type { StackSource } from "./stackSource.js";

const KIND = { id: PANELS.stacks, title: "Merged Stacks", script: "stacks" };

export class StacksPanel implements vscode.Disposable {
  private readonly panel: Panel<ToStacks, FromStacks>;
  private readonly disposables: vscode.Disposable[] = [];
  /** Boxes for many places that were opened. */
  private readonly opened = new Set<string>();
  private refused = "";

  constructor(
    private readonly jobs: Jobs,
    private readonly source: StackSource,
    private readonly log: Log,
    extensionUri: vscode.Uri,
  ) {
    this.panel = new Panel<ToStacks, FromStacks>(KIND, extensionUri);
    source.watch(() => this.panel.isVisible);
    this.disposables.push(
      this.panel,
      source.onDidChange(() => {
        this.post();
      }),
      this.panel.onDidReceive((message) => {
        void this.take(message);
      }),
      vscode.commands.registerCommand(COMMANDS.showStacksGraph, () => {
        this.panel.open();
      }),
    );
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private async take(message: FromStacks): Promise<void> {
    try {
      switch (message.type) {
        case "ready":
          this.post();
          this.source.wake();
          break;
        case "open":
          await this.open(message.id);
          break;
        case "expand":
          this.opened.add(message.id);
          this.post();
          break;
        case "filter":
          this.filter(message);
          break;
        case "refresh":
          await this.source.refresh();
          break;
        case "copy":
          await vscode.commands.executeCommand(COMMANDS.copyStacks);
          break;
      }
    } catch (error) {
      await this.log.showError(error instanceof Error ? error.message : String(error));
    }
  }

  private filter({ ranks, doing }: Extract<FromStacks, { type: "filter" }>): void {
    this.refused = "";
    try {
      this.source.filter = { ranks: ranks.trim() === "all" ? "" : ranks.trim(), doing };
    } catch (error) {
      if (!(error instanceof RankSetError)) throw error;
      this.refused = error.message;
      this.post();
    }
  }

  private async open(id: string): Promise<void> {
    const { shown } = this.source;
    const stretch = shown && findStretch(shown.stacks.stretches, id);
    if (!stretch) return;
    const { path, line } = lastFrame(stretch);
    await goTo(shown.job, stretch.members, path === "" || line <= 0 ? undefined : { path, line });
  }

  private post(): void {
    const { shown, filter, error } = this.source;
    const stretches = shown ? graphed(shown.stacks.stretches, shown.names) : [];
    const members = new Set(stretches.flatMap((stretch) => stretch.members));
    const places = countOf(countPlaces(stretches), "place");
    this.panel.post({
      type: "stacks",
      job: shown?.job.name ?? this.jobs.focused?.name ?? "",
      summary: shown && members.size > 0 ? `${shown.names.amount(members)} in ${places}` : "",
      nodes: shown ? graphOf(stretches, shown.names, this.opened) : [],
      total: members.size,
      ...filter,
      notes: [this.refused, error, ...(shown ? missing(shown.answer) : [])].filter((note) => note !== ""),
      empty: this.empty(),
    });
  }

  private empty(): string {
    const { shown, filter, error } = this.source;
    if (!this.jobs.focused)
      return "No job runs. Press F5 on a Ray driver or a torchrun command, and its stacks appear here.";
    if (error !== "") return "";
    if (!shown) return "Asking all ranks where they are…";
    if (shown.stacks.stretches.length > 0) return "";
    return filter.ranks === "" && filter.doing === ""
      ? "No process has answered yet."
      : "Nobody is in this filter now.";
  }
}
