/**
 * Sets of ranks as a person writes them: `all`, `0`, `0,3-5`, `0-31:4`, `local:0`, `node:1`, `actor/0-3`, `driver`,
 * or a name from `rankSets` in launch.json. The same grammar and the same errors as `rankscope/ranks.py`;
 * `tests/support/rank_sets.json` holds both to it.
 */

/** What is known about one member's place in the job; `undefined` while unknown. */
export interface RankFacts {
  readonly role: "driver" | "rank" | "child" | "idle";
  readonly group: string;
  readonly rank?: number | undefined;
  readonly localRank?: number | undefined;
  readonly node?: number | undefined;
  /** False while the rank is only the order of creation. */
  readonly isFinal: boolean;
}

export type RankSetNames = Readonly<Record<string, string>>;

/** A rank set that cannot be read: `at` is the offset of the fault in `text`. */
export class RankSetError extends Error {
  static readonly hint = "Write all, 0, 0,3-5, 0-31:4, local:0, node:1, actor/0-3 or driver.";

  constructor(
    readonly text: string,
    readonly at: number,
    readonly why: string,
  ) {
    super(`Rank set '${text}': ${why} at column ${at + 1}.`);
    this.name = "RankSetError";
  }
}

type Axis = "rank" | "local" | "node";

/** One comma-separated part of a set. */
type Part =
  | { readonly kind: "driver" }
  | { readonly kind: "every"; readonly group?: string | undefined }
  | {
      readonly kind: "stretch";
      readonly axis: Axis;
      readonly group?: string | undefined;
      readonly first: number;
      readonly last: number;
      readonly step: number;
    };

export class RankSet {
  private constructor(
    readonly text: string,
    private readonly parts: readonly Part[],
  ) {}

  /** Read a set; a name in `names` may use other names. Throws a RankSetError that says which character is at fault. */
  static parse(text: string, names: RankSetNames = {}): RankSet {
    return new RankSet(text, new Reader(text, names, []).parts());
  }

  /** Whether a member belongs to the set; `undefined` while its rank is not known for sure. */
  contains(facts: RankFacts): boolean | undefined {
    const answers = this.parts.map((part) => partContains(part, facts));
    if (answers.includes(true)) return true;
    return answers.includes(undefined) ? undefined : false;
  }

  toString(): string {
    return this.text;
  }
}

function partContains(part: Part, facts: RankFacts): boolean | undefined {
  if (part.kind === "driver") return facts.role === "driver";
  if (facts.role === "driver") return false;
  if (part.group !== undefined && facts.group !== part.group) {
    return !facts.isFinal && facts.group === "" ? undefined : false;
  }
  if (part.kind === "every") return true;
  const number = { rank: facts.rank, local: facts.localRank, node: facts.node }[part.axis];
  if (number === undefined || (part.axis === "rank" && !facts.isFinal)) return undefined;
  return number >= part.first && number <= part.last && (number - part.first) % part.step === 0;
}

/** Reads one rank set; `trail` holds the names being expanded, to refuse a circle. */
class Reader {
  constructor(
    private readonly text: string,
    private readonly names: RankSetNames,
    private readonly trail: readonly string[],
  ) {}

  parts(): Part[] {
    if (this.text.trim() === "") throw this.fault(0, "it is empty");
    const found: Part[] = [];
    let at = 0;
    let group: string | undefined;
    for (const piece of this.text.split(",")) {
      const start = at + piece.length - piece.trimStart().length;
      const [parts, next] = this.piece(piece.trim(), start, group);
      found.push(...parts);
      group = next;
      at += piece.length + 1;
    }
    return found;
  }

  /** One part, and the group that holds for the bare numbers after it (`actor/0,2`). */
  private piece(piece: string, at: number, group: string | undefined): [Part[], string | undefined] {
    if (piece === "") throw this.fault(at, "a part is missing");
    const slash = piece.lastIndexOf("/");
    if (slash >= 0) {
      const named = piece.slice(0, slash);
      const rest = piece.slice(slash + 1);
      if (named === "") throw this.fault(at, "the group before '/' is missing");
      if (rest === "all") return [[{ kind: "every", group: named }], named];
      return [[this.stretch(named, "rank", rest, at + slash + 1)], named];
    }
    if (piece === "driver") return [[{ kind: "driver" }], undefined];
    if (piece === "all") return [[{ kind: "every" }], undefined];
    const scoped = /^(local|node):(.*)$/s.exec(piece);
    if (scoped) {
      const [, axis = "", rest = ""] = scoped;
      return [[this.stretch(undefined, axis as Axis, rest, at + axis.length + 1)], undefined];
    }
    if (!/^[0-9]/.test(piece)) return [this.named(piece, at), undefined];
    return [[this.stretch(group, "rank", piece, at)], group];
  }

  private named(name: string, at: number): Part[] {
    if (this.trail.includes(name)) throw this.fault(at, `'${name}' is defined by itself`);
    const text = Object.hasOwn(this.names, name) ? this.names[name] : undefined;
    if (text === undefined) throw this.fault(at, `'${name}' is neither a number nor a name in rankSets`);
    return new Reader(text, this.names, [...this.trail, name]).parts();
  }

  private stretch(group: string | undefined, axis: Axis, text: string, at: number): Part {
    const [span, stride] = cut(text, ":");
    const step = stride === undefined ? 1 : this.number(stride, at + span.length + 1);
    if (step === 0) throw this.fault(at + span.length + 1, "a stride of 0");
    const [low, high] = cut(span, "-");
    const first = this.number(low, at);
    const last = high === undefined ? first : this.number(high, at + low.length + 1);
    if (last < first) throw this.fault(at + low.length + 1, `${last} is smaller than ${first}`);
    return { kind: "stretch", axis, group, first, last, step };
  }

  private number(text: string, at: number): number {
    if (text === "") throw this.fault(at, "a number is missing");
    if (!/^[0-9]{1,9}$/.test(text)) throw this.fault(at, `'${text}' is not a number`);
    return Number(text);
  }

  private fault(at: number, why: string): RankSetError {
    return new RankSetError(this.text, at, why);
  }
}

/** The text before and after the first separator. */
function cut(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
