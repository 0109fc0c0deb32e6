/** CLIP's tokenizer from `vocab.json` and `merges.txt`, which older folders have instead of a `tokenizer.json`. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FileFormatError } from "../core/errors.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { loadTokenizer } from "../text/load_tokenizer.ts";
import { PretrainedTokenizer } from "../text/pretrained_tokenizer.ts";
import { contentOf, type TokenizerConfig } from "../text/tokenizer_file.ts";
import { settingsOf } from "./files.ts";

const operation = "loadPipeline";
const [START, END] = ["<|startoftext|>", "<|endoftext|>"];
/** Contractions, words, single digits, and runs of other characters. */
const WORDS = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";

/** Encodes prompts as rows of the same length. */
export interface PromptTokenizer {
  readonly tokenizer: PretrainedTokenizer;
  /** The token that fills rows. */
  readonly padding: number;
}

/**
 * Loads the tokenizer of prompts from a folder. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError}
 * for another kind of tokenizer.
 */
export function loadPromptTokenizer(folder: string): PromptTokenizer {
  const path = join(folder, "tokenizer_config.json");
  const config = existsSync(path) ? Object.fromEntries(settingsOf(path).entries()) : {};
  const hasFile = existsSync(join(folder, "tokenizer.json"));
  const tokenizer = hasFile ? loadTokenizer(folder) : fromMerges(folder, config);
  const padding = tokenizer.idOf(contentOf(config["pad_token"] as never)) ?? tokenizer.idOf(END);
  if (padding === null)
    throw new FileFormatError(operation, "invalidConfig", path, `expected a pad_token, or ${END} in the vocabulary`);
  return { tokenizer, padding };
}

function fromMerges(folder: string, config: TokenizerConfig): PretrainedTokenizer {
  const vocab = Object.fromEntries(settingsOf(folder, "vocab.json").entries()) as Record<string, number>;
  const path = join(folder, "merges.txt");
  const lines = withFileErrors(operation, path, () => readFileSync(path, "utf8")).split("\n");
  const merges = lines.filter((line) => line.trim() !== "" && !line.startsWith("#version"));
  const [start, end] = [vocab[START], vocab[END]];
  if (start === undefined || end === undefined)
    throw new FileFormatError(
      operation,
      "notATokenizer",
      join(folder, "vocab.json"),
      `expected ${START} and ${END} in the vocabulary`,
    );
  const special = (id: number, content: string) => ({ id, content, special: true, normalized: false });
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  const json = {
    added_tokens: [special(start, START), special(end, END)],
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "NFC" },
        { type: "Replace", pattern: { Regex: "\\s+" }, content: " " },
        { type: "Lowercase" },
      ],
    },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [{ type: "Split", pattern: { Regex: WORDS }, behavior: "Removed", invert: true }, byteLevel],
    },
    post_processor: {
      type: "RobertaProcessing",
      sep: [END, end],
      cls: [START, start],
      trim_offsets: false,
      add_prefix_space: false,
    },
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: END,
      continuing_subword_prefix: "",
      end_of_word_suffix: "</w>",
      fuse_unk: false,
      vocab,
      merges,
    },
  };
  return new PretrainedTokenizer(json, { config, name: "clip" });
}
