/**
 * Quantized tensors in safetensors files. An affine tensor is stored as three, as in MLX: `a.weight` (uint32),
 * `a.scales` and `a.biases`, which is missing if it is symmetric. Blocks are uint8. The metadata `quantization` is
 * JSON, keyed by the name of the packed tensor. A value is one of
 *
 *     { "group_size": 64, "bits": 4, "mode": "affine" | "symmetric", "dtype": "float16" }
 *     { "format": "q4_K", "dtype": "float32" }
 *
 * MLX writes the same fields to `config.json`, keyed by the name of the module, next to the fields that apply to all
 * other modules; its mode may also be "mxfp4".
 */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import {
  type AffineBits,
  affineBits,
  formatName,
  type GgmlFormat,
  type GroupSize,
  ggmlFormats,
  groupSizes,
  type QuantizedFormat,
  type ScaleDType,
  scaleDTypes,
} from "../../quant/formats.ts";
import { namedParts, ofParts, partNames, problemOf } from "../../quant/parts.ts";
import { type QuantizedParts, QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { blocksOfWords, problemOfWords } from "../../quant/words.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { brief, isJsonObject, type Json, parseJson } from "../json.ts";
import type { SafetensorsReader } from "./file.ts";

/** The key of the metadata. */
export const QUANTIZATION_KEY = "quantization";

/** Replaces quantized tensors by their parts, and adds their formats to the metadata. @throws {ArgumentError} */
export function inParts(
  operation: string,
  tensors: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, string>>,
): { readonly tensors: Readonly<Record<string, unknown>>; readonly metadata: Readonly<Record<string, string>> } {
  const given = Object.entries(tensors);
  if (!given.some(([, weight]) => QuantizedTensor.isQuantized(weight))) return { tensors, metadata };
  const parts = new Map<string, unknown>();
  const formats: [string, Json][] = [];
  const add = (name: string, part: unknown): void => {
    if (parts.has(name))
      throw new ArgumentError(
        operation,
        "duplicateName",
        `a tensor has the name ${describeValue(name)} of a part of a quantized tensor (.scales, .biases); rename one`,
      );
    parts.set(name, part);
  };
  for (const [name, weight] of given) {
    if (!QuantizedTensor.isQuantized(weight)) {
      add(name, weight);
      continue;
    }
    weight.checkAlive(operation);
    for (const [part, tensor] of namedParts(name, weight)) add(part, tensor);
    formats.push([name, entryOf(weight)]);
  }
  const text = JSON.stringify(Object.fromEntries(formats));
  return { tensors: Object.fromEntries(parts), metadata: { ...metadata, [QUANTIZATION_KEY]: text } };
}

function entryOf({ format, dtype }: QuantizedTensor): Json {
  if (typeof format === "string") return { format, dtype };
  const { bits, groupSize, symmetric } = format;
  return { group_size: groupSize, bits, mode: symmetric ? "symmetric" : "affine", dtype };
}

/** A format, and optionally the dtype that it dequantizes to. */
export interface FormatEntry {
  readonly format: QuantizedFormat;
  readonly dtype?: ScaleDType | undefined;
  /** Present if MLX packs a block format differently: levels in words, and exponents as scales. */
  readonly mode?: "mxfp4" | undefined;
}

/** The formats of the quantized tensors of a file. */
export interface FormatEntries {
  /** Formats by the name of a packed tensor or of its layer; false for a tensor that is not quantized. */
  readonly byName: ReadonlyMap<string, FormatEntry | false>;
  /** The format of all other tensors that have scales. */
  readonly fallback?: FormatEntry | undefined;
}

type Fail = (code: string, message: string, tensor?: string) => Error;

/** Reads the formats in a file's metadata. @throws {FileFormatError} `invalidQuantization` */
export function formatsIn(text: string, fail: Fail): FormatEntries {
  const json = parseJson(text, (_, message) => fail("invalidQuantization", `its metadata quantization: ${message}`));
  return readEntries(json, fail);
}

/** Reads the formats in MLX's `config.json` or a file's metadata. @throws {FileFormatError} `invalidQuantization` */
export function readEntries(json: Json, fail: Fail): FormatEntries {
  if (!isJsonObject(json))
    throw fail("invalidQuantization", `expected quantization to be an object, got ${brief(json)}`);
  const byName = new Map<string, FormatEntry | false>();
  for (const [name, value] of Object.entries(json)) {
    if (value === false) byName.set(name, false);
    else if (isJsonObject(value)) byName.set(name, readEntry(value, fail, name));
  }
  return { byName, fallback: isJsonObject(json["bits"]) || !("bits" in json) ? undefined : readEntry(json, fail) };
}

function readEntry(json: { readonly [key: string]: Json }, fail: Fail, tensor?: string): FormatEntry {
  const invalid = (field: string, expected: string) =>
    fail("invalidQuantization", `expected ${field} to be ${expected}, got ${brief(json[field])}`, tensor);
  const { format, dtype, bits, group_size: groupSize, mode = "affine" } = json;
  if (dtype !== undefined && !includes(scaleDTypes, dtype)) throw invalid("dtype", scaleDTypes.join(", "));
  if (format !== undefined) {
    if (!includes(ggmlFormats, format)) throw invalid("format", `one of ${ggmlFormats.join(", ")}`);
    return { format: format as GgmlFormat, dtype: dtype as ScaleDType | undefined };
  }
  if (mode === "mxfp4") {
    if (bits !== 4) throw invalid("bits", "4 for mxfp4");
    if (groupSize !== 32) throw invalid("group_size", "32 for mxfp4");
    return { format: "mxfp4", dtype: dtype as ScaleDType | undefined, mode };
  }
  if (!includes(affineBits, bits)) throw invalid("bits", `one of ${affineBits.join(", ")}`);
  if (!includes(groupSizes, groupSize)) throw invalid("group_size", `one of ${groupSizes.join(", ")}`);
  if (mode !== "affine" && mode !== "symmetric") throw invalid("mode", "affine, symmetric or mxfp4");
  return {
    format: { bits: bits as AffineBits, groupSize: groupSize as GroupSize, symmetric: mode === "symmetric" },
    dtype: dtype as ScaleDType | undefined,
  };
}

const includes = (list: readonly unknown[], value: unknown): boolean => list.includes(value);

/**
 * Loads all tensors of a file, with the parts of quantized tensors joined. @throws {FileFormatError} for invalid parts.
 */
export function assembled(
  reader: SafetensorsReader,
  { byName, fallback }: FormatEntries,
  fail: Fail,
): Record<string, Tensor | QuantizedTensor> {
  const formats = new Map<string, FormatEntry>();
  for (const name of reader.names) {
    const entry = byName.get(name) ?? byName.get(moduleOf(name));
    const chosen = entry ?? (hasScales(reader, name) ? fallback : undefined);
    if (chosen) formats.set(name, chosen);
  }
  const parts = new Set([...formats].flatMap(([name, entry]) => (hasParts(entry) ? partsIn(reader, name) : [])));
  const names = reader.names.filter((name) => !parts.has(name));
  return Object.fromEntries(
    names.map((name) => {
      const entry = formats.get(name);
      return [name, entry === undefined ? reader.tensor(name) : joined(reader, name, entry, fail)];
    }),
  );
}

/** Whether a weight has other parts. */
const hasParts = ({ format, mode }: FormatEntry): boolean => typeof format === "object" || mode !== undefined;
const moduleOf = (name: string): string => (name.endsWith(".weight") ? name.slice(0, -".weight".length) : name);

const partsIn = (reader: SafetensorsReader, name: string): string[] =>
  Object.values(partNames(name)).filter((part) => reader.has(part));

/** Whether a tensor is packed as in MLX: words, with scales. */
const hasScales = (reader: SafetensorsReader, name: string): boolean =>
  reader.info(name).dtype === "U32" && reader.has(partNames(name).scales);

function joined(reader: SafetensorsReader, name: string, entry: FormatEntry, fail: Fail): QuantizedTensor {
  const names = partNames(name);
  const part = (partName: string) => (hasParts(entry) && reader.has(partName) ? reader.tensor(partName) : undefined);
  const parts = { packed: reader.tensor(name), scales: part(names.scales), biases: part(names.biases) };
  return ofEntry(entry, parts, name, fail);
}

/** Builds a quantized tensor from views of the parts, and frees the parts. @throws {FileFormatError} */
export function ofEntry(entry: FormatEntry, parts: QuantizedParts, name: string, fail: Fail): QuantizedTensor {
  const { format, dtype, mode } = entry;
  try {
    const problem = mode === undefined ? problemOf(format, parts) : problemOfWords(parts);
    if (problem !== undefined)
      throw fail("invalidQuantization", `it is not valid ${formatName(format)}: ${problem.message}`, name);
    return ofParts(format, mode === undefined ? parts : { packed: blocksOfWords(parts.packed, parts.scales!) }, dtype);
  } finally {
    for (const part of [parts.packed, parts.scales, parts.biases]) part?.dispose();
  }
}
