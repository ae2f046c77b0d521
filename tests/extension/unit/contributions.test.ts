import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";

import { COMMANDS, CONTEXTS, DEBUG_TYPE, SETTINGS, VIEWS } from "../../../extension/src/contributions";
import { checkConfiguration, type Configuration } from "../../../extension/src/core/launchConfig";
import manifest from "../../../package.json";
import table from "../../support/rank_sets.json";

const ROOT = resolve(__dirname, "..", "..", "..", "..");
const { contributes } = manifest;

/** The sources of the extension, as one text. */
const sources = readdirSync(join(ROOT, "extension", "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => readFileSync(join(ROOT, "extension", "src", file), "utf8"))
  .join("\n");

interface Described {
  readonly description?: string;
  readonly markdownDescription?: string;
  readonly enum?: readonly string[];
  readonly enumDescriptions?: readonly string[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Described>>;
}

interface MenuItem {
  readonly command: string;
  readonly when?: string;
}

const [debuggers, ...otherDebuggers] = contributes.debuggers;
const attributes: Readonly<Record<string, Described>> = debuggers?.configurationAttributes ?? {};
const menus: Readonly<Record<string, readonly MenuItem[]>> = contributes.menus;
const settings: Readonly<Record<string, Described>>[] = contributes.configuration.map(({ properties }) => properties);

function sorted(names: readonly string[]): string[] {
  return [...names].sort();
}

describe("package.json and contributions.ts", () => {
  it("have the same commands, and each is registered once", () => {
    const ids = sorted(Object.values(COMMANDS));
    assert.deepEqual(sorted(contributes.commands.map(({ command }) => command)), ids);
    const registered = [...sources.matchAll(/\bregister(?:Command)?\(\s*COMMANDS\.(\w+)/g)].map(
      ([, name = ""]) => name,
    );
    assert.deepEqual(sorted(registered), sorted(Object.keys(COMMANDS)));
  });

  it("have the same views", () => {
    const views = Object.values(contributes.views).flat();
    assert.deepEqual(
      views.map(({ id }) => id),
      Object.values(VIEWS),
    );
    const known = new Set<string>(Object.values(VIEWS));
    for (const { view } of contributes.viewsWelcome) assert.ok(known.has(view), view);
  });

  it("have the same debug type", () => {
    assert.deepEqual([debuggers?.type, otherDebuggers.length], [DEBUG_TYPE, 0]);
    for (const event of manifest.activationEvents) {
      const [name, of] = event.split(":");
      if (name?.startsWith("onDebug") === true && of !== undefined) assert.equal(of, DEBUG_TYPE, event);
      if (name === "onView") assert.ok((Object.values(VIEWS) as string[]).includes(of ?? ""), event);
    }
  });

  it("menus and buttons name commands, views and context keys that exist", () => {
    const commands = new Set<string>(Object.values(COMMANDS));
    const ids = new Set<string>([...Object.values(VIEWS), ...Object.values(CONTEXTS)]);
    for (const [menu, items] of Object.entries(menus)) {
      for (const { command, when = "" } of items) {
        assert.ok(commands.has(command), `${menu}: ${command}`);
        for (const [id] of when.matchAll(/\brankscope\.[\w.]+/g)) assert.ok(ids.has(id), `${menu}: ${id}`);
      }
    }
    for (const { when, contents } of contributes.viewsWelcome) {
      for (const [id] of when.matchAll(/\brankscope\.[\w.]+/g)) assert.ok(ids.has(id), id);
      for (const [, id = ""] of contents.matchAll(/command:(rankscope\.\w+)/g)) assert.ok(commands.has(id), id);
    }
  });

  it("every context key is set somewhere", () => {
    for (const name of Object.keys(CONTEXTS)) assert.ok(sources.includes(`CONTEXTS.${name}`), name);
  });

  it("settings are in our section, described, and read", () => {
    for (const [key, setting] of settings.flatMap((properties) => Object.entries(properties))) {
      assert.ok(key.startsWith(`${SETTINGS}.`), key);
      assert.ok(setting.description ?? setting.markdownDescription, key);
      assert.ok(sources.includes(`"${key.slice(SETTINGS.length + 1)}"`), `${key} is read nowhere`);
    }
  });
});

describe("the launch configuration in package.json", () => {
  it("describes every key and every choice", () => {
    for (const [request, { properties = {} }] of Object.entries(attributes)) {
      for (const [key, schema] of Object.entries(properties)) {
        assert.ok(schema.description, `${request}: ${key}`);
        assert.equal(schema.enum?.length, schema.enumDescriptions?.length, `${request}: ${key}`);
      }
    }
  });

  it("keys that both requests have are the same", () => {
    const launch = attributes.launch?.properties ?? {};
    for (const [key, schema] of Object.entries(attributes.attach?.properties ?? {})) {
      if (key in launch) assert.deepEqual(schema, launch[key], key);
    }
  });

  it("snippets and initial configurations are good ones", () => {
    const written = JSON.stringify(debuggers?.configurationSnippets.map(({ body }) => body))
      .replaceAll(/\^\\"(.*?)\\"/g, "$1") // ^"…": taken as it stands
      .replaceAll(/\$\{\d+:?(.*?)\}/g, "$1"); // ${1:default}
    const snippets = JSON.parse(written) as Configuration[];
    assert.ok(snippets.length >= 5);
    for (const configuration of [...snippets, ...(debuggers?.initialConfigurations ?? [])]) {
      assert.deepEqual(checkConfiguration(configuration), [], JSON.stringify(configuration));
    }
  });

  it("the pattern of rank sets takes good ones and refuses what is malformed", () => {
    const pattern = attributes.launch?.properties?.ranks?.pattern;
    assert.ok(pattern !== undefined, "ranks has a pattern");
    const isGood = new RegExp(pattern, "u");
    for (const { text } of table.sets) assert.ok(isGood.test(text), text);
    // what needs the names, or arithmetic, is found at F5
    const later = /neither a number nor a name|is defined by itself|is smaller than|a stride of 0/;
    for (const { text, why } of table.errors) {
      if (!later.test(why) && text !== "") assert.ok(!isGood.test(text), `'${text}': ${why}`);
    }
    assert.ok(isGood.test("${input:ranks}"));
  });
});

describe("what package.json names", () => {
  it("is there", () => {
    assert.ok(existsSync(join(ROOT, manifest.icon)));
  });
});
