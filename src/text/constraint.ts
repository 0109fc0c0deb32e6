import type {
  CompiledGrammar,
  Grammar,
  GrammarCompiler,
  GrammarMatcher,
  StructuralTagFormat,
} from "@mlc-ai/web-xgrammar";
import { ArgumentError } from "../core/errors.ts";
import { anObject, flag, text } from "../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../core/parameters.ts";
import { byteCharacters } from "../data/bpe_words.ts";
import type { TokenConstraint, TokenMatcher } from "../nn/generation/constraint.ts";
import { checkSchema } from "./json_schema.ts";

/** What {@link compileConstraint} needs of a tokenizer. Those of `data` and `text` have it. */
export interface ConstrainedTokenizer {
  readonly vocabularySize: number;
  readonly endOfText: number | null;
  bytesOf(token: number): Uint8Array;
  /** Whether a token is no text: it never follows, but for those that end the text. */
  isSpecial?(token: number): boolean;
}

/** The form of a text: one of these. */
export interface ConstraintOptions {
  /** A regular expression that the whole text matches. */
  readonly regex?: string | undefined;
  /** A JSON schema: the text is JSON that is valid by it. Keywords that can't be held to are refused by name. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** Any JSON object or list. Default false. */
  readonly json?: boolean | undefined;
}

const aTokenizer: Kind<ConstrainedTokenizer> = {
  expected: "a tokenizer",
  parse(value) {
    const own = value as Partial<ConstrainedTokenizer> | null | undefined;
    return typeof own?.bytesOf === "function" && typeof own.vocabularySize === "number"
      ? (value as ConstrainedTokenizer)
      : undefined;
  },
};

const readCall = parameters("compileConstraint", {
  tokenizer: operand(aTokenizer),
  regex: named(text),
  schema: named(anObject<Readonly<Record<string, unknown>>>("a JSON schema, an object")),
  json: named(flag, false),
});

/**
 * A form that generated texts are held to: whatever the model says, only tokens that can still lead to such a text
 * follow. The automaton is that of XGrammar (Y. Dong et al., "XGrammar: flexible and efficient structured generation
 * engine for large language models", 2024), as the npm package `@mlc-ai/web-xgrammar`.
 *
 * A text that ends because of `maxTokens` is the beginning of such a text.
 *
 * @param tokenizer the model's
 *
 * @example
 * const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
 * const constraint = await text.compileConstraint(tokenizer, { schema });
 * for await (const piece of nn.generateText(model, tokenizer, prompt, { constraint })) process.stdout.write(piece);
 *
 * @throws {ArgumentError} for no form or several, a regular expression that is none, and a schema that can't be held
 * to.
 */
export function compileConstraint(
  tokenizer: ConstrainedTokenizer,
  options: ConstraintOptions,
): Promise<TokenConstraint>;
export async function compileConstraint(...values: unknown[]): Promise<TokenConstraint> {
  const { tokenizer, regex, schema, json } = readCall(values);
  if ([regex, schema, json || undefined].filter((own) => own !== undefined).length !== 1)
    throw invalid("noForm", "expected one of regex, schema and json: true");
  const written = schema && reading("compileConstraint", () => checkSchema(schema));
  if (regex !== undefined) checkRegex(regex);
  const vocabulary = await vocabularyOf(tokenizer);
  const compiled = await attempt(async () => {
    if (regex !== undefined) return compiledFrom(vocabulary, await grammarOf(regex));
    if (written === undefined) return vocabulary.compiler.compileBuiltinJSONGrammar();
    return vocabulary.compiler.compileJSONSchema(written, true, undefined, undefined, true, MOST_SPACES);
  });
  return new Constraint(compiled, tokenizer.vocabularySize, vocabulary.fallbackStop);
}

/** Between two parts of JSON. Without a limit a model may write spaces for ever. */
const MOST_SPACES = 2;

const invalid = (code: string, message: string) => new ArgumentError("compileConstraint", code, message);

/** @internal A function that may be called. */
export interface CallableFunction {
  readonly name: string;
  /** The JSON schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** @internal How texts call functions. */
export interface CallForm {
  /** `"tags"`: `<tool_call>{"name": …, "arguments": …}</tool_call>`; `"json"`: `{"name": …, "parameters": …}`, one. */
  readonly written: "tags" | "json";
  /** Whether the text is calls alone; otherwise it says something, in which there may be calls in tags. */
  readonly isForced: boolean;
  /** Whether there may be several calls. */
  readonly isParallel: boolean;
}

/**
 * @internal Holds texts to calls of functions with arguments by their schemas.
 *
 * @throws {ArgumentError} for a schema that can't be held to.
 */
export async function compileCalls(
  tokenizer: ConstrainedTokenizer,
  functions: readonly CallableFunction[],
  form: CallForm,
): Promise<TokenConstraint> {
  const schemas = functions.map(({ parameters }) => reading("compileConstraint", () => checkSchema(parameters)));
  const vocabulary = await vocabularyOf(tokenizer);
  const compiled = await attempt(async () => {
    const { Grammar } = await xgrammar();
    const calls = await Promise.all(functions.map(async ({ name }, at) => [name, await jsonOf(schemas[at]!)] as const));
    const format = form.written === "tags" ? taggedCalls(calls, form) : plainCall(calls);
    return compiledFrom(vocabulary, await Grammar.fromStructuralTag({ type: "structural_tag", format }));
  });
  return new Constraint(compiled, tokenizer.vocabularySize, vocabulary.fallbackStop);
}

type Call = readonly [name: string, parameters: StructuralTagFormat];

/** A schema as a grammar, in which spaces are limited. */
async function jsonOf(schema: string): Promise<StructuralTagFormat> {
  const { Testings } = await xgrammar();
  const grammar = await Testings._jsonSchemaToEBNF(schema, true, undefined, undefined, true, MOST_SPACES);
  return { type: "grammar", grammar };
}

function taggedCalls(calls: readonly Call[], { isForced, isParallel }: CallForm): StructuralTagFormat {
  const tags = calls.map(([name, content]) => ({
    ...{ type: "tag" as const, content, end: "}\n</tool_call>" },
    begin: `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `,
  }));
  return isForced
    ? { type: "tags_with_separator", tags, separator: "\n", at_least_one: true, stop_after_first: !isParallel }
    : { type: "triggered_tags", tags, triggers: ["<tool_call>"], stop_after_first: !isParallel };
}

const plainCall = (calls: readonly Call[]): StructuralTagFormat => ({
  type: "or",
  elements: calls.map(([name, content]) => ({
    type: "sequence",
    elements: [
      { type: "const_string", value: `{"name": ${JSON.stringify(name)}, "parameters": ` },
      content,
      { type: "const_string", value: "}" },
    ],
  })),
});

/** The limits keep the automaton of a stranger's expression small. */
function checkRegex(regex: string): void {
  const repeats = [...regex.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].flatMap(([, ...counts]) => counts.map(Number));
  if (regex.length > 4096 || repeats.some((count) => count > 1000) || repeats.length > 100)
    throw invalid("tooLarge", "expected a regular expression of at most 4096 characters and repeats of at most 1000");
  try {
    new RegExp(regex, "u");
  } catch (cause) {
    throw new ArgumentError("compileConstraint", "notARegex", `expected a regular expression: ${String(cause)}`, {
      cause,
    });
  }
}

/** It has no function for expressions alone; a text with one part is one. */
async function grammarOf(pattern: string): Promise<Grammar> {
  const { Grammar } = await xgrammar();
  return Grammar.fromStructuralTag({ type: "structural_tag", format: { type: "regex", pattern } });
}

async function compiledFrom({ compiler }: Vocabulary, grammar: Grammar): Promise<CompiledGrammar> {
  try {
    return await compiler.compileGrammar(grammar);
  } finally {
    grammar.dispose();
  }
}

/** Loaded on first use: it is a megabyte. */
const xgrammar = () => import("@mlc-ai/web-xgrammar");

async function attempt<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (cause) {
    const message = "expected a form that can be held to; standard error has what is wrong with it";
    throw new ArgumentError("compileConstraint", "unsupported", message, { cause });
  }
}

interface Vocabulary {
  readonly compiler: GrammarCompiler;
  /** What ends a text where the tokenizer has nothing that does: a token beyond all. */
  readonly fallbackStop: number;
}

const vocabularies = new WeakMap<ConstrainedTokenizer, Promise<Vocabulary>>();

function vocabularyOf(tokenizer: ConstrainedTokenizer): Promise<Vocabulary> {
  const known = vocabularies.get(tokenizer) ?? makeVocabulary(tokenizer);
  vocabularies.set(tokenizer, known);
  return known;
}

/** Each byte as GPT-2's character for it. Special tokens are empty: the package lets none of these follow. */
async function makeVocabulary(tokenizer: ConstrainedTokenizer): Promise<Vocabulary> {
  const { vocabularySize, endOfText } = tokenizer;
  const isText = (token: number) => token !== endOfText && !tokenizer.isSpecial?.(token);
  const tokens = Array.from({ length: vocabularySize }, (_, token) =>
    isText(token) ? Array.from(tokenizer.bytesOf(token), (byte) => byteCharacters[byte]!).join("") : "",
  );
  const stops = [vocabularySize];
  const { GrammarCompiler, TokenizerInfo } = await xgrammar();
  const info = await TokenizerInfo.createTokenizerInfo([...tokens, ""], "byte_level", false, vocabularySize + 1, stops);
  // It would keep every form that it ever compiled; the caller knows which ones come again.
  return { compiler: await GrammarCompiler.createGrammarCompiler(info, false), fallbackStop: vocabularySize };
}

/** The package's memory is not the collector's. Matchers have their own share of it. */
const forgotten = new FinalizationRegistry<CompiledGrammar>((compiled) => compiled.dispose());

class Constraint implements TokenConstraint {
  constructor(
    private readonly compiled: CompiledGrammar,
    private readonly size: number,
    private readonly fallbackStop: number,
  ) {
    forgotten.register(this, compiled);
  }

  async start(stopTokens: ReadonlySet<number>): Promise<TokenMatcher> {
    const { GrammarMatcher } = await xgrammar();
    const stops = [...stopTokens].filter((token) => token < this.size);
    const matcher = await GrammarMatcher.createGrammarMatcher(this.compiled, [...stops, this.fallbackStop]);
    return new Matcher(matcher, await matcher.getNextTokenBitmask(), this.size);
  }
}

class Matcher implements TokenMatcher {
  constructor(
    private readonly matcher: GrammarMatcher,
    private mask: Int32Array,
    private readonly size: number,
  ) {}

  private allows(token: number): boolean {
    return token < this.size && ((this.mask[token >> 5]! >>> (token & 31)) & 1) === 1;
  }

  get isDone(): boolean {
    for (let token = 0; token < this.size; token++) if (this.allows(token)) return false;
    return true;
  }

  forbid(scores: Float64Array): void {
    for (let token = 0; token < scores.length; token++) if (!this.allows(token)) scores[token] = -Infinity;
  }

  async accept(token: number): Promise<void> {
    this.matcher.acceptToken(token);
    this.mask = await this.matcher.getNextTokenBitmask();
  }

  [Symbol.dispose](): void {
    this.matcher.dispose();
  }
}
