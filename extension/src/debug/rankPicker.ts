/** "Limit to ranks…": the list of groups and ranks, and the box for a set that is typed. */

import * as vscode from "vscode";

import { readRanks } from "../core/breakpointRanks.js";
import { nobodyIn } from "../core/breakpointText.js";
import { type Choice, RankChoices } from "../core/rankChoices.js";
import { groupsOf, membersIn } from "../core/rankGroups.js";
import { RankSet, RankSetError, type RankSetNames } from "../core/rankSet.js";
import { inWords } from "../core/rankWords.js";
import type { Job } from "./job.js";

/** What was chosen; `undefined` ranks: no limit. */
export interface Picked {
  readonly ranks: string | undefined;
}

interface Row extends vscode.QuickPickItem {
  readonly choice?: Choice;
}

const TYPE_ROW: Row = {
  label: "$(edit) Type a rank set…",
  description: "0,3-5   0-31:4   node:1   actor/0-3",
  alwaysShow: true,
};

/**
 * Let a person choose; `present` is what the breakpoint has now. Enter takes what is checked; when something was typed
 * and no check mark was touched, the row that was gone to, else what was typed. Resolves to `undefined` when it is left.
 */
export async function pickRanks(
  title: string,
  present: string | undefined,
  names: RankSetNames,
  job: Job | undefined,
  placeholder = "Check the ranks that stop here",
): Promise<Picked | undefined> {
  const picked = await pickFromList(title, present, names, job, placeholder);
  return picked && "typed" in picked ? typeRanks(title, picked.typed, names, job) : picked;
}

function pickFromList(
  title: string,
  present: string | undefined,
  names: RankSetNames,
  job: Job | undefined,
  placeholder: string,
): Promise<Picked | { typed: string } | undefined> {
  const choices = new RankChoices(groupsOf(job?.members ?? []), names, present);
  const rows = rowsOf(choices, names, job);
  const list = vscode.window.createQuickPick<Row>();
  list.title = title;
  list.placeholder = placeholder;
  list.canSelectMany = true;
  list.matchOnDescription = true;
  list.items = rows;
  let checked: ReadonlySet<string> = choices.checked;
  const show = (): void => {
    list.selectedItems = rows.filter((row) => row.choice && checked.has(row.choice.id));
  };
  show();
  return new Promise((resolve) => {
    let result: Picked | { typed: string } | undefined;
    let isTouched = false;
    const finish = (value: Picked | { typed: string }): void => {
      result = value;
      list.hide();
    };
    const type = (): void => {
      // what was typed is the beginning of a set, unless it was typed to find the row
      const isSearch = TYPE_ROW.label.toLowerCase().includes(list.value.trim().toLowerCase());
      finish({ typed: isSearch ? (present ?? "") : list.value });
    };
    list.onDidChangeSelection((selected) => {
      const now = new Set(selected.flatMap(({ choice }) => choice?.id ?? []));
      // "select all" checks it with the others, and means all ranks
      const hasTypeRow = selected.includes(TYPE_ROW);
      if (areEqual(now, checked)) {
        if (hasTypeRow) type();
        return;
      }
      isTouched = true;
      checked = choices.afterChange(checked, now);
      if (hasTypeRow || !areEqual(now, checked)) show();
    });
    list.onDidAccept(() => {
      const [active] = list.activeItems;
      const typed = list.value.trim();
      const isSet = typed !== "" && judge(typed, names, job).severity === vscode.InputBoxValidationSeverity.Info;
      if (isTouched || (typed === "" && active !== TYPE_ROW)) finish({ ranks: choices.ranksOf(checked) });
      else if (active?.choice) finish({ ranks: active.choice.ranks });
      else if (isSet) finish({ ranks: typed });
      else if (active === TYPE_ROW) type();
      else {
        const found = choices.all.find(({ label }) => label.toLowerCase().includes(typed.toLowerCase()));
        if (found) finish({ ranks: found.ranks });
        else type();
      }
    });
    list.onDidHide(() => {
      list.dispose();
      resolve(result);
    });
    list.show();
  });
}

function rowsOf(choices: RankChoices, names: RankSetNames, job: Job | undefined): Row[] {
  const rows: Row[] = [];
  let heading = "";
  for (const choice of choices.all) {
    if (choice.heading !== heading) {
      heading = choice.heading;
      rows.push({ label: heading, kind: vscode.QuickPickItemKind.Separator });
    }
    const set = choice.rank || choice.group ? undefined : choice.ranks;
    const isEmpty = set !== undefined && holdsNobody(set, names, job);
    const description = isEmpty ? `$(warning) ${nobodyIn(set)}` : choice.description;
    rows.push({ label: choice.label, description, choice });
  }
  return [...rows, { label: "Other", kind: vscode.QuickPickItemKind.Separator }, TYPE_ROW];
}

/** The box, checked at each key: what cannot be read is refused, what holds nobody is only said. */
export async function typeRanks(
  title: string,
  value: string,
  names: RankSetNames,
  job: Job | undefined,
): Promise<Picked | undefined> {
  const text = await vscode.window.showInputBox({
    title,
    value,
    prompt: RankSetError.hint,
    placeHolder: "0,3-5",
    ignoreFocusOut: true,
    validateInput: (typed) => judge(typed, names, job),
  });
  return text === undefined ? undefined : { ranks: text.trim() };
}

function judge(typed: string, names: RankSetNames, job: Job | undefined): vscode.InputBoxValidationMessage {
  const ranks = typed.trim();
  try {
    const { unknownNames } = readRanks(ranks, names);
    if (job) RankSet.parse(ranks, names);
    if (unknownNames.length > 0) {
      const message = `No launch configuration here has '${unknownNames.join("', '")}' in its rankSets.`;
      return { message, severity: vscode.InputBoxValidationSeverity.Warning };
    }
  } catch (error) {
    if (!(error instanceof RankSetError)) throw error;
    return { message: error.message, severity: vscode.InputBoxValidationSeverity.Error };
  }
  if (/[#\r\n]/.test(ranks)) {
    const at = ranks.search(/[#\r\n]/);
    return { message: `'#' at column ${at + 1} cannot be in it.`, severity: vscode.InputBoxValidationSeverity.Error };
  }
  if (holdsNobody(ranks, names, job)) {
    const message = `So far ${nobodyIn(ranks)}.`;
    return { message, severity: vscode.InputBoxValidationSeverity.Warning };
  }
  return { message: inWords(ranks), severity: vscode.InputBoxValidationSeverity.Info };
}

/** Whether a job's ranks are known and none of them, joined or expected, is in the set. */
function holdsNobody(ranks: string, names: RankSetNames, job: Job | undefined): boolean {
  const groups = groupsOf(job?.members ?? []);
  if (!job || groups.length === 0) return false;
  let set: RankSet;
  try {
    set = RankSet.parse(ranks, names);
  } catch (error) {
    if (error instanceof RankSetError) return false;
    throw error;
  }
  if (membersIn(set, job.members).length > 0) return false;
  const expected = groups.flatMap((group) => group.ranks.filter(({ member }) => !member));
  return expected.every(({ group, rank }) => set.contains({ role: "rank", group, rank, isFinal: true }) === false);
}

function areEqual(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((id) => other.has(id));
}
