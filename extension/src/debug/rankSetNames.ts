/** The names of rank sets: `rankSets` of launch.json, and of the job that runs. */

import * as vscode from "vscode";

import { DEBUG_TYPE } from "../contributions.js";
import type { RankSetNames } from "../core/rankSet.js";
import type { Job } from "./job.js";

/**
 * The job's own where one runs: nothing else counts for it. Else all those of the folder's launch configurations; an
 * earlier one wins.
 */
export function rankSetNames(uri: vscode.Uri | undefined, job: Job | undefined): RankSetNames {
  if (job) return namesIn(job.session.configuration);
  const launch = vscode.workspace.getConfiguration("launch", uri).inspect<unknown>("configurations");
  const lists = [launch?.workspaceFolderValue, launch?.workspaceValue, launch?.globalValue];
  const configurations: unknown[] = lists.flatMap((list): unknown[] => (Array.isArray(list) ? list : []));
  const names: Record<string, string> = {};
  for (const configuration of configurations.reverse()) Object.assign(names, namesIn(configuration));
  return names;
}

/** A launch.json that is being written may hold anything. */
function namesIn(configuration: unknown): Record<string, string> {
  if (!isRecord(configuration) || configuration.type !== DEBUG_TYPE) return {};
  const sets = configuration.rankSets;
  if (!isRecord(sets)) return {};
  return Object.fromEntries(
    Object.entries(sets).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function isRecord(value: unknown): value is { type?: unknown; rankSets?: unknown } {
  return typeof value === "object" && value !== null;
}
