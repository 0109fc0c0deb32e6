import { aPath } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { GgufFile, type GgufReader } from "./file.ts";
import { SplitGguf, splitCount } from "./split.ts";

/**
 * Opens a GGUF file of version 2 or 3. The header is read and checked. Tensors are loaded on demand and memory-mapped:
 * blocks as quantized tensors, all others as plain tensors.
 *
 * @param path a `.gguf` file; for a model in several files (`model-00001-of-00003.gguf`), any of them
 *
 * @example
 * using file = io.openGguf("model-q4_0.gguf");
 * file.metadata["general.architecture"]; // { type: "string", value: "llama" }
 * const w = file.tensor("blk.0.attn_q.weight"); // QuantizedTensor q4_0[4096, 4096]
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} for an invalid file.
 */
export function openGguf(path: string): GgufReader;
export function openGguf(...values: unknown[]): GgufReader {
  return openGgufFor("openGguf", openParameters(values).path);
}

/** @internal Opens a file; errors name the operation. */
export function openGgufFor(operation: string, path: string): GgufReader {
  const file = new GgufFile(path, operation);
  return splitCount(file) > 1 ? new SplitGguf(path, operation, file) : file;
}

const openParameters = parameters("openGguf", { path: operand(aPath) });
