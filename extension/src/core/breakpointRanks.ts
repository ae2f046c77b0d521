/**
 * The rank set of a breakpoint: a trailing comment of its condition, so that the breakpoint stays valid in every other
 * Python debugger: `loss > 10  # @actor/0`, or `True  # @0,3-5` where there is no condition. Read exactly as the hub
 * reads it (`hub/conditions.py`).
 */

import { type Comment, commentsOf, OpenString } from "./pythonComment.js";
import { RankSet, RankSetError, type RankSetNames } from "./rankSet.js";

/** Why a condition cannot be read; `at` is an offset in it. */
export interface ConditionFault {
  readonly message: string;
  readonly at: number;
}

/** What stands in a breakpoint's condition. */
export interface BreakpointCondition {
  /** As the hub evaluates it: without comments, in one line; empty: it always holds. */
  readonly expression: string;
  /** The rank set as written; `undefined`: every process of the job. */
  readonly ranks: string | undefined;
  /** Whether the word `barrier` follows the set: who stops there is held until all of the set have. */
  readonly isBarrier: boolean;
  /** The condition as written, without comments that hold a rank set. */
  readonly rest: string;
  readonly fault: ConditionFault | undefined;
}

/** A set that was read: what is missing in `names` is not a fault but listed. */
export interface ReadRanks {
  readonly set: RankSet;
  readonly unknownNames: readonly string[];
}

const UNKNOWN_NAME = /^'(.*)' is neither a number nor a name in rankSets$/s;
const NAME_OF_SET = /^[\p{L}_][\p{L}\p{N}_ .-]*$/u;
const ALWAYS = "True";
const BARRIER = /\s+barrier$/;

/** Read a condition. A name that is not in `names` is no fault: which ones hold is known to the job alone. */
export function readCondition(condition: string | undefined, names: RankSetNames = {}): BreakpointCondition {
  const text = condition ?? "";
  let comments;
  try {
    comments = commentsOf(text);
  } catch (error) {
    if (!(error instanceof OpenString)) throw error;
    const fault = { message: `Condition '${text}': ${error.message}.`, at: error.at };
    return { expression: text.trim(), ranks: undefined, isBarrier: false, rest: text.trim(), fault };
  }
  const bare = withoutComments(text, comments);
  const expression = bare === ALWAYS ? "" : bare;
  const rest = withoutRankComments(text, comments);
  const last = comments.at(-1);
  if (!last?.text.startsWith("@")) return { expression, ranks: undefined, isBarrier: false, rest, fault: undefined };
  const written = last.text.slice(1).trim();
  const isBarrier = BARRIER.test(written);
  const ranks = written.replace(BARRIER, "");
  const fault = faultOf(ranks, text.indexOf("@", last.start) + 1, text, names);
  return { expression, ranks, isBarrier, rest, fault };
}

/** The condition with the word `barrier`, or without it; a barrier of no set is one of all ranks. */
export function withBarrier(condition: string | undefined, isBarrier: boolean): string | undefined {
  const { ranks } = readCondition(condition);
  return withComment(condition, isBarrier ? `${ranks ?? "all"} barrier` : ranks);
}

/**
 * The condition with another rank set; `undefined` ranks: no limit. A barrier stays one, of all ranks then. What else
 * is written in it stays, another comment too. The result is `undefined` when nothing is left to say. Throws OpenString for a condition with a string that does
 * not end: a comment after it would be a part of that string.
 */
export function withRanks(condition: string | undefined, ranks: string | undefined): string | undefined {
  const { isBarrier } = readCondition(condition);
  return isBarrier ? withComment(condition, `${ranks ?? "all"} barrier`) : withComment(condition, ranks);
}

function withComment(condition: string | undefined, ranks: string | undefined): string | undefined {
  const { rest } = readCondition(condition);
  if (ranks === undefined) return rest === "" || rest === ALWAYS ? undefined : rest;
  if (rest === "") return `${ALWAYS}  # @${ranks}`;
  const hasCommentAtEnd = commentsOf(rest).at(-1)?.end === rest.length;
  return `${rest}${hasCommentAtEnd ? "\n" : "  "}# @${ranks}`;
}

/** Read a set whose names may not be known yet. Throws a RankSetError that points at what can never be read. */
export function readRanks(text: string, names: RankSetNames = {}): ReadRanks {
  // without a prototype, so that '__proto__' is a name like any other
  const all = Object.assign(Object.create(null), names) as Record<string, string>;
  const unknownNames: string[] = [];
  for (;;) {
    try {
      return { set: RankSet.parse(text, all), unknownNames };
    } catch (error) {
      const name = error instanceof RankSetError && error.text === text ? UNKNOWN_NAME.exec(error.why)?.[1] : undefined;
      if (name === undefined || !NAME_OF_SET.test(name)) throw error;
      unknownNames.push(name);
      all[name] = "all";
    }
  }
}

function faultOf(ranks: string, start: number, condition: string, names: RankSetNames): ConditionFault | undefined {
  try {
    readRanks(ranks, names);
    return undefined;
  } catch (error) {
    if (!(error instanceof RankSetError)) throw error;
    const blanks = condition.slice(start).length - condition.slice(start).trimStart().length;
    const isInName = error.text !== ranks;
    return { message: error.message, at: start + (ranks === "" ? 0 : blanks) + (isInName ? 0 : error.at) };
  }
}

/** An earlier comment with a set counts for nothing, and must not begin to when the last one goes. */
function withoutRankComments(text: string, comments: readonly Comment[]): string {
  return without(
    text,
    comments.filter((comment) => comment.text.startsWith("@")),
  );
}

function without(text: string, comments: readonly Comment[], glue = (kept: string): string => kept.trimEnd()): string {
  let kept = "";
  let at = 0;
  for (const { start, end } of comments) {
    kept = glue(kept + text.slice(at, start));
    at = end;
  }
  return (kept + text.slice(at)).trim();
}

/** As the hub joins it: comments cut off, every line stripped. */
function withoutComments(text: string, comments: readonly Comment[]): string {
  return without(text, comments, (kept) => kept)
    .split(/\r\n|\r|\n/)
    .map((line) => line.trim())
    .join(" ")
    .trim();
}
