import type { CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";
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
    if (regex !== undefined) return vocabulary.compiler.compileGrammar(await grammarOf(regex));
    if (written === undefined) return vocabulary.compiler.compileBuiltinJSONGrammar();
    return vocabulary.compiler.compileJSONSchema(written, true, undefined, undefined, true, MOST_SPACES);
  });
  return new Constraint(compiled, tokenizer.vocabularySize, vocabulary.fallbackStop);
}

/** Between two parts of JSON. Without a limit a model may write spaces for ever. */
const MOST_SPACES = 2;

const invalid = (code: string, message: string) => new ArgumentError("compileConstraint", code, message);

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
  return { compiler: await GrammarCompiler.createGrammarCompiler(info), fallbackStop: vocabularySize };
}

class Constraint implements TokenConstraint {
  constructor(
    private readonly compiled: CompiledGrammar,
    private readonly size: number,
    private readonly fallbackStop: number,
  ) {}

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
