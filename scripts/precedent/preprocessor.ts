/**
 * The preprocessor: returns the tokens after all includes and macros that can be resolved. Each token keeps its
 * original line, in the body of its macro or in an argument. For conditions that depend on the compiler's macros, both
 * branches are read.
 */
import { branchOf } from "./conditions.ts";
import { behindClosing, type Token, tokensOf } from "./tokens.ts";

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface Macro {
  readonly parameters: readonly string[] | undefined;
  readonly isVariadic: boolean;
  readonly body: readonly Token[];
}

/** A directive, such as `#include`, as written. */
export interface Directive {
  readonly name: string;
  readonly tokens: readonly Token[];
}

export interface Preprocessed {
  readonly tokens: readonly Token[];
  readonly directives: readonly Directive[];
  readonly macros: ReadonlyMap<string, Macro>;
}

/** Finds the file of an `#include "name"`; undefined if it is not the project's. */
export type Include = (name: string, from: string) => SourceFile | undefined;

interface State {
  readonly include: Include;
  readonly macros: Map<string, Macro>;
  readonly seen: Set<string>;
  readonly directives: Directive[];
  readonly out: Token[];
}

const known = new Map<string, { readonly text: string; readonly tokens: readonly Token[] }>();

/** Tokens are cached, since many files read the same headers. */
function tokensOfFile({ path, text }: SourceFile): readonly Token[] {
  const kept = known.get(path);
  if (kept?.text === text) return kept.tokens;
  const tokens = tokensOf(text, path);
  known.set(path, { text, tokens });
  return tokens;
}

export function preprocess(source: SourceFile, include: Include): Preprocessed {
  const state: State = { include, macros: new Map(), seen: new Set(), directives: [], out: [] };
  const tokens = tokensOf(source.text, source.path);
  readTokens(tokens, state);
  return { tokens: state.out, directives: state.directives, macros: state.macros };
}

/** For a condition: whether its current branch is read, and whether a later one may be. */
interface Branch {
  isRead: boolean;
  mayFollow: boolean;
}

function readTokens(tokens: readonly Token[], state: State): void {
  const branches: Branch[] = [];
  const isRead = () => branches.every((branch) => branch.isRead);
  let run: Token[] = [];
  const flush = () => {
    if (run.length > 0) expandAll(run, state.macros, state.out);
    run = [];
  };
  for (let at = 0; at < tokens.length; ) {
    const token = tokens[at];
    if (!(token.isFirst && token.text === "#" && token.kind === "mark")) {
      if (isRead()) run.push(token);
      at++;
      continue;
    }
    let end = at + 1;
    while (end < tokens.length && !tokens[end].isFirst) end++;
    const directive: Directive = { name: tokens[at + 1]?.text ?? "", tokens: tokens.slice(at + 2, end) };
    at = end;
    if (/^(if|ifdef|ifndef|elif|else|endif)$/.test(directive.name)) {
      condition(directive, branches, isRead(), state);
    } else if (isRead()) {
      flush();
      obey(directive, state);
    }
  }
  flush();
}

function condition(directive: Directive, branches: Branch[], isRead: boolean, state: State): void {
  const { name } = directive;
  const last = branches.at(-1);
  if (isRead || (last && name.startsWith("el"))) state.directives.push(directive);
  if (name === "endif") {
    branches.pop();
    return;
  }
  if (name === "else" || name === "elif") {
    if (!last) return;
    const value = name === "else" ? true : branchOf(directive, state.macros);
    last.isRead = last.mayFollow && value !== false;
    if (value === true) last.mayFollow = false;
    return;
  }
  const value = branchOf(directive, state.macros);
  branches.push({ isRead: value !== false, mayFollow: value !== true });
}

function obey(directive: Directive, state: State): void {
  const { name, tokens } = directive;
  if (name === "define" && tokens[0]) state.macros.set(tokens[0].text, macroOf(tokens));
  if (name === "undef" && tokens[0]) state.macros.delete(tokens[0].text);
  if (name === "include" && tokens[0]?.kind === "text") {
    const file = state.include(tokens[0].text.slice(1, -1), tokens[0].file);
    if (file) {
      if (state.seen.has(file.path)) return;
      state.seen.add(file.path);
      readTokens(tokensOfFile(file), state);
      return;
    }
  }
  state.directives.push(directive);
}

function macroOf(tokens: readonly Token[]): Macro {
  const opening = tokens[1];
  if (!(opening?.text === "(" && opening.isGlued))
    return { parameters: undefined, isVariadic: false, body: tokens.slice(1) };
  const closing = behindClosing(tokens, 1);
  const names = tokens.slice(2, closing - 1).filter(({ text }) => text !== ",");
  return {
    parameters: names.filter(({ kind }) => kind === "name").map(({ text }) => text),
    isVariadic: names.some(({ text }) => text === "..."),
    body: tokens.slice(closing),
  };
}

const noNames: ReadonlySet<string> = new Set();

/** Expands macros; a macro is not expanded within itself. */
function expandAll(
  tokens: readonly Token[],
  macros: ReadonlyMap<string, Macro>,
  out: Token[],
  hidden: ReadonlySet<string> = noNames,
): void {
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    const macro = token.kind === "name" && !hidden.has(token.text) ? macros.get(token.text) : undefined;
    if (!macro || (macro.parameters && tokens[at + 1]?.text !== "(")) {
      out.push(token);
      continue;
    }
    const behind = macro.parameters ? behindClosing(tokens, at + 1) : at + 1;
    const words = macro.parameters ? argumentsOf(tokens.slice(at + 2, behind - 1)) : [];
    const inside = new Set(hidden).add(token.text);
    const body = filled(macro, words, macros, hidden);
    // If a macro's body ends with the name of a macro with parameters, the arguments follow the first macro.
    const last = body.at(-1);
    if (last && macros.get(last.text)?.parameters && tokens[behind]?.text === "(") {
      const further = behindClosing(tokens, behind);
      body.push(...tokens.slice(behind, further));
      at = further - 1;
    } else at = behind - 1;
    expandAll(body, macros, out, inside);
  }
}

/** A macro's arguments, in which `<` is not a bracket. */
function argumentsOf(tokens: readonly Token[]): Token[][] {
  const found: Token[][] = [[]];
  for (let at = 0; at < tokens.length; at++) {
    if (/^[([{]$/.test(tokens[at].text)) {
      const end = behindClosing(tokens, at);
      found.at(-1)!.push(...tokens.slice(at, end));
      at = end - 1;
    } else if (tokens[at].text === ",") found.push([]);
    else found.at(-1)!.push(tokens[at]);
  }
  return found;
}

function filled(
  { parameters, isVariadic, body }: Macro,
  words: readonly (readonly Token[])[],
  macros: ReadonlyMap<string, Macro>,
  hidden: ReadonlySet<string>,
): Token[] {
  const given = new Map<string, readonly Token[]>(parameters?.map((name, index) => [name, words[index] ?? []]));
  if (isVariadic) {
    const rest = words.slice(parameters!.length);
    const comma = body[0] && { ...body[0], kind: "mark" as const, text: "," };
    given.set(
      "__VA_ARGS__",
      rest.flatMap((word, index) => (index > 0 && comma ? [comma, ...word] : word)),
    );
  }
  const out: Token[] = [];
  for (let at = 0; at < body.length; at++) {
    const token = body[at];
    const word = given.get(token.text);
    const isJoined = body[at - 1]?.text === "##" || body[at + 1]?.text === "##";
    const next = given.get(body[at + 1]?.text ?? "");
    if (token.text === "#" && next && parameters) {
      out.push({ ...token, kind: "text", text: JSON.stringify(next.map(({ text }) => text).join(" ")) });
      at++;
    } else if (token.text === "##") {
      const follower = body[at + 1];
      const right = follower ? (given.get(follower.text) ?? [follower]) : [];
      const left = out.pop();
      if (left && right[0]) out.push({ ...left, text: left.text + right[0].text }, ...right.slice(1));
      else out.push(...(left ? [left] : []), ...right);
      at++;
    } else if (word && !isJoined) expandAll(word, macros, out, hidden);
    else out.push(...(word ?? [token]));
  }
  return out;
}
