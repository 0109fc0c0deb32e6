/**
 * Mutations of C++ and of Metal Shading Language, by tokens. The files are formatted: a binary operator is surrounded
 * by spaces, and the marks of pointers, references and templates are next to a name. Wrong guesses do not compile.
 */
import { behindClosing, partsOf, type Token, tokensOf } from "../precedent/tokens.ts";
import { type Change, callChanges, numberChanges, operatorChanges, swapChanges } from "./mutation.ts";

/** Returns all changes within a line. */
export function cppChanges(source: string, file: string): Change[] {
  const tokens = tokensOf(source, file);
  const lines = [...Map.groupBy(tokens, ({ line }) => line).values()].filter((line) => !isSkipped(line));
  return lines.flatMap((line) => [
    ...line.flatMap((token, at) => tokenChanges(line, token, at)),
    ...line.flatMap((_, at) => [...conditionChanges(source, line, at), ...argumentChanges(source, line, at)]),
    ...statementChanges(line),
  ]);
}

/** Preprocessor lines, and declarations without code. */
const isSkipped = ([first]: readonly Token[]): boolean =>
  first.text === "#" || ["using", "namespace", "template", "static_assert", "struct"].includes(first.text);

const endOf = ({ start, text }: Token): number => start + text.length;

function tokenChanges(line: readonly Token[], { kind, text, start, isGlued }: Token, at: number): Change[] {
  const next = line[at + 1];
  if (kind === "number") return numberChanges(text, start);
  if (kind === "name" && next?.text === "(") return callChanges(text, start);
  if (text === "true" || text === "false")
    return [{ kind: "constant", start, end: start + text.length, replacement: text === "true" ? "false" : "true" }];
  if (text === "!" && next?.text !== "=") return [{ kind: "negation", start, end: start + 1, replacement: "" }];
  const isBinary = kind === "mark" && at > 0 && !isGlued && next !== undefined && !next.isGlued;
  return isBinary ? operatorChanges(text, start) : [];
}

/** `if (a)` as `if (!(a))` and as `if (false)`. */
function conditionChanges(source: string, line: readonly Token[], at: number): Change[] {
  if (line[at].text !== "if" || line[at + 1]?.text !== "(") return [];
  const behind = behindClosing(line, at + 1);
  const [open, close] = [line[at + 1], line[behind - 1]];
  if (close.text !== ")" || behind - at < 4) return [];
  const place = { kind: "condition", start: endOf(open), end: close.start };
  return [
    { ...place, replacement: `!(${source.slice(place.start, place.end)})` },
    { ...place, replacement: "false" },
  ];
}

/** Mutates calls, but not declarations, whose parameters are a type and a name. */
function argumentChanges(source: string, line: readonly Token[], at: number): Change[] {
  const open = line[at + 1];
  if (line[at].kind !== "name" || keywords.has(line[at].text) || open?.text !== "(" || !open.isGlued) return [];
  const behind = behindClosing(line, at + 1);
  if (line[behind - 1].text !== ")") return [];
  const parts = partsOf(line, at + 2, behind - 1);
  const isDeclaration = parts.some(([from, to]) => to - from > 1 && areNames(line[from], line[from + 1]));
  if (isDeclaration) return [];
  return swapChanges(
    source,
    line[at].text,
    parts.map(([from, to]) => [line[from].start, endOf(line[to - 1])] as const),
  );
}

const keywords = new Set(["if", "for", "while", "switch", "return", "sizeof", "alignas"]);

const areNames = (first: Token, second: Token): boolean => first.kind === "name" && second.kind === "name";

const assignments = new Set(["=", "+=", "-=", "*=", "/=", "|=", "&=", "^="]);

/** Removes a complete call or assignment, but not a declaration, which begins with two names. */
function statementChanges(line: readonly Token[]): Change[] {
  const [first, last] = [line[0], line.at(-1)!];
  if (first.kind !== "name" || keywords.has(first.text) || last.text !== ";") return [];
  const ends = line.flatMap(({ text }, at) => (text === ";" ? [at] : []));
  const target = /^\w+(?:\s*(?:::|\.|->)\s*\w+)*\s*(?:\[.*\]\s*)?$/;
  const at = line.findIndex(({ text }) => text === "(" || assignments.has(text));
  const isOne = ends.length === 1 && at > 0 && target.test(textOf(line.slice(0, at)));
  if (!isOne || (line[at].text === "(" && behindClosing(line, at) !== line.length - 1)) return [];
  return [{ kind: "removed statement", start: first.start, end: endOf(last), replacement: ";" }];
}

/** Joins tokens, with spaces so that adjacent names stay separate. */
const textOf = (tokens: readonly Token[]): string =>
  tokens
    .map(({ text, isGlued }) => (isGlued ? text : ` ${text}`))
    .join("")
    .trim();
