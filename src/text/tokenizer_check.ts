/**
 * Checks a `tokenizer.json` before `@huggingface/tokenizers` reads it, which would accept values of wrong types and
 * fail later. The package itself rejects unknown types of steps, with an error that names them.
 */
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { tupleOf } from "../core/tuples.ts";
import { listIn, numberIn, recordIn } from "../core/values.ts";
import type { TokenizerJson } from "./tokenizer_file.ts";

/** Throws if a value has the wrong type. @param path such as `model.vocab` */
type Check = (value: unknown, path: string, depth: number) => void;
type Fields = Readonly<Record<string, Check>>;
type Section = Readonly<Record<string, Fields>>;

const MOST_DEPTH = 32;
/** Larger than any vocabulary. */
const MOST_IDS = 2 ** 24;

const wrong = (path: string, expected: string, value: unknown): ArgumentError =>
  new ArgumentError(
    "loadTokenizer",
    "invalidTokenizer",
    `expected ${path} to be ${expected}, got ${describeValue(value)}`,
  );

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const kind =
  (expected: string, holds: (value: unknown) => boolean): Check =>
  (value, path) => {
    if (!holds(value)) throw wrong(path, expected, value);
  };
/** Accepts null and undefined, for which the default is used. */
const optional =
  (check: Check): Check =>
  (value, path, depth) => {
    if (value !== undefined && value !== null) check(value, path, depth);
  };

const isId = (value: unknown): boolean => Number.isInteger(value) && numberIn(value) >= 0 && numberIn(value) < MOST_IDS;
const aText = kind("a text", (value) => typeof value === "string");
const someText = kind("a non-empty string", (value) => typeof value === "string" && value !== "");
const aFlag = kind("true or false", (value) => typeof value === "boolean");
const aNumber = kind("a finite number", Number.isFinite);
const anId = kind(`a token from 0 to ${MOST_IDS - 1}`, isId);
const aLength = kind("a whole number of at least 1", (value) => Number.isInteger(value) && numberIn(value) > 0);
const aCount = kind("a whole number of at least 0", (value) => Number.isInteger(value) && numberIn(value) >= 0);
const [text, flag, number] = tupleOf([aText, aFlag, aNumber].map(optional), 3);
const one = (...values: readonly string[]): Check =>
  kind(`one of ${values.join(", ")}`, (choice) => values.some((each) => each === choice));

const list =
  (check: Check): Check =>
  (value, path, depth) => {
    if (!Array.isArray(value)) throw wrong(path, "a list", value);
    for (let at = 0; at < value.length; at++) check(value[at], `${path}[${at}]`, depth);
  };
const record =
  (check: Check): Check =>
  (value, path, depth) => {
    if (!isObject(value)) throw wrong(path, "an object", value);
    for (const [name, item] of Object.entries(value)) check(item, `${path}[${JSON.stringify(name)}]`, depth);
  };
const object =
  (fields: Fields): Check =>
  (value, path, depth) => {
    if (!isObject(value)) throw wrong(path, "an object", value);
    for (const [name, check] of Object.entries(fields)) check(value[name], `${path}.${name}`, depth);
  };
const pair =
  (first: Check, second: Check): Check =>
  (value, path, depth) => {
    if (!Array.isArray(value) || value.length !== 2) throw wrong(path, "a list of two", value);
    first(value[0], `${path}[0]`, depth);
    second(value[1], `${path}[1]`, depth);
  };

/** Checks a step, whose type determines its fields. */
const step =
  (section: () => Section): Check =>
  (value, path, depth) => {
    if (!isObject(value)) throw wrong(path, "an object", value);
    if (depth > MOST_DEPTH) throw wrong(path, `at most ${MOST_DEPTH} levels deep`, value);
    const { type } = value;
    aText(type, `${path}.type`, depth);
    const fields = typeof type === "string" && Object.hasOwn(section(), type) ? section()[type] : {};
    object(fields)(value, path, depth + 1);
  };

const pattern: Check = (value, path, depth) => {
  object({ String: text, Regex: text })(value, path, depth);
  const { String: literal, Regex: regex } = recordIn(value);
  if ((literal ?? regex ?? undefined) === undefined) throw wrong(path, "an object with String or Regex", value);
};

const behavior = one("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous");
const scheme = optional(one("always", "never", "first"));
const byteLevel = { add_prefix_space: flag, trim_offsets: flag, use_regex: flag };

const normalizers: Section = {
  Sequence: { normalizers: list(step(() => normalizers)) },
  BertNormalizer: { clean_text: flag, handle_chinese_chars: flag, strip_accents: flag, lowercase: flag },
  Precompiled: { precompiled_charsmap: text },
  Replace: { pattern, content: aText },
  Strip: { strip_left: flag, strip_right: flag },
  Prepend: { prepend: aText },
};

const preTokenizers: Section = {
  Sequence: { pretokenizers: list(step(() => preTokenizers)) },
  ByteLevel: byteLevel,
  Metaspace: { replacement: text, str_rep: text, prepend_scheme: scheme, add_prefix_space: flag, split: flag },
  Split: { pattern, behavior, invert: flag },
  Punctuation: { behavior: optional(behavior) },
  Digits: { individual_digits: flag },
  Replace: { pattern, content: text },
  FixedLength: { length: aLength },
};

const item = object({ id: someText, type_id: optional(aCount) });
const templateItem: Check = (value, path, depth) => {
  const names = isObject(value) ? Object.keys(value) : [];
  if (names.length !== 1 || !/^(SpecialToken|Sequence)$/.test(names[0]))
    throw wrong(path, "an object with SpecialToken or Sequence", value);
  object({ [names[0]]: item })(value, path, depth);
};
const specialToken = object({ ids: list(anId), tokens: list(aText) });
const named = pair(someText, anId);

const postProcessors: Section = {
  Sequence: { processors: list(step(() => postProcessors)) },
  TemplateProcessing: {
    single: list(templateItem),
    pair: optional(list(templateItem)),
    special_tokens: optional(record(specialToken)),
  },
  ByteLevel: byteLevel,
  RobertaProcessing: { sep: named, cls: named, trim_offsets: flag, add_prefix_space: flag },
  BertProcessing: { sep: named, cls: named },
};

const decoders: Section = {
  Sequence: { decoders: list(step(() => decoders)) },
  ByteLevel: byteLevel,
  WordPiece: { prefix: text, cleanup: flag },
  Metaspace: { replacement: text, prepend_scheme: scheme, add_prefix_space: flag, split: flag },
  Replace: { pattern, content: aText },
  Strip: { content: aText, start: aCount, stop: aCount },
  BPEDecoder: { suffix: text },
};

/** Checks lists with hundreds of thousands of entries without building paths of valid ones. */
const many =
  (expected: string, holds: (value: unknown) => boolean): Check =>
  (value, path) => {
    if (!Array.isArray(value)) throw wrong(path, "a list", value);
    const at = value.findIndex((item) => !holds(item));
    if (at >= 0) throw wrong(`${path}[${at}]`, expected, value[at]);
  };
const ids: Check = (value, path) => {
  if (!isObject(value)) throw wrong(path, "an object", value);
  for (const name in value)
    if (!isId(value[name]))
      throw wrong(`${path}[${JSON.stringify(name)}]`, `a token from 0 to ${MOST_IDS - 1}`, value[name]);
};
const isMerge = (value: unknown): boolean =>
  typeof value === "string"
    ? value.includes(" ")
    : Array.isArray(value) && value.length === 2 && value.every((item) => typeof item === "string");
const isPiece = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && Number.isFinite(value[1]);

const models: Section = {
  BPE: {
    vocab: ids,
    merges: many("two strings, or a string with a space", isMerge),
    unk_token: text,
    fuse_unk: flag,
    byte_fallback: flag,
    ignore_merges: flag,
    continuing_subword_prefix: text,
    continuing_subword_suffix: text,
    end_of_word_suffix: text,
    dropout: number,
  },
  WordPiece: {
    vocab: ids,
    unk_token: text,
    continuing_subword_prefix: text,
    max_input_chars_per_word: optional(aCount),
  },
  Unigram: { vocab: many("a string and a number", isPiece), unk_id: aCount, byte_fallback: flag },
};

const addedToken = object({
  id: anId,
  content: someText,
  single_word: flag,
  lstrip: flag,
  rstrip: flag,
  normalized: flag,
  special: flag,
});

const whole = object({
  model: (value, path, depth) => {
    if (!isObject(value)) throw wrong(path, "an object", value);
    if (value["type"] !== undefined) step(() => models)(value, path, depth);
  },
  added_tokens: optional(list(addedToken)),
  normalizer: optional(step(() => normalizers)),
  pre_tokenizer: optional(step(() => preTokenizers)),
  post_processor: optional(step(() => postProcessors)),
  decoder: optional(step(() => decoders)),
});

const aName: Check = (value, path, depth) => {
  if (typeof value !== "string") object({ content: text })(value, path, depth);
};
const config = object({
  ...Object.fromEntries(
    ["bos", "eos", "unk", "sep", "pad", "cls", "mask"].map((name) => [`${name}_token`, optional(aName)]),
  ),
  additional_special_tokens: optional(list(aName)),
});

/** Checks a tokenizer. @throws {ArgumentError} `invalidTokenizer`, with the path of a wrong value or unknown token. */
export function checkTokenizer(json: TokenizerJson, given: object): void {
  whole(json, "tokenizer.json", 0);
  checkConfig(given);
  const { unk_id: unknown, vocab } = json.model;
  if (typeof unknown === "number" && unknown >= listIn(vocab).length)
    throw wrong("tokenizer.json.model.unk_id", "a token in the vocabulary", unknown);
  checkMerges(json.model);
  const known = knownTokens(json);
  for (const content of addedByProcessor(json["post_processor"]))
    if (!known(content)) throw wrong("tokenizer.json.post_processor", "made of tokens in the vocabulary", content);
}

/** Checks that merges join tokens of the vocabulary. @throws {ArgumentError} `invalidTokenizer` */
function checkMerges({ type, vocab, merges }: TokenizerJson["model"]): void {
  if (type !== "BPE" || !isObject(vocab)) return;
  for (const [rank, merge] of listIn(merges).entries()) {
    const parts = typeof merge === "string" ? merge.split(" ", 2) : listIn(merge);
    if (!parts.every((part) => Object.hasOwn(vocab, part as string)))
      throw wrong(`tokenizer.json.model.merges[${rank}]`, "a pair of tokens in the vocabulary", merge);
  }
}

/** Checks only a `tokenizer_config.json`. @throws {ArgumentError} `invalidTokenizer` */
export const checkConfig = (given: object): void => config(given, "tokenizer_config.json", 0);

/** Returns a function that tells whether a text is a token. */
function knownTokens({ model, added_tokens: added }: TokenizerJson): (content: string) => boolean {
  const contents = new Set(added?.map(({ content }) => content));
  const { vocab } = model;
  if (Array.isArray(vocab)) for (const [content] of vocab) contents.add(content);
  return (content) => contents.has(content) || (isObject(vocab) && Object.hasOwn(vocab, content));
}

/** Returns the texts of the tokens at the start and end of texts, from a checked section. */
function addedByProcessor(section: unknown): string[] {
  if (!isObject(section)) return [];
  const { type, single, pair: two, sep, cls, processors } = section;
  if (type === "Sequence") return listIn(processors).flatMap(addedByProcessor);
  if (type !== "TemplateProcessing") return [sep, cls].flatMap((item) => (Array.isArray(item) ? [item[0]] : []));
  const items = [single, two ?? []].flat() as { readonly SpecialToken?: { readonly id: string } }[];
  return items.flatMap(({ SpecialToken: token }) => token?.id ?? []);
}
