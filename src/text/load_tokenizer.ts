import { readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { FileFormatError } from "../core/errors.ts";
import { aPath } from "../core/kinds.ts";
import { operand, parameters } from "../core/parameters.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { openGguf } from "../io/gguf/open.ts";
import { tokenizerOfGguf } from "./gguf_tokenizer.ts";
import { PretrainedTokenizer } from "./pretrained_tokenizer.ts";
import type { TokenizerConfig, TokenizerJson } from "./tokenizer_file.ts";

const readPath = parameters("loadTokenizer", { path: operand(aPath) });

/**
 * The tokenizer of a model: of a folder with `tokenizer.json`, and `tokenizer_config.json` if there is one, or of the
 * metadata of a GGUF file.
 *
 * @param path a folder, or a `.gguf` file
 *
 * @example
 * const tokenizer = text.loadTokenizer("qwen2.5-0.5b");
 * tokenizer.encode("Hello"); // [9707]
 *
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged ones. @throws {ArgumentError}
 * for a kind of tokenizer that is not supported, naming it.
 */
export function loadTokenizer(path: string): PretrainedTokenizer;
export function loadTokenizer(...values: unknown[]): PretrainedTokenizer {
  const { path } = readPath(values);
  const name = basename(resolve(path));
  const isFolder = withFileErrors("loadTokenizer", path, () => statSync(path)).isDirectory();
  if (!isFolder) {
    using file = openGguf(path);
    const { json, config } = tokenizerOfGguf(file.metadata);
    return new PretrainedTokenizer(json, { config, name });
  }
  const json = readJson(join(path, "tokenizer.json"));
  if (typeof json["model"] !== "object" || json["model"] === null)
    throw new FileFormatError("loadTokenizer", "notATokenizer", join(path, "tokenizer.json"), "expected a model");
  return new PretrainedTokenizer(json as unknown as TokenizerJson, { config: configOf(path), name });
}

function configOf(folder: string): TokenizerConfig {
  const path = join(folder, "tokenizer_config.json");
  return statSync(path, { throwIfNoEntry: false }) ? (readJson(path) as TokenizerConfig) : {};
}

function readJson(path: string): Readonly<Record<string, unknown>> {
  const text = withFileErrors("loadTokenizer", path, () => readFileSync(path, "utf8"));
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
  } catch (cause) {
    throw new FileFormatError("loadTokenizer", "notJson", path, `expected JSON: ${(cause as Error).message}`);
  }
  throw new FileFormatError("loadTokenizer", "notJson", path, "expected a JSON object");
}
