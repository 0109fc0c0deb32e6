import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { FileError } from "../../core/errors.ts";
import { aPath } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { withFileErrors } from "../file_errors.ts";
import { SafetensorsFile, type SafetensorsReader } from "./file.ts";
import { ShardedSafetensors, shardsIn } from "./sharded.ts";

/** The file names to look for in a folder, in this order. */
const NAMES = ["model.safetensors", "model.safetensors.index.json"];

/** The weights of an adapter, which are not a model's. */
const ADAPTER = "adapter_model.safetensors";

/** The files of older checkpoints: Python objects serialized by `pickle`. */
const PICKLED = ["pytorch_model.bin.index.json", "pytorch_model.bin"];

/**
 * Opens a safetensors file. The header is read and checked; tensors are loaded on demand and memory-mapped.
 *
 * @param path a `.safetensors` file, the index of a sharded one (`model.safetensors.index.json`), or a folder with
 * either under Hugging Face's names, with shards but no index, or with a single file of another name
 *
 * @example
 * using file = openSafetensors("gpt2/model.safetensors");
 * file.names; // ["wte.weight", …]
 * const embedding = file.tensor("wte.weight"); // float32[50257, 768]
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} for an invalid file.
 */
export const openSafetensors = (path: string): SafetensorsReader =>
  openFor("openSafetensors", openParameters([path]).path);

const openParameters = parameters("openSafetensors", { path: operand(aPath) });

/**
 * Loads all tensors of a safetensors file, by name. See {@link openSafetensors}. Quantized tensors are returned in
 * parts; `loadWeights` joins them.
 *
 * @example
 * model.loadStateDict(loadSafetensors("gpt2/model.safetensors"));
 *
 * @throws {FileError} @throws {FileFormatError} as {@link openSafetensors}. @throws {DTypeError} for a dtype that
 * tensors do not support.
 */
export function loadSafetensors(path: string): Record<string, Tensor> {
  using file = openFor("loadSafetensors", loadParameters([path]).path);
  return file.tensors();
}

const loadParameters = parameters("loadSafetensors", { path: operand(aPath) });

/** @internal Opens a file; errors name the operation. */
export function openFor(operation: string, path: string): SafetensorsReader {
  const isFolder = withFileErrors(operation, path, () => statSync(path)).isDirectory();
  const found = isFolder ? fileIn(operation, path) : path;
  if (typeof found !== "string") return new ShardedSafetensors(path, operation, found);
  return found.endsWith(".json") ? new ShardedSafetensors(found, operation) : new SafetensorsFile(found, operation);
}

/** Returns the path of a folder's file or index, or the names of its shards if the index is missing. */
function fileIn(operation: string, folder: string): string | readonly string[] {
  const found = NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (found !== undefined) return found;
  const files = readdirSync(folder).filter((name) => name.endsWith(".safetensors") && name !== ADAPTER);
  const shards = shardsIn(operation, folder, files);
  if (shards.length > 0) return shards;
  const pickled = PICKLED.find((name) => existsSync(join(folder, name)));
  if (pickled !== undefined)
    throw new FileError(
      operation,
      "pickledWeights",
      folder,
      `${pickled} is not supported: reading it can run any code in it. If you trust it, convert it in the folder: ` +
        'python -c "from transformers import AutoModelForCausalLM as M; ' +
        "M.from_pretrained('.', dtype='auto').save_pretrained('.')\"",
    );
  if (files.length === 1) return join(folder, files[0]);
  throw new FileError(
    operation,
    "notFound",
    folder,
    `expected the folder to have ${NAMES.join(" or ")}; name the file`,
  );
}
