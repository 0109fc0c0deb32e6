import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { FileError } from "../../core/errors.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { withFileErrors } from "../file_errors.ts";
import { SafetensorsFile, type SafetensorsReader } from "./file.ts";
import { ShardedSafetensors } from "./sharded.ts";

/** What a folder may hold, in the order of search. */
const NAMES = ["model.safetensors.index.json", "model.safetensors"];

/**
 * Opens a safetensors file. Its header is read and checked; tensors are made when they are asked for, over the file's own memory.
 *
 * @param path a `.safetensors` file, an index of several (`model.safetensors.index.json`), or a folder with either under Hugging Face's names
 *
 * @example
 * using file = openSafetensors("gpt2/model.safetensors");
 * file.names; // ["wte.weight", …]
 * const embedding = file.tensor("wte.weight"); // float32[50257, 768]
 *
 * @throws {FileError} where it is not there or can't be read. @throws {FileFormatError} where it breaks a rule of the format.
 */
export const openSafetensors = (path: string): SafetensorsReader => open("openSafetensors", path);

/**
 * All tensors of a safetensors file, by name. See {@link openSafetensors}.
 *
 * @example
 * model.loadStateDict(loadSafetensors("gpt2/model.safetensors"));
 *
 * @throws {FileError} {@link FileFormatError} {@link DTypeError} where a tensor has elements that tensors here can't hold.
 */
export function loadSafetensors(path: string): Record<string, Tensor> {
  using file = open("loadSafetensors", path);
  return file.tensors();
}

function open(operation: string, path: string): SafetensorsReader {
  const isFolder = withFileErrors(operation, path, () => statSync(path)).isDirectory();
  const file = isFolder ? fileIn(operation, path) : path;
  return file.endsWith(".json") ? new ShardedSafetensors(file, operation) : new SafetensorsFile(file, operation);
}

function fileIn(operation: string, folder: string): string {
  const found = NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new FileError(operation, "notFound", folder, `the folder holds neither ${NAMES.join(" nor ")}; name the file`);
}
