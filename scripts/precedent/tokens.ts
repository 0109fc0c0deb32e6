/** Tokens of the Metal Shading Language, with the file and the line that each was written in. */

export type TokenKind = "name" | "number" | "text" | "character" | "mark";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly file: string;
  readonly line: number;
  /** Where it begins in the text. */
  readonly start: number;
  /** It is the first of its line. */
  readonly isFirst: boolean;
  /** Nothing stands between it and the token before. */
  readonly isGlued: boolean;
}

/** `>>` is two tokens, since it may close two templates. */
const marks = [
  ...["<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", "<=", ">=", "==", "!=", "&&", "||", "##"],
  ...["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="],
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

/** The tokens of a text; comments are left out, and lines that end in `\` go on. */
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

/** The index behind the bracket that closes the one at `start`; the end of the tokens if none does. */
export function behindClosing(tokens: readonly Token[], start: number, end = tokens.length): number {
  let depth = 0;
  for (let at = start; at < end; at++) {
    const { text, kind } = tokens[at]!;
    if (kind !== "mark") continue;
    if (text === "(" || text === "[" || text === "{") depth++;
    else if ((text === ")" || text === "]" || text === "}") && --depth === 0) return at + 1;
  }
  return end;
}

/**
 * The index behind the `>` that closes the `<` at `start`; undefined where it compares, as the brackets of a template
 * hold neither statements nor a comparison by `&&`, `||` or `;`.
 */
export function behindTemplate(tokens: readonly Token[], start: number, end = tokens.length): number | undefined {
  let depth = 0;
  for (let at = start; at < end && at < start + 400; ) {
    const { text, kind } = tokens[at]!;
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

/** The parts between the commas of `start` to `end`, brackets and templates taken as one. */
export function partsOf(tokens: readonly Token[], start: number, end: number): [number, number][] {
  const parts: [number, number][] = [];
  let from = start;
  for (let at = start; at < end; ) {
    const { text, kind } = tokens[at]!;
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
