/**
 * The comments of a Python expression, found as Python's tokenizer finds them: a `#` in a string is none, nor is one in
 * the format part of an f-string (`f"{x:#x}"`). The hub reads conditions with that tokenizer (`hub/conditions.py`).
 */

export interface Comment {
  /** Offset of the `#`. */
  readonly start: number;
  /** Offset of the line's end. */
  readonly end: number;
  /** Without `#` and the space around it. */
  readonly text: string;
}

/** A string that is not closed: where it begins. */
export class OpenString extends Error {
  constructor(readonly at: number) {
    super(`a string is not closed at column ${at + 1}`);
    this.name = "OpenString";
  }
}

const NAME = /[\p{L}\p{N}_]+/uy;
const PREFIX = /^(r|u|b|br|rb|f|fr|rf)$/i;
const COMMENT = /#[^\r\n]*/y;

/** All comments, in order. Throws OpenString where a string does not end. */
export function commentsOf(text: string): Comment[] {
  const comments: Comment[] = [];
  let at = 0;
  while (at < text.length) {
    const comment = match(COMMENT, text, at);
    if (comment !== undefined) {
      comments.push({ start: at, end: at + comment.length, text: comment.slice(1).trim() });
      at += comment.length;
    } else {
      at = afterToken(text, at);
    }
  }
  return comments;
}

/** The offset after the string, name or character at `at`. */
function afterToken(text: string, at: number): number {
  const name = match(NAME, text, at) ?? "";
  const quote = text[at + name.length];
  if (quote !== '"' && quote !== "'") return at + Math.max(1, name.length);
  const start = at + name.length;
  const prefix = PREFIX.test(name) ? name.toLowerCase() : "";
  return (prefix.includes("f") ? afterFormatted(text, start, prefix) : undefined) ?? afterPlain(text, start);
}

/** The offset after the string whose quote is at `start`. A backslash hides the next character, in raw strings too. */
function afterPlain(text: string, start: number): number {
  const quote = quoteAt(text, start);
  for (let at = start + quote.length; at < text.length; at++) {
    if (text.startsWith(quote, at)) return at + quote.length;
    if (text[at] === "\\") at++;
    else if (text[at] === "\n" && quote.length === 1) break;
  }
  throw new OpenString(start);
}

/**
 * The same for an f-string, whose fields may hold strings with the same quotes (Python 3.12). `undefined`: it has no end
 * when read so; an older Python reads it as any other string.
 */
function afterFormatted(text: string, start: number, prefix: string): number | undefined {
  const quote = quoteAt(text, start);
  let at = start + quote.length;
  while (at < text.length) {
    if (text.startsWith(quote, at)) return at + quote.length;
    if (text.startsWith("{{", at) || text.startsWith("}}", at)) at += 2;
    else if (text[at] === "{") {
      const next = afterField(text, at);
      if (next === undefined) return undefined;
      at = next;
    } else if (text[at] === "\\") {
      const named = prefix.includes("r") ? undefined : match(/\\N\{[^}"'\n]*\}/y, text, at);
      at += named?.length ?? (text[at + 1] === "{" ? 1 : 2);
    } else if (text[at] === "\n" && quote.length === 1) return undefined;
    else at++;
  }
  return undefined;
}

/** The offset after the replacement field that opens at `start`. */
function afterField(text: string, start: number): number | undefined {
  let depth = 0;
  let at = start + 1;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === "#") return undefined;
    if (character === "}" && depth === 0) return at + 1;
    if (character === ":" && depth === 0) return afterFormat(text, at + 1);
    if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    if (depth < 0) return undefined;
    try {
      at = afterToken(text, at);
    } catch {
      return undefined;
    }
  }
  return undefined;
}

/** The offset after a field whose format begins at `start`; a format may have fields. */
function afterFormat(text: string, start: number): number | undefined {
  let at = start;
  while (at < text.length) {
    if (text[at] === "}") return at + 1;
    if (text[at] === "\n") return undefined;
    if (text[at] !== "{") {
      at++;
      continue;
    }
    const next = afterField(text, at);
    if (next === undefined) return undefined;
    at = next;
  }
  return undefined;
}

function quoteAt(text: string, start: number): string {
  const one = text[start] ?? "";
  return text.startsWith(one.repeat(3), start) ? one.repeat(3) : one;
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}
