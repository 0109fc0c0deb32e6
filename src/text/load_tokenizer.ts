import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { messageOf } from "../core/causes.ts";
import { FileFormatError } from "../core/errors.ts";
import { aPath } from "../core/kinds.ts";
import { operand, parameters } from "../core/parameters.ts";
import { recordIn } from "../core/values.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { openGguf } from "../io/gguf/open.ts";
import { locateCached } from "../io/hub/locate.ts";
import { tokenizerOfGguf } from "./gguf_tokenizer.ts";
import { packedPath, readPacked, writePacked } from "./packed/cache.ts";
import { PretrainedTokenizer } from "./pretrained_tokenizer.ts";
import { ofSentencePiece, sentencePieceFolder } from "./sentencepiece/folder.ts";
import type { TokenizerConfig, TokenizerJson } from "./tokenizer_file.ts";
import { vocabularyIn } from "./vocabulary_folder.ts";

const readPath = parameters("loadTokenizer", { path: operand(aPath) });

/**
 * Loads the tokenizer of a model, from a folder with `tokenizer.json` and optionally `tokenizer_config.json`, or from
 * the metadata of a GGUF file. A folder without `tokenizer.json` may have the SentencePiece files of Llama, Mistral,
 * Gemma, Marian, M2M100, mBART-50, XLM-RoBERTa, T5 or mT5, `vocab.txt` of BERT or MPNet, or `vocab.json` and
 * `merges.txt` of GPT-2, RoBERTa, BART or Qwen2.
 *
 * @param path a folder, or a `.gguf` file; or `owner/name` for a model that `orchard pull` or `nn.loadModel` downloaded
 *
 * @example
 * const tokenizer = text.loadTokenizer("qwen2.5-0.5b");
 * tokenizer.encode("Hello"); // [9707]
 *
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged ones. @throws {ArgumentError}
 * for an unsupported kind of tokenizer, with its name.
 */
export function loadTokenizer(path: string): PretrainedTokenizer;
export function loadTokenizer(...values: unknown[]): PretrainedTokenizer {
  const path = locateCached("loadTokenizer", readPath(values).path);
  const name = basename(resolve(path));
  const isFolder = withFileErrors("loadTokenizer", path, () => statSync(path)).isDirectory();
  if (!isFolder) {
    using file = openGguf(path);
    const { json, config, splitter } = tokenizerOfGguf(file.metadata);
    return new PretrainedTokenizer(json, { config, name, splitter });
  }
  return ofFolder(path, name);
}

/** @internal Whether a folder has the files of a tokenizer. */
export const hasTokenizer = (folder: string): boolean =>
  existsSync(join(folder, "tokenizer.json")) ||
  sentencePieceFolder(folder) !== undefined ||
  vocabularyIn(folder, configOf(folder)) !== undefined;

/** Loads from a folder. A large vocabulary is packed at the first load, and then read from the user's cache. */
function ofFolder(folder: string, name: string): PretrainedTokenizer {
  const path = join(folder, "tokenizer.json");
  const vocabulary = existsSync(path) ? undefined : sentencePieceFolder(folder);
  if (vocabulary) return ofSentencePiece(folder, name, vocabulary);
  const config = configOf(folder);
  const json = existsSync(path) ? undefined : vocabularyIn(folder, config);
  if (json) return new PretrainedTokenizer(json, { config, name });
  return ofFile(folder, name, config);
}

/** Loads from the `tokenizer.json` of a folder. */
function ofFile(folder: string, name: string, config: TokenizerConfig): PretrainedTokenizer {
  const path = join(folder, "tokenizer.json");
  const contents = readContents(path);
  const place = packedPath(contents);
  const packed = place === undefined ? undefined : readPacked(place);
  if (packed) return new PretrainedTokenizer(packed.json, { config, name, packed: packed.packed });
  const json = parsed(path, contents);
  if (typeof json["model"] !== "object" || json["model"] === null)
    throw new FileFormatError("loadTokenizer", "notATokenizer", path, "expected a model");
  const tokenizer = new PretrainedTokenizer(json as TokenizerJson, { config, name });
  if (place !== undefined) writePacked(place, json as TokenizerJson); // written after the tokenizer has been validated
  return tokenizer;
}

function configOf(folder: string): TokenizerConfig {
  const path = join(folder, "tokenizer_config.json");
  return statSync(path, { throwIfNoEntry: false }) ? parsed(path, readContents(path)) : {};
}

const readContents = (path: string): Buffer => withFileErrors("loadTokenizer", path, () => readFileSync(path));

function parsed(path: string, contents: Buffer): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(contents.toString("utf8"));
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return recordIn(json);
  } catch (cause) {
    throw new FileFormatError("loadTokenizer", "notJson", path, `expected JSON: ${messageOf(cause)}`);
  }
  throw new FileFormatError("loadTokenizer", "notJson", path, "expected a JSON object");
}
