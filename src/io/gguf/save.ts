import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, anObject, aPath } from "../../core/kinds.ts";
import { named, operand, parameters, reading } from "../../core/parameters.ts";
import { blockFormat, formatName } from "../../quant/formats.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { type FileWriter, writeAtomically } from "../atomic.ts";
import { writeTensor } from "../safetensors/save.ts";
import { encodeHeader, type GgufInput, padding, typed, type WrittenTensor } from "./encode.ts";
import { ALIGNMENT_KEY, DEFAULT_ALIGNMENT, type GgufValue, plainDTypes, typeOfDType } from "./types.ts";

/** Options of {@link saveGguf}. */
export interface SaveGgufOptions {
  /**
   * Metadata by key. A value has its type, as `openGguf` returns it, or is plain: a string, a boolean, a bigint
   * (uint64, int64), a number (uint32, int32, or float32 if it fits neither), or a list of such values.
   */
  readonly metadata?: Readonly<Record<string, GgufInput>>;
  /** The alignment of tensors in bytes: a power of two of at least 8. Default 32. */
  readonly alignment?: number | undefined;
}

/**
 * Writes tensors to a GGUF file of version 3. The write is atomic: readers see the complete old file or the complete
 * new one. It yields to the event loop, so do not change the tensors in place before the promise settles.
 *
 * @param tensors by name, in the order in which they are written: plain tensors of float32, float16, bfloat16, float64,
 * int8, int32 or int64, and quantized tensors in GGML's blocks; with at most 4 axes
 *
 * @example
 * await io.saveGguf("model.gguf", { "blk.0.attn_q.weight": quantizeGgml(w, "q8_0") }, {
 *   metadata: { "general.architecture": "llama", "llama.block_count": 1 },
 * });
 *
 * @throws {FileError} `notFound` (no such folder), `notPermitted`, `diskFull` …: the old file is unchanged.
 * @throws {DTypeError} `unsupportedDType`, for a dtype or a format that GGUF does not have. @throws {ShapeError} for
 * more than 4 axes. @throws {ArgumentError} for a value that is not a tensor, or metadata that fits no type.
 * @throws {DisposedError}
 */
export async function saveGguf(
  path: string,
  tensors: Readonly<Record<string, Tensor | QuantizedTensor>>,
  options?: SaveGgufOptions,
): Promise<void>;
export async function saveGguf(...values: unknown[]): Promise<void> {
  const operation = "saveGguf";
  const { path, tensors, metadata, alignment } = saveParameters(values);
  const { header, parts } = reading(operation, () => layOut(operation, tensors, metadata, alignment));
  for (const { storage } of parts) storage.retain(); // the caller may dispose of them during the write
  try {
    await writeAtomically(operation, path, async (file) => {
      file.write(header);
      for (const part of parts) await writePadded(file, part, alignment);
    });
  } finally {
    for (const { storage } of parts) storage.release();
  }
}

const isPowerOfTwo = (value: number): boolean =>
  Number.isInteger(value) && value >= 8 && value <= 2 ** 30 && Number.isInteger(Math.log2(value));

const saveParameters = parameters("saveGguf", {
  path: operand(aPath),
  tensors: operand(anObject<Readonly<Record<string, unknown>>>("an object of tensors by name")),
  metadata: named(anObject<Readonly<Record<string, unknown>>>("an object of values by key"), {}),
  alignment: named(aNumber({ holds: isPowerOfTwo, expected: "a power of two of at least 8" }), DEFAULT_ALIGNMENT),
});

async function writePadded(file: FileWriter, tensor: Tensor, alignment: number): Promise<void> {
  await writeTensor(file, tensor);
  file.write(new Uint8Array(padding(file.length, alignment)));
}

interface Layout {
  readonly header: Uint8Array;
  /** The tensors that follow the header, in this order. */
  readonly parts: readonly Tensor[];
}

const MAX_AXES = 4;
const QUANTIZATION_KEY = "general.quantization_version";

function layOut(
  operation: string,
  tensors: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, unknown>>,
  alignment: number,
): Layout {
  const fields = new Map<string, GgufValue>();
  for (const [key, value] of Object.entries(metadata)) fields.set(key, typed(operation, key, value));
  fields.delete(ALIGNMENT_KEY); // the option `alignment` takes precedence
  if (alignment !== DEFAULT_ALIGNMENT) fields.set(ALIGNMENT_KEY, { type: "uint32", value: alignment });
  const parts: Tensor[] = [];
  const written: WrittenTensor[] = [];
  let offset = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    const { part, type, shape } = writable(operation, name, tensor);
    written.push({ name, shape, type, offset });
    parts.push(part);
    const bytes = byteLengthOf(part.shape, part.dtype);
    offset += bytes + padding(bytes, alignment);
  }
  if (Object.values(tensors).some(QuantizedTensor.isQuantized) && !fields.has(QUANTIZATION_KEY))
    fields.set(QUANTIZATION_KEY, { type: "uint32", value: 2 });
  return { header: encodeHeader([...fields], written, alignment), parts };
}

/** Checks a tensor. Returns the tensor that stores its bytes, the type and the logical shape. */
function writable(operation: string, name: string, tensor: unknown) {
  const weights = Tensor.isTensor(tensor) || QuantizedTensor.isQuantized(tensor) ? tensor : undefined;
  if (weights === undefined)
    throw new ArgumentError(
      operation,
      "notATensor",
      `expected ${describeValue(name)} to be a tensor, got ${describeValue(tensor)}`,
    );
  weights.checkAlive(operation);
  if (weights.rank > MAX_AXES)
    throw new ShapeError(
      operation,
      "tooManyAxes",
      `expected ${describeValue(name)} to have at most ${MAX_AXES} axes, got ${weights.describe()}`,
    );
  const { shape } = weights;
  if (Tensor.isTensor(weights)) {
    const type = typeOfDType(weights.dtype);
    if (type !== undefined) return { part: weights, type, shape };
    throw unsupported(operation, name, `a tensor of one of ${plainDTypes}`, weights.dtype);
  }
  if (typeof weights.format === "string")
    return { part: weights.parts.packed, type: blockFormat(weights.format).type, shape };
  throw unsupported(operation, name, "weights in GGML's blocks", formatName(weights.format));
}

const unsupported = (operation: string, name: string, expected: string, got: string): DTypeError =>
  new DTypeError(operation, "unsupportedDType", `expected ${describeValue(name)} to be ${expected}, got ${got}`);
