/**
 * Tokenizers of folders without `tokenizer.json`: WordPiece with `vocab.txt`, and byte-level BPE with `vocab.json` and
 * `merges.txt`. The results equal the classes of `transformers`.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FileFormatError } from "../core/errors.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { patternsOf } from "./gguf_patterns.ts";
import { contentOf, type TokenizerConfig, type TokenizerJson } from "./tokenizer_file.ts";

type Ids = Readonly<Record<string, number>>;
/** A special token in the settings. */
type Given = string | { readonly content?: string; readonly lstrip?: boolean } | null | undefined;

const names = ["unk", "cls", "sep", "pad", "mask", "bos", "eos"] as const;
const roberta = "<unk> <s> </s> <pad> <mask> <s> </s>";
const bert = "[UNK] [CLS] [SEP] [PAD] [MASK]";
const end = "<|endoftext|>";
const gpt2 = `${end} - - - - ${end} ${end}`;

/** The special tokens of classes in the order of `names`, by the class without `Tokenizer`, or by the `model_type`. */
const wordPieces: Readonly<Record<string, string>> = {
  bert,
  distilbert: bert,
  electra: bert,
  mpnet: `[UNK] ${roberta.slice(6)}`,
};
const byteLevels: Readonly<Record<string, string>> = {
  roberta,
  bart: roberta,
  gpt2,
  qwen2: `${end} - - ${end} - - ${end}`,
};

/**
 * @internal Returns the contents that `tokenizer.json` would have; undefined for a folder without the vocabulary of a
 * supported class.
 *
 * @throws {FileFormatError} for a vocabulary without the tokens around texts.
 */
export function vocabularyIn(folder: string, config: TokenizerConfig): TokenizerJson | undefined {
  const has = (name: string) => existsSync(join(folder, name));
  const read = (name: string) =>
    withFileErrors("loadTokenizer", join(folder, name), () => readFileSync(join(folder, name), "utf8"));
  const isWordPiece = has("vocab.txt");
  if (!isWordPiece && !(has("vocab.json") && has("merges.txt"))) return undefined;
  // the rest of config.json is not parsed: Python writes numbers like Infinity
  const type = has("config.json") ? /"model_type"\s*:\s*"([^"]*)"/.exec(read("config.json"))?.[1] : undefined;
  const given = config["tokenizer_class"] ?? type ?? (isWordPiece ? "bert" : "gpt2");
  const name = `${given}`.replace(/Tokenizer(Fast)?$/, "").toLowerCase();
  const table = isWordPiece ? wordPieces : byteLevels;
  if (!Object.hasOwn(table, name)) return undefined;
  const lines = (file: string) => read(file).trimEnd().split(/\r?\n/);
  const vocab: Ids = isWordPiece
    ? Object.fromEntries(lines("vocab.txt").map((token, id) => [token, id]))
    : JSON.parse(read("vocab.json"));
  const map = has("special_tokens_map.json") ? JSON.parse(read("special_tokens_map.json")) : {};
  const usual = table[name].split(" ");
  const settings = names.map((each): Given => (config[`${each}_token`] ?? map[`${each}_token`]) as Given);
  const special = settings.map((each, at) => contentOf(each) ?? (usual[at] === "-" ? undefined : usual[at]));
  const mask = settings[4];
  const lstrip = typeof mask === "object" && mask !== null ? mask.lstrip === true : name === "mpnet";
  const flags = { special: true, single_word: false, rstrip: false, normalized: false };
  return {
    added_tokens: [...new Set(special)].flatMap((content) =>
      content !== undefined && Object.hasOwn(vocab, content)
        ? [{ id: vocab[content], content, ...flags, lstrip: lstrip && content === special[4] }]
        : [],
    ),
    post_processor:
      usual[1] === "-" ? null : framed(special[1]!, special[2]!, vocab, { isBert: usual[1] !== "<s>", folder }),
    ...(isWordPiece
      ? wordPiece(vocab, special[0]!, config)
      : byteLevel(vocab, lines("merges.txt"), name === "qwen2", config["add_prefix_space"] === true)),
  };
}

/** Frames texts: `[CLS] A [SEP] B [SEP]`, where B has token type 1, or `<s> A </s></s> B </s>`. */
function framed(first: string, last: string, vocab: Ids, { isBert, folder }: { isBert: boolean; folder: string }) {
  for (const token of [first, last])
    if (!Object.hasOwn(vocab, token))
      throw new FileFormatError("loadTokenizer", "notATokenizer", folder, `expected a vocabulary with ${token}`);
  const token = (id: string, type_id = 0) => ({ SpecialToken: { id, type_id } });
  const text = (id: string, type_id = 0) => ({ Sequence: { id, type_id } });
  const single = [token(first), text("A"), token(last)];
  const second = isBert ? [text("B", 1), token(last, 1)] : [token(last), text("B"), token(last)];
  return {
    type: "TemplateProcessing",
    single,
    pair: [...single, ...second],
    special_tokens: Object.fromEntries([first, last].map((id) => [id, { id, ids: [vocab[id]], tokens: [id] }])),
  };
}

const wordPiece = (vocab: Ids, unk_token: string, config: TokenizerConfig) => ({
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: config["tokenize_chinese_chars"] !== false,
    strip_accents: config["strip_accents"] ?? null,
    lowercase: config["do_lower_case"] !== false,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: { type: "WordPiece", vocab, unk_token, continuing_subword_prefix: "##", max_input_chars_per_word: 100 },
});

function byteLevel(vocab: Ids, lines: readonly string[], isQwen: boolean, add_prefix_space: boolean) {
  const toBytes = { type: "ByteLevel", add_prefix_space, trim_offsets: true, use_regex: !isQwen };
  const merges = lines.filter((line) => line !== "" && !line.startsWith("#version")).map((line) => line.split(" "));
  return {
    normalizer: isQwen ? { type: "NFC" } : null,
    pre_tokenizer: isQwen ? { type: "Sequence", pretokenizers: [...patternsOf("qwen2"), toBytes] } : toBytes,
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab, merges, fuse_unk: false, ignore_merges: false },
  };
}
