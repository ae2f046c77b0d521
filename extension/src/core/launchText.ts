/** Where something stands in the text of a launch.json, without reading it as JSON: it may be half written. */

export interface Place {
  /** Offsets into the text. */
  readonly start: number;
  readonly end: number;
}

/**
 * The key of the configuration called `name`: the one nearest to that name, and the name itself where the key is not
 * written. `key` is a path as in `pathMappings[0].localRoot`. Undefined when there is no such configuration.
 */
export function placeInLaunchText(text: string, name: string, key = "name"): Place | undefined {
  const at = new RegExp(`"name"\\s*:\\s*${escaped(JSON.stringify(name))}`).exec(text)?.index;
  if (at === undefined) return undefined;
  const word = /([^.[\]]+)(?:\[\d+\])*$/.exec(key)?.[1] ?? "name";
  const places = [...text.matchAll(new RegExp(`${escaped(JSON.stringify(word))}\\s*:`, "g"))].map(({ index }) => index);
  const [start] = places.sort((one, other) => Math.abs(one - at) - Math.abs(other - at));
  return start === undefined ? { start: at, end: at + '"name"'.length } : { start, end: start + word.length + 2 };
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
