/** Translation, summaries, and other generation of texts from texts by an {@link EncoderDecoder}. */
import { ArgumentError, ShapeError } from "../../../core/errors.ts";
import { flag, text } from "../../../core/kinds.ts";
import { named, operand, type Parsed, parameters } from "../../../core/parameters.ts";
import { definedOf } from "../../../core/records.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import type { EncoderDecoder } from "../../models/encoder_decoder/encoder_decoder.ts";
import { someTexts } from "../../tasks/batches.ts";
import { anEncoderDecoder, generatedOf } from "../batch/generate_batch.ts";
import { batchOptions, batchSettings, type GenerateBatchOptions } from "../batch/options.ts";
import { type LanguagePlan, languagePlan } from "./languages.ts";

/** Options of {@link textToText}. */
export interface TextToTextOptions extends Omit<GenerateBatchOptions, "numReturnSequences"> {
  /** A text that precedes each text, such as T5's `"summarize: "`. Default: none. */
  readonly prefix?: string | undefined;
  /** Whether a text that is too long for the model is cut. Default false: it is an error. */
  readonly truncate?: boolean | undefined;
}

/** Options of {@link translate}. */
export interface TranslateOptions extends Omit<TextToTextOptions, "prefix"> {
  /** The language of the texts: the model's code, such as `"deu_Latn"` or `"de_DE"`, or two letters (ISO 639-1). */
  readonly source?: string | undefined;
  /** The language of the results. */
  readonly target?: string | undefined;
}

/** Options of {@link summarize}. */
export type SummarizeOptions = TextToTextOptions;

const { numReturnSequences: _, ...options } = batchOptions;
const common = {
  model: operand(anEncoderDecoder),
  texts: operand(someTexts),
  ...options,
  truncate: named(flag, false),
} as const;
const readTextToText = parameters("textToText", { ...common, prefix: named(text, "") });
const readSummarize = parameters("summarize", { ...common, prefix: named(text) });
const readTranslate = parameters("translate", { ...common, source: named(text), target: named(text) });

/**
 * Generates a text from each text, with an encoder-decoder model such as T5 or BART.
 *
 * @param options see {@link TextToTextOptions}; the model's files give many defaults, such as `numBeams`
 * @returns the best result for each text, without special tokens
 *
 * @example
 * const { model } = await nn.loadModel<nn.EncoderDecoder>("google/flan-t5-small");
 * const [answer] = await nn.textToText(model, ["Is the sky blue? Answer yes or no."]);
 *
 * @throws {ArgumentError} `noTokenizer`, and as {@link generateBatch}. @throws {ShapeError} `sequenceTooLong` for a
 * text that is longer than the model's context.
 */
export function textToText(
  model: EncoderDecoder,
  texts: readonly string[],
  options?: TextToTextOptions,
): Promise<string[]>;
export async function textToText(...values: unknown[]): Promise<string[]> {
  const { prefix, ...call } = readTextToText(values);
  return run("textToText", call, { prefix });
}

/**
 * Summarizes each text, with the prefix and the defaults of the task `summarization` in the model's `config.json`, if
 * there is one. Otherwise it is {@link textToText}.
 *
 * @example
 * const { model } = await nn.loadModel<nn.EncoderDecoder>("facebook/bart-large-cnn");
 * const [summary] = await nn.summarize(model, [article], { maxTokens: 100, truncate: true });
 *
 * @throws {ArgumentError} @throws {ShapeError} as {@link textToText}.
 */
export function summarize(
  model: EncoderDecoder,
  texts: readonly string[],
  options?: SummarizeOptions,
): Promise<string[]>;
export async function summarize(...values: unknown[]): Promise<string[]> {
  const { prefix, ...call } = readSummarize(values);
  const task = call.model.texts.tasks.get("summarization");
  return run("summarize", call, { ...task, ...(prefix !== undefined && { prefix }) });
}

/**
 * Translates each text.
 *
 * @param model a translation model: Marian, M2M100, NLLB, mBART, or a T5 whose `config.json` describes translations
 * @param options `source` and `target` are languages; a Marian model for one pair needs none
 *
 * @example
 * const { model } = await nn.loadModel<nn.EncoderDecoder>("facebook/nllb-200-distilled-600M");
 * const [text] = await nn.translate(model, ["Good morning."], { source: "en", target: "de" });
 *
 * @throws {ArgumentError} `unknownLanguage`, `otherLanguages` or `noLanguages` for languages that the model does not
 * have, and as {@link textToText}. @throws {ShapeError} as {@link textToText}.
 */
export function translate(
  model: EncoderDecoder,
  texts: readonly string[],
  options?: TranslateOptions,
): Promise<string[]>;
export async function translate(...values: unknown[]): Promise<string[]> {
  const { source, target, ...call } = readTranslate(values);
  return run("translate", call, languagePlan(call.model, tokenizerOf("translate", call.model), source, target));
}

function tokenizerOf(operation: string, { tokenizer }: EncoderDecoder): PretrainedTokenizer {
  if (tokenizer) return tokenizer;
  throw new ArgumentError(
    operation,
    "noTokenizer",
    "expected a model with a tokenizer; load a folder with one, or set model.tokenizer",
  );
}

async function run(operation: string, call: Parsed<typeof common>, plan: LanguagePlan): Promise<string[]> {
  const { model, texts, truncate, ...options } = call;
  const tokenizer = tokenizerOf(operation, model);
  const { prefix = "", defaults = {}, forcedBeginToken } = plan;
  const settings = batchSettings(
    operation,
    { ...options, numReturnSequences: 1, forcedBeginToken: options.forcedBeginToken ?? forcedBeginToken },
    { ...model.generation, ...given(defaults) },
    model.vocabularySize,
  );
  const lists = texts.map((one) => encoded(operation, { model, tokenizer, plan, truncate }, prefix + one));
  const results = await generatedOf(model, lists, settings);
  return results.map(([best]) => tokenizer.decode(best.tokens).trim());
}

const given = <O extends object>(options: O): Partial<O> => definedOf(options);

interface Encoding {
  readonly model: EncoderDecoder;
  readonly tokenizer: PretrainedTokenizer;
  readonly plan: LanguagePlan;
  readonly truncate: boolean;
}

/** Returns the tokens of a text, with special tokens. */
function encoded(operation: string, { model, tokenizer, plan, truncate }: Encoding, whole: string): number[] {
  const most = model.encoder.contextLength;
  const tokens = tokenizer.encode(whole, { addSpecialTokens: false });
  const [before, after] = around(model, tokenizer, plan);
  const room = most - before.length - after.length;
  if (tokens.length > room && !truncate)
    throw new ShapeError(
      operation,
      "sequenceTooLong",
      `expected texts of at most ${room} tokens, got ${tokens.length}; split the text, or pass truncate: true`,
    );
  return [...before, ...tokens.slice(0, room), ...after];
}

/** Returns the special tokens before and after a text. */
function around(
  model: EncoderDecoder,
  tokenizer: PretrainedTokenizer,
  { sourceToken }: LanguagePlan,
): readonly [before: number[], after: number[]] {
  if (sourceToken !== undefined) {
    const end = tokenizer.endOfText!;
    return model.texts.languageLast ? [[], [end, sourceToken]] : [[sourceToken], [end]];
  }
  const { tokens, origins } = tokenizer.encodeInputs("textToText", "a", {});
  const [first, last] = [origins.findIndex(Boolean), origins.findLastIndex(Boolean)];
  return first < 0 ? [[], tokens] : [tokens.slice(0, first), tokens.slice(last + 1)];
}
