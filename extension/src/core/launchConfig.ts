/**
 * Checks a launch configuration as the hub will (`rankscope/hub/settings.py`), before a hub is started for it.
 * Keys, types and choices are those that package.json declares to the editor; only what a schema cannot say is here.
 */

import { contributes } from "../../../package.json";
import { RankSet, RankSetError, type RankSetNames } from "./rankSet.js";

/** One thing that is wrong. `key` is a path as in `pathMappings[0].localRoot`; `message` and `hint` are sentences. */
export interface Fault {
  readonly key: string;
  readonly message: string;
  readonly hint: string;
}

export type Configuration = Readonly<Record<string, unknown>>;

/** The part of JSON Schema that package.json uses. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

type Request = "launch" | "attach";

const SCHEMAS = contributes.debuggers[0]?.configurationAttributes as Readonly<Record<Request, Schema>>;

/** What VS Code itself understands in a configuration; the hub ignores it, and so do we. */
const OF_EDITOR =
  /^(__.*|name|type|request|presentation|preLaunchTask|postDebugTask|internalConsoleOptions|debugServer|serverReadyAction|noDebug|suppressMultipleSessionWarning|linux|osx|windows|token)$/;

const WHAT_TO_RUN = ["program", "module", "command"] as const;

/** The settings a request can have. */
export function settingsOf(request: Request): readonly string[] {
  return Object.keys(SCHEMAS[request].properties ?? {});
}

/** Everything that is wrong with a configuration, in the order of its keys; empty when the hub will take it. */
export function checkConfiguration(configuration: Configuration): Fault[] {
  const { request } = configuration;
  if (request !== "launch" && request !== "attach") {
    return [fault("request", `${shown(request)} is neither launch nor attach`, "Write launch or attach.")];
  }
  const faults: Fault[] = [];
  const properties = SCHEMAS[request].properties ?? {};
  for (const [key, value] of Object.entries(configuration)) {
    if (OF_EDITOR.test(key) || value === undefined || value === null) continue;
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (schema) faults.push(...checkValue(key, value, schema));
    else faults.push(unknownSetting(key, request));
  }
  if (!faults.some(({ key }) => /^(ranks|rankSets)\b/.test(key))) faults.push(...checkRankSets(configuration));
  // a misspelt `program` is one fault, not also a missing one
  const isMisspelt = (word: string): boolean => faults.some(({ hint }) => hint === didYouMean(word));
  if (request === "launch" && !WHAT_TO_RUN.some(isMisspelt)) faults.push(...checkWhatToRun(configuration));
  return faults;
}

/** One sentence for a toast: the first fault, and how many others there are. */
export function summaryOf(faults: readonly Fault[]): string {
  const [first, ...others] = faults;
  if (!first) return "";
  const more = others.length === 0 ? "" : ` (${others.length} more: ${others.map(({ key }) => `'${key}'`).join(", ")})`;
  return `launch.json, '${first.key}': ${first.message}. ${first.hint}${more}`.trimEnd();
}

/** The word among `words` that was probably meant; undefined when none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const allowed = Math.max(1, Math.floor(word.length / 3));
  let best: { word: string; distance: number } | undefined;
  for (const candidate of words) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= allowed && distance < (best?.distance ?? Infinity)) best = { word: candidate, distance };
  }
  return best?.word;
}

function didYouMean(word: string): string {
  return `Did you mean '${word}'?`;
}

function fault(key: string, message: string, hint = ""): Fault {
  return { key, message, hint };
}

function unknownSetting(key: string, request: Request): Fault {
  const meant = nearest(key, settingsOf(request));
  if (meant !== undefined) return fault(key, "there is no such setting", didYouMean(meant));
  const other = request === "launch" ? "attach" : "launch";
  if (settingsOf(other).includes(key)) {
    return fault(key, `it belongs to "request": "${other}"`, `Remove it, or change the request to ${other}.`);
  }
  return fault(key, "there is no such setting", "Remove it.");
}

function checkValue(key: string, value: unknown, schema: Schema): Fault[] {
  const types = schema.type === undefined ? [] : [schema.type].flat();
  const kind = kindOf(value);
  if (types.length > 0 && !types.includes(kind) && !(kind === "integer" && types.includes("number"))) {
    return [fault(key, `${shown(value)} is not ${types.map((type) => NOUNS[type] ?? type).join(" or ")}`)];
  }
  if (schema.enum && !schema.enum.includes(value)) {
    const choices = schema.enum.map(String);
    const meant = typeof value === "string" ? nearest(value, choices) : undefined;
    const hint = meant === undefined ? `Write ${listed(choices)}.` : didYouMean(meant);
    return [fault(key, `${shown(value)} is none of ${choices.join(", ")}`, hint)];
  }
  if (typeof value === "number") return checkNumber(key, value, schema);
  if (typeof value === "string") return value.includes("\0") ? [fault(key, "it has a null character")] : [];
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.flatMap((item: unknown, at) => checkValue(`${key}[${at}]`, item, items)) : [];
  }
  return kind === "object" ? checkObject(key, value as Configuration, schema) : [];
}

function checkNumber(key: string, value: number, schema: Schema): Fault[] {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity } = schema;
  if (value >= minimum && value > exclusiveMinimum && value <= maximum) return [];
  const bounds = [
    ...(Number.isFinite(minimum) ? [`at least ${minimum}`] : []),
    ...(Number.isFinite(exclusiveMinimum) ? [`more than ${exclusiveMinimum}`] : []),
    ...(Number.isFinite(maximum) ? [`at most ${maximum}`] : []),
  ].join(" and ");
  return [fault(key, `${value} is out of bounds`, `It must be ${bounds}.`)];
}

function checkObject(key: string, value: Configuration, schema: Schema): Fault[] {
  const faults: Fault[] = [];
  const properties = schema.properties ?? {};
  for (const name of schema.required ?? []) {
    if (value[name] === undefined || value[name] === "") faults.push(fault(key, `'${name}' is missing`, "Add it."));
  }
  for (const [name, item] of Object.entries(value)) {
    const inner = `${key}.${name}`;
    const of = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
    if (of === false) {
      const meant = nearest(name, Object.keys(properties));
      faults.push(fault(inner, "there is no such setting", meant === undefined ? "Remove it." : didYouMean(meant)));
    } else if (typeof of === "object") faults.push(...checkValue(inner, item, of));
  }
  if (key === "env") faults.push(...checkVariableNames(value));
  return faults;
}

function checkVariableNames(env: Configuration): Fault[] {
  return Object.keys(env)
    .filter((name) => name === "" || /[=\0]/.test(name))
    .map((name) => fault("env", `'${name}' is no name of a variable`, "Write the name without '='."));
}

/** Ranks and names of rank sets must be readable; the message points at the character. */
function checkRankSets(configuration: Configuration): Fault[] {
  const names = (configuration.rankSets ?? {}) as RankSetNames;
  const texts = Object.entries(names).map(([name, text]): [string, string] => [`rankSets.${name}`, text]);
  const { ranks } = configuration;
  if (Array.isArray(ranks)) texts.push(["ranks", ranks.join(",")]);
  else if (typeof ranks === "number" || (typeof ranks === "string" && ranks !== "")) texts.push(["ranks", `${ranks}`]);
  return texts.flatMap(([key, text]) => {
    try {
      RankSet.parse(text, names);
      return [];
    } catch (error) {
      if (!(error instanceof RankSetError)) throw error;
      return [fault(key, error.message.replace(/\.$/, ""), RankSetError.hint)];
    }
  });
}

function checkWhatToRun(configuration: Configuration): Fault[] {
  const given = WHAT_TO_RUN.filter((key) => !isEmpty(configuration[key]));
  const hint = "Give one of program, module and command.";
  if (given.length === 0) return [fault("program", "nothing to run is given", hint)];
  const [, second] = given;
  return second === undefined ? [] : [fault(second, `${given.join(" and ")} exclude each other`, hint)];
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

const NOUNS: Readonly<Record<string, string>> = {
  string: "a text",
  array: "a list",
  object: "an object",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  null: "null",
};

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

/** A value as launch.json has it, cut to a readable length. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1) ?? ""}`;
}

/** Insertions, deletions, replacements and swaps of neighbours that make one word the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        cost = Math.min(cost, (beforeLast[column - 2] ?? Infinity) + 1);
      }
      current.push(cost);
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length] ?? 0;
}
