/**
 * Tokenizers of folders without `tokenizer.json`: a SentencePiece model, and how its pieces become tokens. The tokens
 * match the classes in `transformers`.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FileFormatError } from "../../core/errors.ts";
import { numberIn } from "../../core/values.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { isJsonObject, parseJson } from "../../io/json.ts";
import { packUnigram } from "../packed/unigram.ts";
import { PretrainedTokenizer, type Splitter } from "../pretrained_tokenizer.ts";
import { contentOf, type TokenizerConfig, type TokenizerJson } from "../tokenizer_file.ts";
import { normalizerOf } from "./charsmap.ts";
import { splitterOf } from "./encode.ts";
import { type Piece, PieceType, readSentencePiece, type SentencePieceModel } from "./model.ts";

type Json = Readonly<Record<string, unknown>>;

/** A vocabulary as read from a layout's files. */
interface Vocabulary {
  /** The tokens; the index is the id. */
  readonly tokens: readonly string[];
  /** Special tokens and other added ones, which are matched before the text is split. */
  readonly added: readonly string[];
  /** The added tokens that are not special: a text without special tokens has them. Default: none. */
  readonly ofTexts?: readonly string[];
  /** The tokens before and after a text. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** The tokens between the texts of a pair. Default: none. */
  readonly between?: readonly string[];
  /** Whether a text may begin with a language such as `>>de<<`. */
  readonly hasLanguages?: boolean;
}

/** A kind of folder. */
interface Layout {
  /** The SentencePiece model, then other required files. */
  readonly files: readonly string[];
  readonly vocabularyOf: (model: SentencePieceModel, folder: string, config: TokenizerConfig) => Vocabulary;
}

const END = "</s>";
const UNKNOWN = "<unk>";
const PADDING = "<pad>";

/** Classes and model types with files of the same name. */
const isOther = /^(albert|xlnet|camembert|pegasus|bigbird|rembert)/i;

/** Returns the `model_type` of a folder. */
const typeIn = (folder: string): unknown => jsonIn(folder, "config.json")["model_type"];

/** Each layout's files are a condition; the first that applies is used. */
const layouts: readonly Layout[] = [
  {
    files: ["source.spm", "vocab.json"],
    vocabularyOf(_, folder, config) {
      const path = join(folder, "tokenizer_config.json");
      if (config["separate_vocabs"] === true)
        throw new FileFormatError("loadTokenizer", "unsupported", path, "separate_vocabs: true is not supported");
      const added = [END, UNKNOWN, PADDING];
      return { tokens: tokensIn(folder), added, before: [], after: [END], hasLanguages: true };
    },
  },
  {
    files: ["sentencepiece.bpe.model", "vocab.json"],
    vocabularyOf(_, folder, config) {
      // M2M100: languages such as `__de__` follow the vocabulary
      const languages = languagesOf(folder, config);
      const first = contentOf(config["src_lang"] as string | undefined) ?? "en";
      const added = ["<s>", PADDING, END, UNKNOWN, ...languages];
      return { tokens: [...tokensIn(folder), ...languages], added, before: [`__${first}__`], after: [END] };
    },
  },
  {
    files: ["sentencepiece.bpe.model"],
    vocabularyOf({ pieces }, folder, config) {
      // mBART-50 and XLM-RoBERTa: fairseq's first tokens, then the pieces, languages, and the mask
      const isRoberta = /^XLMRoberta/.test(String(config["tokenizer_class"])) || typeIn(folder) === "xlm-roberta";
      const languages = isRoberta ? [] : languagesOf(folder, config);
      const start = ["<s>", PADDING, END, UNKNOWN];
      const tokens = [...start, ...pieces.slice(3).map(({ text }) => text), ...languages, "<mask>"];
      const first = contentOf(config["src_lang"] as string | undefined) ?? "en_XX";
      const added = [...start, ...languages, "<mask>"];
      if (isRoberta) return { tokens, added, before: ["<s>"], after: [END], between: [END, END] };
      return { tokens, added, before: [first], after: [END] };
    },
  },
  {
    files: ["spiece.model"],
    vocabularyOf({ pieces }, folder, config) {
      if (isOther.test(`${config["tokenizer_class"] ?? typeIn(folder)}`))
        throw new FileFormatError(
          "loadTokenizer",
          "unsupported",
          join(folder, "spiece.model"),
          "only T5's models are supported without tokenizer.json",
        );
      // T5: `<extra_id_99>` to `<extra_id_0>` follow the pieces
      const isMany = config["tokenizer_class"] === "MT5Tokenizer";
      const count = typeof config["extra_ids"] === "number" ? config["extra_ids"] : isMany ? 0 : 100;
      const extra = Array.from({ length: count }, (_, at) => `<extra_id_${count - 1 - at}>`);
      const tokens = [...pieces.map(({ text }) => text), ...extra];
      return { tokens, added: [PADDING, END, UNKNOWN, ...extra], before: [], after: [END] };
    },
  },
  {
    files: ["tokenizer.model"],
    vocabularyOf({ pieces }, folder, config) {
      // Llama, Mistral and Gemma: the pieces, of which some are replaced, and added tokens
      const tokens = pieces.map(({ text }) => text);
      const given = config["added_tokens_decoder"] ?? {};
      const further = Object.entries(given);
      for (const [id, token] of further) tokens[Number(id)] = contentOf(token) ?? "";
      if (tokens.includes(undefined as never)) throw notInOrder(join(folder, "tokenizer_config.json"));
      const isSpecial = ({ type }: Piece) => type === PieceType.unknown || type === PieceType.control;
      const own = tokens.filter((_, id) => pieces[id] !== undefined && isSpecial(pieces[id]));
      const special = (key: "bos_token" | "eos_token", usual: string, isAdded: unknown) =>
        isAdded === true ? [contentOf(config[key]) ?? usual] : [];
      return {
        tokens,
        added: [...new Set([...own, ...further.map(([id]) => tokens[Number(id)])])],
        ofTexts: further.filter(([, token]) => token?.special !== true).map(([id]) => tokens[Number(id)]),
        before: special("bos_token", "<s>", config["add_bos_token"] ?? true),
        after: special("eos_token", END, config["add_eos_token"] ?? false),
      };
    },
  },
];

/** @internal Returns the layout of a folder; undefined if it has no SentencePiece model. */
export const sentencePieceFolder = (folder: string): Layout | undefined =>
  layouts.find(({ files }) => files.every((name) => existsSync(join(folder, name))));

function jsonIn(folder: string, name: string): Json {
  const path = join(folder, name);
  if (!existsSync(path)) return {};
  const text = withFileErrors("loadTokenizer", path, () => readFileSync(path, "utf8"));
  const fail = (message: string) => new FileFormatError("loadTokenizer", "notJson", path, message);
  const json = parseJson(text, (_, message) => fail(`expected JSON: ${message}`));
  if (!isJsonObject(json)) throw fail("expected a JSON object");
  return json;
}

/** Returns the tokens of `vocab.json` in the order of their ids. */
function tokensIn(folder: string): string[] {
  const entries = Object.entries(jsonIn(folder, "vocab.json"));
  const tokens = new Array<string>(entries.length);
  for (const [token, id] of entries) if (Number.isInteger(id)) tokens[numberIn(id)] = token;
  if (tokens.length === entries.length && !tokens.includes(undefined as never)) return tokens;
  throw notInOrder(join(folder, "vocab.json"));
}

const notInOrder = (path: string): FileFormatError =>
  new FileFormatError("loadTokenizer", "notATokenizer", path, "expected tokens with the ids from 0 on, each once");

/** Returns the languages: the additional special tokens, in the order of the files. */
function languagesOf(folder: string, config: TokenizerConfig): string[] {
  const given =
    config["additional_special_tokens"] ?? jsonIn(folder, "special_tokens_map.json")["additional_special_tokens"];
  const list = Array.isArray(given) ? given.map((token) => contentOf(token) ?? "") : [];
  if (list.length > 0) return list;
  throw new FileFormatError(
    "loadTokenizer",
    "notATokenizer",
    join(folder, "special_tokens_map.json"),
    "expected the languages in additional_special_tokens",
  );
}

/** @internal Creates the tokenizer of a folder. */
export function ofSentencePiece(folder: string, name: string, { files, vocabularyOf }: Layout): PretrainedTokenizer {
  const path = join(folder, files[0]);
  const model = readSentencePiece(
    withFileErrors("loadTokenizer", path, () => readFileSync(path)),
    path,
  );
  const config = jsonIn(folder, "tokenizer_config.json");
  const vocabulary = vocabularyOf(model, folder, config);
  const ids = new Map(vocabulary.tokens.map((token, id) => [token, id]));
  const missing = [...vocabulary.added, ...vocabulary.before, ...vocabulary.after].find((token) => !ids.has(token));
  if (missing !== undefined)
    throw new FileFormatError("loadTokenizer", "notATokenizer", path, `expected a vocabulary with ${missing}`);
  const unknown = ids.get(UNKNOWN);
  const packed = packUnigram(
    vocabulary.tokens.map((token) => [token, 0]),
    unknown,
  );
  const json = jsonOf(model, vocabulary, ids);
  const usual = { bos_token: "<s>", eos_token: END, pad_token: PADDING, unk_token: UNKNOWN };
  const special = Object.fromEntries(Object.entries(usual).filter(([, token]) => ids.has(token)));
  return new PretrainedTokenizer(
    { ...json, model: { type: "Unigram", unk_id: 0, vocab: [["", 0]] } },
    { config: { ...special, ...config }, name, packed: packed!, splitter: splitterFor(model, vocabulary, ids) },
  );
}

/** Returns the parts of a `tokenizer.json` besides the model. */
function jsonOf(
  { pieces }: SentencePieceModel,
  { added, ofTexts = [], before, after, between = [] }: Vocabulary,
  ids: ReadonlyMap<string, number>,
): Omit<TokenizerJson, "model"> {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  const place = (token: string) => ({ SpecialToken: { id: token, type_id: 0 } });
  const text = (id: string) => ({ Sequence: { id, type_id: 0 } });
  const [first, last] = [before.map(place), after.map(place)];
  const hasBytes = pieces.some(({ type }) => type === PieceType.byte);
  return {
    normalizer: null,
    pre_tokenizer: null,
    added_tokens: added.map((content) => {
      return { id: ids.get(content), content, ...flags, special: !ofTexts.includes(content) };
    }),
    post_processor: {
      type: "TemplateProcessing",
      single: [...first, text("A"), ...last],
      pair: [...first, text("A"), ...between.map(place), text("B"), ...last],
      special_tokens: Object.fromEntries(
        [...before, ...after].map((token) => [token, { id: token, ids: [ids.get(token)], tokens: [token] }]),
      ),
    },
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "▁" }, content: " " },
        ...(hasBytes ? [{ type: "ByteFallback" }] : []),
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 1, stop: 0 },
      ],
    },
  };
}

/** Returns the function that splits texts between added tokens. */
function splitterFor(
  model: SentencePieceModel,
  { hasLanguages }: Vocabulary,
  ids: ReadonlyMap<string, number>,
): Splitter {
  const [normalize, split] = [normalizerOf(model), splitterOf(model)];
  const known = (token: string) => (ids.has(token) ? token : UNKNOWN);
  const plain = (text: string) => split(normalize(text)).map((part) => known(part.text));
  if (!hasLanguages) return plain;
  return (text) => {
    const [language] = /^>>.*?<</s.exec(text) ?? [];
    return language === undefined ? plain(text) : [known(language), ...plain(text.slice(language.length))];
  };
}
