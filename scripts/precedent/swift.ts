/**
 * Returns the constructs of Swift files: types, methods with their labels, properties and cases that the files do not
 * declare, and availability conditions.
 */
import type { SourceFile } from "./preprocessor.ts";

interface SwiftToken {
  readonly kind: "name" | "text" | "number" | "mark";
  readonly text: string;
  readonly line: number;
  /** Whether a space or a new line precedes it. */
  readonly isApart: boolean;
}

/** The contents of `\(…)` in a string, with nested parentheses. */
const inside = String.raw`(?:[^()]|\((?:[^()]|\([^()]*\))*\))*`;

const rules = [
  String.raw`(?<space>\s+)`,
  String.raw`(?<comment>\/\/[^\n]*|\/\*[^]*?\*\/)`,
  String.raw`(?<text>(?<fence>#*)"""[^]*?"""\k<fence>|(?:#+)"[^\n]*?"#+|"(?:[^"\\\n]|\\\(${inside}\)|\\[^])*")`,
  String.raw`(?<number>\d[\w]*(?:\.\d\w*)?)`,
  String.raw`(?<name>[@#]?[A-Za-z_$\u0060][\w$\u0060]*)`,
  String.raw`(?<mark>->|\.\.\.|\.\.<|&\.|[^])`,
];
const pattern = new RegExp(rules.join("|"), "gu");

const kinds = ["name", "text", "number", "mark"] as const;

function tokensOf(text: string, first = 1): SwiftToken[] {
  const tokens: SwiftToken[] = [];
  let line = first;
  let isApart = true;
  for (const { 0: found, groups } of text.matchAll(pattern)) {
    const isToken = groups!["space"] === undefined && groups!["comment"] === undefined;
    if (isToken) {
      const kind = kinds.find((each) => groups![each] !== undefined)!;
      tokens.push({ kind, text: found.replaceAll("`", ""), line, isApart });
      if (kind === "text") tokens.push(...interpolated(found, line));
    }
    isApart = !isToken;
    line += found.split("\n").length - 1;
  }
  return tokens;
}

/** Returns the tokens of `\(…)` in a string; each is a separate statement. */
function interpolated(text: string, line: number): SwiftToken[] {
  const parts = [...text.matchAll(new RegExp(String.raw`\\\((${inside})\)`, "g"))];
  return parts.flatMap(({ 1: part, index }) => {
    const at = line + text.slice(0, index).split("\n").length - 1;
    return [{ kind: "mark", text: ";", line: at, isApart: true } as const, ...tokensOf(part, at)];
  });
}

/** A construct in a file, and its line. */
export interface SwiftUse {
  readonly construct: string;
  /** The construct's name, which the project may declare. */
  readonly name: string;
  readonly line: number;
}

export interface SwiftFile {
  readonly declared: ReadonlySet<string>;
  /** Functions with the labels of their parameters: `read(_:at:)`. */
  readonly functions: readonly string[];
  readonly uses: readonly SwiftUse[];
}

const words = new Set(
  `as associatedtype async await borrowing break case catch class consuming continue convenience default defer deinit do
   dynamic else enum extension fallthrough fileprivate final for func get guard if import in indirect infix init inout
   internal is isolated lazy let mutating nonisolated nonmutating open operator optional override postfix prefix private
   protocol public repeat required rethrows return self Self set some any static struct subscript super switch throw
   throws try typealias unowned var weak where while willSet didSet true false nil _ sending package actor`
    .trim()
    .split(/\s+/),
);

export function readSwift({ text }: SourceFile): SwiftFile {
  const tokens = tokensOf(text);
  const declared = new Set<string>();
  const functions: string[] = [];
  const uses: SwiftUse[] = [];
  const text_ = (at: number) => tokens[at]?.text ?? "";
  tokens.forEach((token, at) => {
    if (token.kind !== "name") return;
    for (const name of declaredAt(tokens, at)) declared.add(name);
    const use = (construct: string, name: string) => uses.push({ construct, name, line: token.line });
    const opening = signatureAt(tokens, at);
    if (opening !== undefined)
      functions.push(`${token.text === "init" ? "init" : text_(at + 1)}(${labels(tokens, opening, true)})`);
    if (token.text === "import") use(`import ${text_(at + 1)}`, text_(at + 1));
    else if (/^[@#]/.test(token.text)) for (const condition of conditions(tokens, at)) use(condition, condition);
    else if (!words.has(token.text) && text_(at - 1) !== "import") readName(tokens, at, use);
  });
  return { declared, functions, uses };
}

/** Returns the opening parenthesis of the parameters of `func name`, `func name<T>` or `init` at `at`. */
function signatureAt(tokens: readonly SwiftToken[], at: number): number | undefined {
  const { text } = tokens[at];
  if (!/^(func|init)$/.test(text) || tokens[at - 1]?.text === ".") return undefined;
  let opening = text === "init" ? at + 1 : at + 2;
  if (tokens[opening]?.text === "<") while (opening < tokens.length && tokens[opening].text !== "(") opening++;
  return tokens[opening]?.text === "(" ? opening : undefined;
}

/** Returns the names that a keyword at `at` declares. */
function declaredAt(tokens: readonly SwiftToken[], at: number): string[] {
  const { text } = tokens[at];
  const next = tokens[at + 1];
  const before = tokens[at - 1]?.text ?? "";
  if (before === ".") return [];
  if (/^(func|var|let|class|struct|enum|protocol|actor|typealias|associatedtype|macro)$/.test(text)) {
    if (next?.text === "(") return [...namesBefore(tokens, at + 2, ")")];
    const generic = tokens[at + 2]?.text === "<" ? namesBefore(tokens, at + 3, ">", ":") : [];
    return next?.kind === "name" ? [next.text, ...generic] : [];
  }
  if (text === "case" && next?.kind === "name") return [...namesBefore(tokens, at + 1, ":", "{", "=", "}", ";")];
  if (text === "for" && next?.kind === "name") return [next.text];
  // A parameter, or an element of a tuple: `name: Type` or `label name: Type`.
  const isFirst =
    /^[(,]$/.test(before) || (tokens[at - 1]?.kind === "name" && /^[(,]$/.test(tokens[at - 2]?.text ?? ""));
  const type = tokens[at + 2]?.text ?? "";
  return next?.text === ":" && isFirst && /^([A-Z@[(]|any$|some$|inout$)/.test(type) ? [text] : [];
}

function namesBefore(tokens: readonly SwiftToken[], start: number, ...ends: string[]): Set<string> {
  const names = new Set<string>();
  const line = tokens[start]?.line;
  for (let at = start; at < tokens.length && !ends.includes(tokens[at].text); at++) {
    if (tokens[at].line !== line && tokens[at - 1].text !== ",") break;
    if (tokens[at].text === "(") at = closing(tokens, at);
    else if (tokens[at].kind === "name" && !words.has(tokens[at].text)) names.add(tokens[at].text);
  }
  return names;
}

/** Returns the index of the closing bracket. */
function closing(tokens: readonly SwiftToken[], start: number): number {
  let depth = 0;
  for (let at = start; at < tokens.length; at++) {
    const { kind, text } = tokens[at];
    if (kind === "mark" && /^[([{]$/.test(text)) depth++;
    else if (kind === "mark" && /^[)\]}]$/.test(text) && --depth === 0) return at;
  }
  return tokens.length;
}

/** `#available(macOS 15, *)`, `#if canImport(Metal)`, `@unchecked`. */
function conditions(tokens: readonly SwiftToken[], at: number): string[] {
  const { text, line } = tokens[at];
  if (/^[#@](un)?available$/.test(text)) {
    const inside = tokens.slice(at + 2, closing(tokens, at + 1)).map((token) => token.text);
    const platforms = inside
      .join(" ")
      .split(" , ")
      .filter((part) => /^(macOS|\*|unavailable|deprecated)/.test(part));
    return [`${text}(${platforms.join(", ")})`];
  }
  if (text === "#if" || text === "#elseif") {
    const names: string[] = [];
    for (let next = at + 1; tokens[next]?.line === line; next++) {
      const token = tokens[next];
      if (token.kind !== "name") continue;
      const isCall = tokens[next + 1]?.text === "(" && tokens[next + 2] !== undefined;
      names.push(isCall ? `#if ${token.text}(${tokens[next + 2].text})` : `#if ${token.text}`);
      if (isCall) next += 2;
    }
    return names;
  }
  return [text];
}

type Use = (construct: string, name: string) => void;

function readName(tokens: readonly SwiftToken[], at: number, use: Use): void {
  const { text } = tokens[at];
  const before = tokens[at - 1]?.text ?? "";
  const next = tokens[at + 1];
  const isMember = before === "." && !/^(words|where)$/.test(text);
  const isCalled = next?.text === "(" && !next.isApart;
  const isLabel = next?.text === ":" && !isMember && !next.isApart && /^[(,[]$/.test(before);
  const isCondition = tokens
    .slice(Math.max(0, at - 6), at)
    .some((token) => token.text === "#if" && token.line === tokens[at].line);
  if (isCondition) return;
  if (isLabel || /^(func|var|let|case|class|struct|enum|protocol|typealias|extension)$/.test(before)) {
    if (before === "extension") use(`type ${text}`, text);
    return;
  }
  if (isMember) {
    const owner = tokens[at - 2];
    const isOfType = owner?.kind === "name" && /^(MTL|NS)[A-Z]/.test(owner.text) && !tokens[at].isApart;
    use(isCalled ? `method ${text}(${labels(tokens, at + 1)})` : `member ${text}`, text);
    if (isOfType) use(`member ${owner.text}.${text}`, text);
  } else if (/^[A-Z]/.test(text)) {
    use(`type ${text}`, text);
    if (isCalled && /^(MTL|NS)[A-Z]/.test(text)) readInitializer(text, labels(tokens, at + 1), use);
  } else if (isCalled) use(`function ${text}(${labels(tokens, at + 1)})`, text);
}

/** Every enumeration has `init(rawValue:)`. */
function readInitializer(type: string, of: string, use: Use): void {
  if (of !== "rawValue:") use(`init ${type}(${of})`, type);
}

/** Returns `length:options:` of a call's parentheses, with `_:` for an argument without a label. */
function labels(tokens: readonly SwiftToken[], opening: number, isDeclared = false): string {
  const end = closing(tokens, opening);
  if (end === opening + 1) return "";
  let found = "";
  let isFirst = true;
  for (let at = opening + 1; at < end; at++) {
    const { kind, text } = tokens[at];
    if (isFirst) found += kind === "name" && (isDeclared || tokens[at + 1]?.text === ":") ? `${text}:` : "_:";
    isFirst = kind === "mark" && text === ",";
    if (kind === "mark" && /^[([{]$/.test(text)) at = closing(tokens, at);
  }
  return found;
}
