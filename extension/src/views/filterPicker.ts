/** The list from which a person chooses which ranks a view shows. */

import * as vscode from "vscode";

import { type Doing, type MemberFilter, NO_FILTER } from "../core/memberFilter.js";
import type { Job } from "../debug/jobs.js";
import { typeRanks } from "../debug/rankPicker.js";
import { rankSetNames } from "../debug/rankSetNames.js";

const LABELS: Readonly<Record<Doing, string>> = {
  paused: "Paused",
  blocked: "In a blocking call",
  running: "Running",
  ended: "Ended",
};

const ALL = "all";

interface Row extends vscode.QuickPickItem {
  readonly does: () => MemberFilter | Promise<MemberFilter | undefined>;
}

/** The filter after the choice: a state chosen again is none. `undefined`: it was left. */
export async function pickFilter(
  title: string,
  now: MemberFilter,
  doings: readonly Doing[],
  job: Job | undefined,
): Promise<MemberFilter | undefined> {
  const rows: Row[] = [
    {
      label: "$(edit) Ranks…",
      description: now.ranks || ALL,
      does: async () => {
        const picked = await typeRanks(title, now.ranks || ALL, rankSetNames(undefined, job), job);
        return picked?.ranks === undefined ? undefined : { ...now, ranks: picked.ranks === ALL ? "" : picked.ranks };
      },
    },
    ...doings.map((doing) => ({
      label: `${now.doing === doing ? "$(check)" : "$(blank)"} ${LABELS[doing]}`,
      description: now.doing === doing ? "only these, now" : "",
      does: () => ({ ...now, doing: now.doing === doing ? ("" as const) : doing }),
    })),
    ...(now.ranks === "" && now.doing === "" ? [] : [{ label: "$(clear-all) Show everybody", does: () => NO_FILTER }]),
  ];
  const picked = await vscode.window.showQuickPick(rows, { title, placeHolder: "Show only…" });
  return picked?.does();
}
