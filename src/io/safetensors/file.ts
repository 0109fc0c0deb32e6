import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { DisposedError, DTypeError, FileFormatError, OutOfMemoryError } from "../../core/errors.ts";
import { counted } from "../../core/plural.ts";
import { nearestName } from "../../core/suggestion.ts";
import { bytesOf, type DType } from "../../tensor/dtype.ts";
import { allocateHost, ScriptMemory } from "../../tensor/memory.ts";
import { checkShape, type Shape } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { withFileErrors } from "../file_errors.ts";
import { fileDType, supportedNames } from "./dtypes.ts";
import { type Header, readHeader, type TensorEntry } from "./header.ts";

/** The description of a tensor in a safetensors file. */
export interface TensorInfo {
  /** The format's name, such as `"F32"`. */
  readonly dtype: string;
  readonly shape: Shape;
  readonly byteLength: number;
}

/** Tensors in files, which are loaded on demand. Call `close()` when done, or declare it with `using`. */
export interface SafetensorsReader extends Disposable {
  readonly path: string;
  /** The file's metadata, such as `{ format: "pt" }`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The names of the tensors, in the order of the file. */
  readonly names: readonly string[];
  has(name: string): boolean;
  /** The dtype, shape and size of a tensor, without loading it. @throws {FileFormatError} for an unknown name. */
  info(name: string): TensorInfo;
  /**
   * Loads a tensor, a new one at each call. From 64 KB on it is memory-mapped: pages are read when they are used, and
   * in-place changes stay in this process. It stays valid after the file is renamed, deleted or closed. If another
   * program truncates the file, this process ends with SIGBUS.
   *
   * @throws {FileFormatError} for an unknown name. @throws {DTypeError} for a dtype that tensors do not support.
   */
  tensor(name: string): Tensor;
  /** All tensors by name. */
  tensors(): Record<string, Tensor>;
  close(): void;
}

/** Smaller tensors are copied, which costs less than a mapping. */
const MIN_MAPPED_BYTES = 65_536;
/** A mapping starts at a multiple of the page size, which is at most this. */
const PAGE_BYTES = 65_536;

const unclosed = new FinalizationRegistry<number>(closeSync);

/** @internal One safetensors file. */
export class SafetensorsFile implements SafetensorsReader {
  readonly names: readonly string[];
  private readonly header: Header;
  /** Stays valid when the file is renamed or deleted. */
  private readonly descriptor: number;
  private readonly fileBytes: number;
  private closed = false;

  constructor(
    readonly path: string,
    private readonly operation: string,
  ) {
    this.descriptor = withFileErrors(operation, path, () => openSync(path, "r"));
    unclosed.register(this, this.descriptor, this);
    try {
      this.fileBytes = fstatSync(this.descriptor).size;
      this.header = readHeader(operation, path, this.fileBytes, (position, length) => this.read(position, length));
    } catch (cause) {
      this.close();
      throw cause;
    }
    this.names = [...this.header.tensors.keys()];
  }

  get metadata(): Readonly<Record<string, string>> {
    return this.header.metadata;
  }

  has(name: string): boolean {
    return this.header.tensors.has(name);
  }

  info(name: string): TensorInfo {
    const { dtype, shape, byteLength } = this.entry(name);
    return { dtype, shape, byteLength };
  }

  tensor(name: string): Tensor {
    this.checkOpen();
    const entry = this.entry(name);
    const dtype = this.dtypeOf(entry);
    checkShape(`${this.operation} ${name}`, entry.shape);
    const position = this.header.end + entry.begin;
    const isAligned = position % bytesOf(dtype) === 0;
    return entry.byteLength >= MIN_MAPPED_BYTES && isAligned
      ? this.mapped(entry, dtype, position)
      : this.copied(entry, dtype, position);
  }

  tensors(): Record<string, Tensor> {
    return Object.fromEntries(this.names.map((name) => [name, this.tensor(name)]));
  }

  /** @internal The file from a position on, in blocks. Each block overwrites the one before. */
  *blocks(start = 0): Generator<Uint8Array> {
    const block = new Uint8Array(2 ** 22);
    for (let position = start; position < this.fileBytes; position += block.byteLength) {
      const part = block.subarray(0, Math.min(block.byteLength, this.fileBytes - position));
      this.readInto(part, position);
      yield part;
    }
  }

  /** @internal Where the header ends. */
  get headerEnd(): number {
    return this.header.end;
  }

  /** @internal The first bytes of the file. */
  bytesBefore(end: number): Uint8Array {
    return this.read(0, end);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    unclosed.unregister(this);
    closeSync(this.descriptor);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private checkOpen(): void {
    if (this.closed) throw new DisposedError(this.operation, "closed", `${this.path} was used after close()`);
  }

  private entry(name: string): TensorEntry {
    const entry = this.header.tensors.get(name);
    if (entry !== undefined) return entry;
    const near = nearestName(name, this.names);
    const hint = near === undefined ? `it has ${counted(this.names.length, "other")}` : `did you mean "${near}"?`;
    throw new FileFormatError(this.operation, "missingTensor", this.path, `the file has no such tensor; ${hint}`, name);
  }

  private dtypeOf({ name, dtype }: TensorEntry): DType {
    const supported = fileDType(dtype)?.dtype;
    if (supported) return supported;
    throw new DTypeError(
      this.operation,
      "unsupportedDType",
      `${this.path}: expected tensor "${name}" to be one of ${supportedNames}, got ${dtype}`,
    );
  }

  private copied({ shape, byteLength }: TensorEntry, dtype: DType, position: number): Tensor {
    const memory = allocateHost(byteLength);
    this.readInto(new Uint8Array(memory.hostBuffer(), 0, byteLength), position);
    return new Tensor(new Storage(memory), dtype, shape);
  }

  /** A mapping per tensor: Bun maps less than 4 GB at once, and a device copies a memory as a whole. */
  private mapped({ name, shape, byteLength }: TensorEntry, dtype: DType, position: number): Tensor {
    if (fstatSync(this.descriptor).size < position + byteLength)
      throw new FileFormatError(
        this.operation,
        "truncated",
        this.path,
        "the file was truncated since it was opened",
        name,
      );
    const before = position % PAGE_BYTES;
    const bytes = this.map(position - before, before + byteLength);
    return new Tensor(new Storage(new ScriptMemory(bytes.buffer)), dtype, shape, undefined, before / bytesOf(dtype));
  }

  /** A private mapping: changes are copied on write. */
  private map(offset: number, size: number): Uint8Array<ArrayBuffer> {
    try {
      return Bun.mmap(`/dev/fd/${this.descriptor}`, { shared: false, offset, size }) as Uint8Array<ArrayBuffer>;
    } catch (cause) {
      const message = `${size} bytes of ${this.path} cannot be mapped in one block`;
      throw new OutOfMemoryError(this.operation, "outOfMemory", message, { cause });
    }
  }

  private read(position: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    this.readInto(bytes, position);
    return bytes;
  }

  private readInto(bytes: Uint8Array, position: number): void {
    this.checkOpen();
    withFileErrors(this.operation, this.path, () => {
      for (let done = 0; done < bytes.byteLength; ) {
        const count = readSync(this.descriptor, bytes, done, bytes.byteLength - done, position + done);
        if (count === 0)
          throw new FileFormatError(this.operation, "truncated", this.path, `it ends at byte ${position + done}`);
        done += count;
      }
    });
  }
}
