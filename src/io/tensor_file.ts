import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { DisposedError, FileFormatError, OutOfMemoryError } from "../core/errors.ts";
import { bytesOf, type DType } from "../tensor/dtype.ts";
import { allocateHost, ScriptMemory } from "../tensor/memory.ts";
import { checkShape, type Shape } from "../tensor/shape.ts";
import { Storage } from "../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../tensor/tensor.ts";
import { withFileErrors } from "./file_errors.ts";

/** Smaller tensors are copied, which costs less than a mapping. */
const MIN_MAPPED_BYTES = 65_536;
/** A mapping starts at a multiple of the page size, which is at most this. */
const PAGE_BYTES = 65_536;

const unclosed = new FinalizationRegistry<number>(closeSync);

/** The location of a tensor in a file. */
export interface TensorPlace {
  /** The name of the tensor, for errors. */
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
  /** The position of the first byte in the file. */
  readonly position: number;
}

/** An open file with tensors. It stays valid when the file is renamed or deleted. */
export class TensorFile {
  /** The size of the file when it was opened. */
  readonly byteLength: number;
  private readonly descriptor: number;
  private closed = false;

  /** @throws {FileError} */
  constructor(
    readonly path: string,
    private readonly operation: string,
  ) {
    this.descriptor = withFileErrors(operation, path, () => openSync(path, "r"));
    unclosed.register(this, this.descriptor, this);
    this.byteLength = fstatSync(this.descriptor).size;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    unclosed.unregister(this);
    closeSync(this.descriptor);
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /** @throws {DisposedError} if it is closed. */
  checkOpen(): void {
    if (this.closed) throw new DisposedError(this.operation, "closed", `${this.path} was used after close()`);
  }

  /** Reads `length` bytes from a position on. @throws {FileFormatError} `truncated`, if the file ends before. */
  read(position: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    this.readInto(bytes, position);
    return bytes;
  }

  /** Fills an array with the bytes from a position on. */
  readInto(bytes: Uint8Array, position: number): void {
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

  /** Returns a new tensor: mapped if it is large and its elements are aligned, else copied. */
  tensor(place: TensorPlace): Tensor {
    this.checkOpen();
    const { dtype, position } = place;
    const byteLength = this.bytesAt(place);
    const isAligned = position % bytesOf(dtype) === 0;
    return byteLength >= MIN_MAPPED_BYTES && isAligned ? this.mapped(place, byteLength) : this.copiedTensor(place);
  }

  private bytesAt({ name, dtype, shape }: TensorPlace): number {
    checkShape(`${this.operation} ${name}`, shape);
    return byteLengthOf(shape, dtype);
  }

  /** Returns a new tensor with a copy of the bytes. */
  copiedTensor(place: TensorPlace): Tensor {
    this.checkOpen();
    const byteLength = this.bytesAt(place);
    const { dtype, shape, position } = place;
    const memory = allocateHost(byteLength);
    this.readInto(new Uint8Array(memory.hostBuffer(), 0, byteLength), position);
    return new Tensor(new Storage(memory), dtype, shape);
  }

  /** Maps each tensor separately: Bun maps less than 4 GB at once, and a device copies a whole mapping. */
  private mapped({ name, dtype, shape, position }: TensorPlace, byteLength: number): Tensor {
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

  /** Creates a private mapping: changes are copied on write. */
  private map(offset: number, size: number): Uint8Array<ArrayBuffer> {
    try {
      return Bun.mmap(`/dev/fd/${this.descriptor}`, { shared: false, offset, size });
    } catch (cause) {
      const message = `${size} bytes of ${this.path} cannot be mapped in one block`;
      throw new OutOfMemoryError(this.operation, "outOfMemory", message, { cause });
    }
  }
}
