import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { anObject, aPath } from "../../core/kinds.ts";
import { named, operand, parameters, reading } from "../../core/parameters.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import type { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { type FileWriter, writeAtomically } from "../atomic.ts";
import { fileDTypeOf } from "./dtypes.ts";
import { encodeHeader, MAX_HEADER_BYTES, METADATA_KEY, type TensorEntry } from "./header.ts";
import { inParts } from "./quantized.ts";

/** Options of {@link saveSafetensors}. */
export interface SaveOptions {
  /** Strings by name, saved in the header. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Writes tensors to a safetensors file, byte for byte as the reference implementation does. The write is atomic:
 * readers see the complete old file or the complete new one. It yields to the event loop, so do not change the tensors
 * in place before the promise settles.
 *
 * Quantized tensors stay quantized. An affine `a.weight` is saved as three tensors with MLX's names, `a.weight`,
 * `a.scales` and `a.biases`; blocks are saved as bytes. The metadata `quantization` has their formats, from which
 * `loadWeights` restores quantized tensors.
 *
 * @param tensors by name; with any strides, on any backend
 *
 * @example
 * await saveSafetensors("model.safetensors", model.stateDict(), { metadata: { format: "pt" } });
 *
 * @throws {FileError} `notFound` (no such folder), `notPermitted`, `diskFull` …: the old file is unchanged.
 * @throws {ArgumentError} for a value that is not a tensor, metadata that is not a string, and `duplicateName`, for a
 * tensor whose name equals that of another tensor's scales or biases. @throws {DisposedError}
 */
export async function saveSafetensors(
  path: string,
  tensors: Readonly<Record<string, Tensor | QuantizedTensor>>,
  options?: SaveOptions,
): Promise<void>;
export async function saveSafetensors(...values: unknown[]): Promise<void> {
  const operation = "saveSafetensors";
  const { path, tensors, metadata } = saveParameters(values);
  const layout = reading(operation, () => {
    const parts = inParts(operation, tensors, metadata);
    return layOut(operation, parts.tensors, parts.metadata);
  });
  await writeAtomically(operation, path, async (file) => {
    file.write(layout.header);
    await writeTensors(file, layout);
  });
}

const saveParameters = parameters("saveSafetensors", {
  path: operand(aPath),
  tensors: operand(anObject<Readonly<Record<string, unknown>>>("an object of tensors by name")),
  metadata: named(anObject<Readonly<Record<string, string>>>("an object of strings by name"), {}),
});

/** @internal The contents of a file before it is written. */
export interface Layout {
  readonly header: Buffer;
  /** Tensors in the order of their bytes in the file. */
  readonly tensors: readonly Tensor[];
}

/** @internal Computes the header of tensors, and their order: by dtype, the widest first, then by name. */
export function layOut(
  operation: string,
  tensors: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, string>>,
): Layout {
  const named = Object.entries(tensors).map(([name, tensor]) => checkTensor(operation, name, tensor));
  checkMetadata(operation, metadata);
  named.sort((a, b) => a.order - b.order || Buffer.compare(a.key, b.key));
  let begin = 0;
  const entries = named.map(({ name, dtype, tensor }): TensorEntry => {
    const byteLength = byteLengthOf(tensor.shape, tensor.dtype);
    begin += byteLength;
    return { name, dtype, shape: tensor.shape, begin: begin - byteLength, byteLength };
  });
  const header = encodeHeader(metadata, entries);
  if (header.byteLength > MAX_HEADER_BYTES)
    throw new ArgumentError(
      operation,
      "headerTooLong",
      `expected a header of at most ${MAX_HEADER_BYTES} bytes, got ${header.byteLength}; shorten names or metadata`,
    );
  return { header, tensors: named.map(({ tensor }) => tensor) };
}

function checkTensor(operation: string, name: string, tensor: unknown) {
  if (name === METADATA_KEY)
    throw new ArgumentError(
      operation,
      "invalidName",
      `a tensor cannot be named ${METADATA_KEY}: the format reserves that name for metadata`,
    );
  if (!Tensor.isTensor(tensor))
    throw new ArgumentError(operation, "notATensor", `expected "${name}" to be a tensor, got ${describeValue(tensor)}`);
  tensor.checkAlive(operation);
  const described = fileDTypeOf(tensor.dtype);
  if (described === undefined)
    throw new DTypeError(
      operation,
      "complex",
      `expected "${name}" to have a dtype of the format, which has no ${tensor.dtype}, got ${tensor.describe()}; ` +
        "save viewAsReal(x), and load it with viewAsComplex()",
    );
  const { name: dtype, order } = described;
  return { name, key: Buffer.from(name), dtype, order, tensor };
}

function checkMetadata(operation: string, metadata: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(metadata))
    if (typeof value !== "string")
      throw new ArgumentError(
        operation,
        "invalidMetadata",
        `expected metadata "${key}" to be a string, got ${typeof value}`,
      );
}

/** @internal Writes the tensors of a layout in order. */
export async function writeTensors(file: FileWriter, { tensors }: Layout): Promise<void> {
  for (const tensor of tensors) tensor.storage.retain(); // the caller may dispose of them during the write
  try {
    for (const tensor of tensors) await writeTensor(file, tensor);
  } finally {
    for (const tensor of tensors) tensor.storage.release();
  }
}

/** @internal Writes the elements of a tensor, row-major. */
export async function writeTensor(file: FileWriter, tensor: Tensor): Promise<void> {
  if (tensor.isContiguous) return writeDense(file, tensor);
  const { storage, dtype, shape, strides, offset } = tensor;
  // A separate view, because the caller may have disposed of the tensor.
  using view = new Tensor(storage, dtype, shape, strides, offset);
  using dense = noGrad(() => contiguous(view));
  await writeDense(file, dense);
}

/** The size of a write, small enough to yield to the event loop every few milliseconds. */
const PART_BYTES = 2 ** 23;

async function writeDense(file: FileWriter, { storage, dtype, shape, offset }: Tensor): Promise<void> {
  const begin = offset * bytesOf(dtype);
  const byteLength = byteLengthOf(shape, dtype);
  for (let done = 0; done < byteLength; done += PART_BYTES) {
    for (let wait = storage.memory.whenReady(); wait !== null; wait = storage.memory.whenReady()) await wait;
    const { buffer } = storage.array(dtype); // read in each iteration, because the memory may have moved
    file.write(new Uint8Array(buffer, begin + done, Math.min(PART_BYTES, byteLength - done)));
    if (done > 0) await yieldToEventLoop();
  }
}
