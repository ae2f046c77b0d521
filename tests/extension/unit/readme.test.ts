/** The README's launch.json reference says what package.json says, of every key. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";

import manifest from "../../../package.json";

const README = readFileSync(resolve("README.md"), "utf8");

interface Property {
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
}

/** The rows of the table under a heading: first cell → the whole row. */
function rowsUnder(heading: string): Map<string, string> {
  const section = README.split(`${heading}\n`)[1]?.split(/\n#+ /)[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return new Map(rows.map((row) => [/^\| `([^`]+)`/.exec(row)?.[1] ?? "", row.replaceAll(/\s+/g, " ")]));
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
}

const { launch, attach } = manifest.contributes.debuggers[0]?.configurationAttributes ?? assert.fail();
const settings = Object.assign({}, ...manifest.contributes.configuration.map(({ properties }) => properties)) as Record<
  string,
  { description?: string; markdownDescription?: string }
>;

test("every key of launch.json stands in the README with its own words, and no other does", () => {
  const properties: Record<string, Property> = { ...attach.properties, ...launch.properties };
  const rows = rowsUnder("### launch.json");
  assert.deepEqual([...rows.keys()].sort(), Object.keys(properties).sort());
  for (const [key, { description = "" }] of Object.entries(properties)) {
    assert.ok(rows.get(key)?.includes(cell(description)), `the README's row of '${key}' lacks: ${description}`);
  }
});

test("every setting stands in the README with its own words, and no other does", () => {
  const rows = rowsUnder("### Settings");
  assert.deepEqual([...rows.keys()].sort(), Object.keys(settings).sort());
  for (const [key, { description, markdownDescription }] of Object.entries(settings)) {
    const text = cell(markdownDescription ?? description ?? "");
    assert.ok(rows.get(key)?.includes(text), `the README's row of '${key}' lacks: ${text}`);
  }
});
