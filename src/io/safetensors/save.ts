import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { type FileWriter, writeAtomically } from "../atomic.ts";
import { fileDTypeOf } from "./dtypes.ts";
import { encodeHeader, METADATA_KEY, MOST_HEADER_BYTES, type TensorEntry } from "./header.ts";

/** Options of {@link saveSafetensors}. */
export interface SaveOptions {
  /** Texts by name, kept in the header. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Writes tensors to a safetensors file, byte for byte as the reference implementation does. Readers find the old file or the new one, whole,
 * whatever happens on the way. Tensors are written one after the other, in parts that let the event loop turn: don't change them in place
 * before the promise settles.
 *
 * @param tensors by name; of any strides, on any backend
 *
 * @example
 * await saveSafetensors("model.safetensors", model.stateDict(), { metadata: { format: "pt" } });
 *
 * @throws {FileError} `notFound` (no such folder), `notPermitted`, `diskFull` …: the old file is unchanged, and nothing else is left.
 * @throws {ArgumentError} for what is no tensor, or metadata that is no text. @throws {DisposedError}
 */
export async function saveSafetensors(
  path: string,
  tensors: Readonly<Record<string, Tensor>>,
  { metadata = {} }: SaveOptions = {},
): Promise<void> {
  const operation = "saveSafetensors";
  const layout = layOut(operation, tensors, metadata);
  await writeAtomically(operation, path, async (file) => {
    file.write(layout.header);
    await writeTensors(file, layout);
  });
}

/** @internal What a file will hold, before it is written. */
export interface Layout {
  readonly header: Buffer;
  /** In the order of their bytes. */
  readonly tensors: readonly Tensor[];
}

/** @internal The header for tensors, and their order: by dtype, the widest first, and by name. */
export function layOut(
  operation: string,
  tensors: Readonly<Record<string, Tensor>>,
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
  if (header.byteLength > MOST_HEADER_BYTES)
    throw new ArgumentError(
      operation,
      "headerTooLong",
      `names and texts take ${header.byteLength} bytes, and readers take at most ${MOST_HEADER_BYTES}`,
    );
  return { header, tensors: named.map(({ tensor }) => tensor) };
}

function checkTensor(operation: string, name: string, tensor: unknown) {
  if (name === METADATA_KEY)
    throw new ArgumentError(
      operation,
      "invalidName",
      `a tensor can't be named ${METADATA_KEY}: the format has that for texts`,
    );
  if (!(tensor instanceof Tensor))
    throw new ArgumentError(operation, "notATensor", `"${name}" should be a tensor, ${typeof tensor} came`);
  tensor.checkAlive(operation);
  const { name: dtype, order } = fileDTypeOf(tensor.dtype);
  return { name, key: Buffer.from(name), dtype, order, tensor };
}

function checkMetadata(operation: string, metadata: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(metadata))
    if (typeof value !== "string")
      throw new ArgumentError(operation, "invalidMetadata", `metadata are texts, "${key}" is a ${typeof value}`);
}

/** @internal Writes the tensors of a layout after one another. */
export async function writeTensors(file: FileWriter, { tensors }: Layout): Promise<void> {
  for (const tensor of tensors) tensor.storage.retain(); // they may be disposed of meanwhile
  try {
    for (const tensor of tensors) await writeTensor(file, tensor);
  } finally {
    for (const tensor of tensors) tensor.storage.release();
  }
}

async function writeTensor(file: FileWriter, tensor: Tensor): Promise<void> {
  if (tensor.isContiguous) return writeDense(file, tensor);
  const { storage, dtype, shape, strides, offset } = tensor;
  // Whoever disposed of the tensor meanwhile did not mean the share that writing has.
  using view = new Tensor(storage, dtype, shape, strides, offset);
  using dense = noGrad(() => contiguous(view));
  await writeDense(file, dense);
}

/** So much that the event loop turns every few milliseconds. */
const PART_BYTES = 2 ** 23;

async function writeDense(file: FileWriter, { storage, dtype, shape, offset }: Tensor): Promise<void> {
  const begin = offset * bytesOf(dtype);
  const byteLength = byteLengthOf(shape, dtype);
  for (let done = 0; done < byteLength; done += PART_BYTES) {
    for (let wait = storage.memory.settled(); wait !== null; wait = storage.memory.settled()) await wait;
    const { buffer } = storage.array(dtype); // each time: the memory may have moved
    file.write(new Uint8Array(buffer, begin + done, Math.min(PART_BYTES, byteLength - done)));
    if (done > 0) await turnOfEventLoop();
  }
}

const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
