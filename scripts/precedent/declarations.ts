/** Reads declarations and type names. */
import type { Scopes } from "./scopes.ts";
import { behindClosing, behindTemplate, partsOf, type Token } from "./tokens.ts";
import { canonical, isBuiltInType, shapeOf, type Type } from "./types.ts";
import { casts, keywords, spaces, specifiers } from "./vocabulary.ts";

/** `device const float *x [[buffer(0)]]` */
export interface Declaration {
  readonly start: number;
  /** The index of the declared name. */
  readonly name: number;
  /** The index after the name, the array sizes and the attributes. */
  readonly end: number;
  readonly type: Type | undefined;
  /** The declaration with the project's names as `T`: `device const T * [[buffer(N)]]`. */
  readonly form: string;
  readonly attributes: readonly [number, number][];
  /** `(` follows: a function, or a variable with its value in parentheses. */
  readonly isCalled: boolean;
  readonly specifiers: ReadonlySet<string>;
}

interface TypeName {
  readonly type: Type | undefined;
  readonly form: string;
  readonly end: number;
}

export const isAttribute = (tokens: readonly Token[], at: number): boolean =>
  tokens[at]?.text === "[" && tokens[at + 1]?.text === "[" && tokens[at + 1].kind === "mark";

/** Returns the type's name at `at`, without qualifiers before it: `float4`, `vec<T, 4>`, `Nest<4>`, `unsigned int`. */
export function typeNameAt(tokens: readonly Token[], at: number, scopes: Scopes, isSure = false): TypeName | undefined {
  const token = tokens[at];
  if (token?.kind !== "name" || (keywords.has(token.text) && !/^(auto|decltype|struct|enum|double)$/.test(token.text)))
    return undefined;
  if (token.text === "struct" || token.text === "enum") return typeNameAt(tokens, at + 1, scopes, true);
  if (token.text === "decltype") return { type: undefined, form: "decltype", end: behindClosing(tokens, at + 1) };
  if (token.text === "auto") return { type: undefined, form: "auto", end: at + 1 };
  const pair = `${token.text} ${tokens[at + 1]?.text}`;
  if (/^(unsigned|signed)$/.test(token.text) && canonical(pair) !== pair)
    return { type: { base: canonical(pair), space: "", depth: 0 }, form: pair, end: at + 2 };
  let end = at + 1;
  let last = at;
  for (;;) {
    if (tokens[end]?.text === "<") {
      const behind = behindTemplate(tokens, end);
      if (behind === undefined) break;
      end = behind;
    }
    if (tokens[end]?.text !== "::") break;
    const follower = tokens[end + 1]?.text === "template" ? end + 2 : end + 1;
    if (tokens[follower]?.kind !== "name") return undefined;
    last = follower;
    end = follower + 1;
  }
  const { text } = tokens[last];
  const isMetals = isBuiltInType(text, last + 1 < end ? "<" : "");
  const entry = scopes.find(token.text);
  const isKnown = isMetals || entry?.kind === "type" || (isSure && entry === undefined);
  if (!isKnown) return undefined;
  const type = last === at || isMetals ? typeOfName(tokens, last, end, scopes) : undefined;
  return { type, form: isBuiltInType(text) && last + 1 === end ? text : "T", end };
}

function typeOfName(tokens: readonly Token[], at: number, end: number, scopes: Scopes): Type | undefined {
  const { text } = tokens[at];
  if (tokens[at + 1]?.text === "<" && at + 1 < end) {
    const words = partsOf(tokens, at + 2, end - 1);
    if (text === "vec") return vectorType(tokens, words, scopes);
    const forms = words.map(([from, to]) => wordForm(tokens, from, to, scopes));
    return isBuiltInType(text, "<")
      ? { base: canonical(`${text}<${forms.join(", ")}>`), space: "", depth: 0 }
      : { base: text, space: "", depth: 0 };
  }
  if (isBuiltInType(text)) return { base: canonical(text), space: "", depth: 0 };
  return scopes.find(text)?.type;
}

function vectorType(tokens: readonly Token[], words: [number, number][], scopes: Scopes): Type | undefined {
  const [element, count] = words;
  if (!element || !count) return undefined;
  const type = typeNameAt(tokens, element[0], scopes)?.type;
  const shape = type?.depth === 0 ? shapeOf(type.base) : undefined;
  const size = tokens[count[0]].text;
  return shape && /^[234]$/.test(size) ? { base: `${shape.element}${size}`, space: "", depth: 0 } : undefined;
}

/** A template argument: Metal's types and numbers unchanged, everything else as `_`. */
export function wordForm(tokens: readonly Token[], from: number, to: number, scopes: Scopes): string {
  const words = tokens.slice(from, to).map(({ kind, text }, index, all) => {
    if (all[index - 1]?.text === "::") return "";
    if (kind === "number") return /^\d{1,2}$/.test(text) ? text : "N";
    if (kind !== "name" || spaces.has(text) || text === "const" || isBuiltInType(text, all[index + 1]?.text))
      return text;
    const type = scopes.find(text)?.type;
    return type?.base === "T" ? "T" : keywords.has(text) ? text : "_";
  });
  return words.some((word) => /^[-+/%&|?!<>=(:]|^$/.test(word) && word !== ">" && word !== "<")
    ? "_"
    : words.join(" ").replace(/ ?([<>]) ?/g, "$1");
}

/** Reads the rest of a type: `*`, `&`, `const`, and address spaces of pointers to pointers. */
function pointersAt(tokens: readonly Token[], start: number) {
  let at = start;
  let depth = 0;
  const form: string[] = [];
  for (; ; at++) {
    const text = tokens[at]?.text ?? "";
    if (text === "*") depth++;
    if (!(/^(\*|&|&&|const|volatile|restrict|\.\.\.)$/.test(text) || spaces.has(text))) return { at, depth, form };
    form.push(text);
  }
}

/** A type in a cast, in `sizeof` or in a template: without a name. */
export function typeIdAt(
  tokens: readonly Token[],
  start: number,
  end: number,
  scopes: Scopes,
): (TypeName & { readonly hasSpace: boolean }) | undefined {
  const before = specifiersAt(tokens, start);
  const name = typeNameAt(tokens, before.at, scopes, before.space !== "");
  if (!name) return undefined;
  const behind = pointersAt(tokens, name.end);
  let { at } = behind;
  if (tokens[at]?.text === "(" && /^[*&]$/.test(tokens[at + 1]?.text ?? "")) at = behindClosing(tokens, at);
  while (tokens[at]?.text === "[") at = behindClosing(tokens, at);
  if (at !== end) return undefined;
  const space = before.space || behind.form.find((word) => spaces.has(word)) || "";
  const base = behind.form.length > 0 && (name.form === "T" || isBuiltInType(name.form)) ? "T" : name.form;
  const type = name.type && { base: name.type.base, space, depth: name.type.depth + behind.depth };
  const form = [...ordered(before.form), base, ...behind.form].join(" ");
  return { type, form, end: at, hasSpace: space !== "" };
}

function specifiersAt(tokens: readonly Token[], start: number) {
  let at = start;
  let space = "";
  const form: string[] = [];
  const words = new Set<string>();
  const attributes: [number, number][] = [];
  for (;;) {
    const token = tokens[at];
    if (token && isAttribute(tokens, at)) {
      attributes.push([at, behindClosing(tokens, at)]);
      at = attributes.at(-1)![1];
    } else if (token?.text === "alignas" || token?.text === "__attribute__") at = behindClosing(tokens, at + 1);
    else if (token && specifiers.has(token.text)) {
      words.add(token.text);
      if (spaces.has(token.text)) space = token.text;
      form.push(token.text);
      at++;
      if (token.text === "coherent" && tokens[at]?.text === "(") at = behindClosing(tokens, at);
    } else return { at, space, form, words, attributes };
  }
}

/** Qualifiers of a type may have any order: here the address space is first, and `const` last. */
const ordered = (form: readonly string[]): string[] =>
  form.toSorted((a, b) => order(a) - order(b) || (a < b ? -1 : a > b ? 1 : 0));
const order = (word: string): number => (spaces.has(word) ? 0 : word === "const" ? 2 : 1);

const isPlainName = (token: Token | undefined): boolean =>
  token?.kind === "name" && !keywords.has(token.text) && !isBuiltInType(token.text);

/** Returns the declaration that begins at `start`; undefined if there is none. */
export function declarationAt(tokens: readonly Token[], start: number, scopes: Scopes): Declaration | undefined {
  const before = specifiersAt(tokens, start);
  let { at } = before;
  // An unknown macro, such as METAL_FUNC.
  if (isPlainName(tokens[at]) && /^[A-Z_]+$/.test(tokens[at].text) && typeNameAt(tokens, at + 1, scopes)) at++;
  const follower = tokens[at + 1];
  const isSure = before.space !== "" || before.words.has("const") || before.words.has("typename");
  const isPair = isPlainName(tokens[at]) && isPlainName(follower) && !casts.has(follower.text);
  const name = typeNameAt(tokens, at, scopes, isSure || isPair) ?? pairedName(tokens, at, scopes);
  if (!name) return undefined;
  const middle = specifiersAt(tokens, name.end); // `float const x`
  const pointers = pointersAt(tokens, name.end);
  const place = nameAt(tokens, pointers.at);
  if (!place) return undefined;
  const space = before.space || [...middle.words].find((word) => spaces.has(word)) || "";
  return finish(tokens, start, { before, name, pointers, place, space });
}

/** `mpp::tensor_ops::matmul2d<…> product`: two adjacent names are a declaration. */
function pairedName(tokens: readonly Token[], at: number, scopes: Scopes): TypeName | undefined {
  const name = tokens[at + 1]?.text === "::" ? typeNameAt(tokens, at, scopes, true) : undefined;
  return name && isPlainName(tokens[name.end]) ? name : undefined;
}

interface Parts {
  readonly before: ReturnType<typeof specifiersAt>;
  readonly name: TypeName;
  readonly pointers: ReturnType<typeof pointersAt>;
  readonly place: NonNullable<ReturnType<typeof nameAt>>;
  readonly space: string;
}

/** The declared name: `x`, `(&x)`, `operator+`. */
function nameAt(tokens: readonly Token[], start: number) {
  if (isPlainName(tokens[start])) {
    let name = start; // `Struct::member` is defined outside of its struct
    while (tokens[name + 1]?.text === "::" && isPlainName(tokens[name + 2])) name += 2;
    return { name, end: name + 1, form: [] as string[], depth: 0 };
  }
  if (tokens[start]?.text === "operator") {
    let end = start + 1;
    while (end < start + 4 && tokens[end]?.text !== "(") end++;
    if (end === start + 1) end = behindClosing(tokens, end);
    return { name: start, end, form: ["operator"], depth: 0 };
  }
  const mark = tokens[start + 1]?.text ?? "";
  const name = start + 2;
  if (tokens[start]?.text === "(" && /^[*&]$/.test(mark) && isPlainName(tokens[name]) && tokens[name + 1]?.text === ")")
    return { name, end: name + 2, form: [`(${mark})`], depth: mark === "*" ? 1 : 0 };
  return undefined;
}

function finish(
  tokens: readonly Token[],
  start: number,
  { before, name, pointers, place, space }: Parts,
): Declaration | undefined {
  let at = place.end;
  let arrays = 0;
  const attributes = [...before.attributes];
  const form = [...ordered(before.form), name.form, ...pointers.form, ...place.form];
  while (tokens[at]?.text === "[") {
    const end = behindClosing(tokens, at);
    if (isAttribute(tokens, at)) attributes.push([at, end]);
    else {
      arrays++;
      form.push("[]");
    }
    at = end;
  }
  const next = tokens[at]?.text ?? ";";
  if (!/^(=|;|,|\)|:|\{|\(|>)$/.test(next)) return undefined;
  if (next === "(" && place.form.includes("(*)")) at = behindClosing(tokens, at); // a pointer to a function
  const type = name.type && {
    base: name.type.base,
    space: space || name.type.space,
    depth: name.type.depth + pointers.depth + arrays + place.depth,
  };
  return {
    start,
    name: place.name,
    end: at,
    type: place.form.includes("(*)") ? undefined : type,
    form: form.join(" "),
    attributes,
    isCalled: tokens[at]?.text === "(",
    specifiers: before.words,
  };
}
