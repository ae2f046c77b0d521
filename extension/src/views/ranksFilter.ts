/** Which ranks the Ranks view shows: a set, and what they do. */

import * as vscode from "vscode";

import { COMMANDS } from "../contributions.js";
import { doingOf, filterInWords, idsIn, NO_FILTER } from "../core/memberFilter.js";
import type { Member } from "../core/protocol.js";
import { RankSetError } from "../core/rankSet.js";
import type { Job, Jobs } from "../debug/jobs.js";
import { rankSetNames } from "../debug/rankSetNames.js";
import { pickFilter } from "./filterPicker.js";

export class RanksFilter implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  private filter = NO_FILTER;

  readonly onDidChange = this.changed.event;

  constructor(jobs: Jobs) {
    const set = (filter = NO_FILTER): void => {
      this.filter = filter;
      this.changed.fire();
    };
    this.disposables.push(
      this.changed,
      vscode.commands.registerCommand(COMMANDS.filterRanks, async () => {
        const doings = ["paused", "blocked", "running", "ended"] as const;
        const picked = await pickFilter("Filter Ranks", this.filter, doings, jobs.focused);
        if (picked) set(picked);
      }),
      vscode.commands.registerCommand(COMMANDS.clearRanksFilter, () => {
        set();
      }),
    );
  }

  /** `Only 0-3, paused.`; empty without a filter. */
  get words(): string {
    const words = filterInWords(this.filter);
    return words === "" ? "" : `${words}.`;
  }

  /** Whom of these jobs it shows; `undefined`: everybody. */
  shows(jobs: readonly Job[]): ((job: { id: string }, member: Member) => boolean) | undefined {
    if (this.words === "") return undefined;
    const shown = new Map(jobs.map((job) => [job.id, this.idsOf(job)]));
    return ({ id }, member) => shown.get(id)?.has(member.id) ?? false;
  }

  private idsOf(job: Job): ReadonlySet<string> {
    let ids: ReadonlySet<string>;
    try {
      ids = idsIn(this.filter, job.members, rankSetNames(undefined, job));
    } catch (error) {
      // a name that only another job knows
      if (!(error instanceof RankSetError)) throw error;
      return new Set();
    }
    const { doing } = this.filter;
    if (doing === "") return ids;
    const does = job.members.filter((member) => doingOf(member, { frame: job.frames.get(member.id) }) === doing);
    return new Set(does.flatMap(({ id }) => (ids.has(id) ? [id] : [])));
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}
