/** Loads weights from any supported file; quantized weights become quantized tensors. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FileFormatError } from "../core/errors.ts";
import { aPath } from "../core/kinds.ts";
import { named, operand, parameters } from "../core/parameters.ts";
import { type AffineOptions, affineFormat } from "../quant/parts.ts";
import type { QuantizedTensor } from "../quant/quantized_tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { withFileErrors } from "./file_errors.ts";
import { openGgufFor } from "./gguf/open.ts";
import { isJsonObject, parseJson } from "./json.ts";
import type { SafetensorsReader } from "./safetensors/file.ts";
import { openFor } from "./safetensors/open.ts";
import { assembled, type FormatEntries, formatsIn, QUANTIZATION_KEY, readEntries } from "./safetensors/quantized.ts";

/** Tensors by name, some of them quantized. */
export type Weights = Record<string, Tensor | QuantizedTensor>;

/** Options of {@link loadWeights}. */
export interface LoadWeightsOptions {
  /**
   * The format of packed tensors with scales, used if neither the file nor the folder's `config.json` states one. MLX's
   * weight files do not state it.
   */
  quantization?: AffineOptions | undefined;
}

const loadParameters = parameters("loadWeights", { path: operand(aPath), quantization: named(affineFormat) });

/**
 * Loads all tensors of a file by name, and joins the parts of quantized tensors. It supports blocks of GGUF files,
 * files from `saveSafetensors`, and the weights, scales and biases of MLX's models.
 *
 * @param path a `.gguf` or `.safetensors` file, the index of a sharded one, or a folder with the layout of Hugging Face
 * and MLX. In a folder, the field `quantization` of `config.json` has the formats
 *
 * @example
 * const weights = io.loadWeights("model-q4_K.gguf");
 * const mlx = io.loadWeights("mlx/model.safetensors", { quantization: { bits: 4, groupSize: 64 } });
 * mlx["layers.0.gate.weight"]; // QuantizedTensor affine 4 bits, groups of 64[128, 256]
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} for an invalid file,
 * and `invalidQuantization` for unknown formats, or parts that do not match them. @throws {DTypeError} for a dtype that
 * tensors do not support.
 */
export function loadWeights(path: string, options?: LoadWeightsOptions): Weights;
export function loadWeights(...values: unknown[]): Weights {
  const operation = "loadWeights";
  const { path, quantization } = loadParameters(values);
  if (path.endsWith(".gguf")) {
    using file = openGgufFor(operation, path);
    return file.tensors();
  }
  using reader = openFor(operation, path);
  const fail = failing(operation, reader.path);
  const entries = entriesOf(operation, path, reader);
  return assembled(
    reader,
    { ...entries, fallback: entries.fallback ?? (quantization && { format: quantization }) },
    fail,
  );
}

const failing = (operation: string, path: string) => (code: string, message: string, tensor?: string) =>
  new FileFormatError(operation, code, path, message, tensor);

/** Reads the formats from the file's metadata, or else from `config.json` in its folder. */
function entriesOf(operation: string, path: string, reader: SafetensorsReader): FormatEntries {
  const text = Object.hasOwn(reader.metadata, QUANTIZATION_KEY) ? reader.metadata[QUANTIZATION_KEY] : undefined;
  if (text !== undefined) {
    const fail = failing(operation, reader.path);
    const entries = formatsIn(text, fail);
    for (const name of entries.byName.keys())
      if (!reader.has(name))
        throw fail(
          "missingTensor",
          "the file's metadata lists it as quantized, but the file does not contain it",
          name,
        );
    return entries;
  }
  const config = join(path, "config.json");
  if (!statSync(path).isDirectory() || !existsSync(config)) return { byName: new Map() };
  const fail = failing(operation, config);
  const json = parseJson(
    withFileErrors(operation, config, () => readFileSync(config, "utf8")),
    (_, message) => fail("invalidConfig", `expected JSON: ${message}`),
  );
  const quantization = isJsonObject(json) ? json["quantization"] : undefined;
  return quantization === undefined || quantization === null ? { byName: new Map() } : readEntries(quantization, fail);
}
