/** Tokens of Metal Shading Language, with their original files and lines. */

export type TokenKind = "name" | "number" | "text" | "character" | "mark";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly file: string;
  readonly line: number;
  /** Where it begins in the text. */
  readonly start: number;
  /** Whether it is the first token of its line. */
  readonly isFirst: boolean;
  /** Whether it is directly after the previous token. */
  readonly isGlued: boolean;
}

/** `>>` is two tokens, since it may close two templates. */
const marks = [
  "<<=",
  ">>=",
  "...",
  "->*",
  "::",
  "->",
  "++",
  "--",
  "<<",
  "<=",
  ">=",
  "==",
  "!=",
  "&&",
  "||",
  "##",
  "+=",
  "-=",
  "*=",
  "/=",
  "%=",
  "&=",
  "|=",
  "^=",
];

const escapeMark = (mark: string): string => mark.replace(/[.*+?^$|()[\]{}\\]/g, "\\$&");

const rules = [
  String.raw`(?<space>[ \t\r\f\v]+|\\\r?\n)`,
  String.raw`(?<newline>\n)`,
  String.raw`(?<comment>\/\/(?:[^\n\\]|\\[^]|\\$)*|\/\*[^]*?(?:\*\/|$))`,
  String.raw`(?<raw>R"(?<fence>[^(\s]*)\([^]*?\)\k<fence>")`,
  String.raw`(?<text>"(?:[^"\\\n]|\\[^])*"?)`,
  String.raw`(?<character>'(?:[^'\\\n]|\\[^])+')`,
  String.raw`(?<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)`,
  String.raw`(?<name>[A-Za-z_$]\w*)`,
  `(?<mark>${marks.map(escapeMark).join("|")}|[^])`,
];
const pattern = new RegExp(rules.join("|"), "gu");

/** Returns the tokens of a text, without comments; lines that end in `\` continue. */
export function tokensOf(text: string, file: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let isFirst = true;
  let isGlued = false;
  for (const { 0: found, index: start, groups } of text.matchAll(pattern)) {
    if (groups!["newline"] !== undefined) {
      isFirst = true;
    } else if (groups!["space"] === undefined && groups!["comment"] === undefined) {
      tokens.push({ kind: kindOf(groups!), text: found, file, line, start, isFirst, isGlued });
      isFirst = false;
      isGlued = true;
      line += found.split("\n").length - 1;
      continue;
    }
    isGlued = false;
    line += found.split("\n").length - 1;
  }
  return tokens;
}

const kinds = ["name", "number", "character", "mark"] as const;

const kindOf = (groups: Record<string, string | undefined>): TokenKind =>
  kinds.find((kind) => groups[kind] !== undefined) ?? "text";

/** Returns the index after the bracket that closes the one at `start`; the end of the tokens if there is none. */
export function behindClosing(tokens: readonly Token[], start: number, end = tokens.length): number {
  let depth = 0;
  for (let at = start; at < end; at++) {
    const { text, kind } = tokens[at];
    if (kind !== "mark") continue;
    if (text === "(" || text === "[" || text === "{") depth++;
    else if ((text === ")" || text === "]" || text === "}") && --depth === 0) return at + 1;
  }
  return end;
}

/**
 * Returns the index after the `>` that closes the `<` at `start`; undefined if it is a comparison: template arguments
 * contain neither statements nor `&&`, `||` or `;`.
 */
export function behindTemplate(tokens: readonly Token[], start: number, end = tokens.length): number | undefined {
  let depth = 0;
  for (let at = start; at < end && at < start + 400; ) {
    const { text, kind } = tokens[at];
    if (kind === "mark") {
      if (text === "(" || text === "[" || text === "{") {
        at = behindClosing(tokens, at, end);
        continue;
      }
      if (text === "<") depth++;
      else if (text === ">" && --depth === 0) return at + 1;
      else if (/^(;|\)|\]|\}|&&|\|\||[-+*/%&|^]?=|>=|<=|\?|\+\+|--)$/.test(text)) return undefined;
    }
    at++;
  }
  return undefined;
}

/** Splits `start` to `end` at commas outside of brackets and templates. */
export function partsOf(tokens: readonly Token[], start: number, end: number): [number, number][] {
  const parts: [number, number][] = [];
  let from = start;
  for (let at = start; at < end; ) {
    const { text, kind } = tokens[at];
    if (kind === "mark" && (text === "(" || text === "[" || text === "{")) at = behindClosing(tokens, at, end);
    else if (kind === "mark" && text === "<") at = behindTemplate(tokens, at, end) ?? at + 1;
    else {
      if (kind === "mark" && text === ",") {
        parts.push([from, at]);
        from = at + 1;
      }
      at++;
    }
  }
  if (end > start) parts.push([from, end]);
  return parts;
}
