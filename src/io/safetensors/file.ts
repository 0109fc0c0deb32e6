import { DTypeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatFile, formatMetadata } from "../format.ts";
import { missingTensor } from "../missing_tensor.ts";
import { TensorFile } from "../tensor_file.ts";
import { fileDType, supportedNames } from "./dtypes.ts";
import { type Header, readHeader, type TensorEntry } from "./header.ts";

/** The description of a tensor in a safetensors file. */
export interface TensorInfo {
  /** The format's name, such as `"F32"`. */
  readonly dtype: string;
  readonly shape: Shape;
  readonly byteLength: number;
}

/** Reads tensors from safetensors files on demand. Call `close()` when done, or declare it with `using`. */
export interface SafetensorsReader extends Disposable {
  readonly path: string;
  /** The file's metadata, such as `{ format: "pt" }`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The names of the tensors, in the order of the file. */
  readonly names: readonly string[];
  has(name: string): boolean;
  /**
   * Returns the dtype, shape and size of a tensor, without loading it. @throws {FileFormatError} for an unknown name.
   */
  info(name: string): TensorInfo;
  /**
   * Loads a tensor, as a new tensor on each call. Tensors of at least 64 KB are memory-mapped: pages are read when they
   * are used, and in-place changes stay in this process. The tensor stays valid after the file is renamed, deleted or
   * closed. If another program truncates the file, this process ends with SIGBUS.
   *
   * @throws {FileFormatError} for an unknown name. @throws {DTypeError} for a dtype that tensors do not support.
   */
  tensor(name: string): Tensor;
  /** @internal Loads the bytes of a tensor of any dtype, uint8 [bytes]. */
  bytes(name: string): Tensor;
  /** Loads all tensors, by name. */
  tensors(): Record<string, Tensor>;
  close(): void;
}

/** @internal One safetensors file. */
export class SafetensorsFile implements SafetensorsReader {
  readonly names: readonly string[];
  private readonly header: Header;
  private readonly file: TensorFile;

  constructor(
    readonly path: string,
    private readonly operation: string,
  ) {
    this.file = new TensorFile(path, operation);
    try {
      const read = (position: number, length: number) => this.file.read(position, length);
      this.header = readHeader(operation, path, this.file.byteLength, read);
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
    this.file.checkOpen();
    const { shape, begin, ...entry } = this.entry(name);
    return this.file.tensor({ name, dtype: this.dtypeOf(entry), shape, position: this.header.end + begin });
  }

  /** @internal */
  bytes(name: string): Tensor {
    this.file.checkOpen();
    const { byteLength, begin } = this.entry(name);
    return this.file.tensor({ name, dtype: "uint8", shape: [byteLength], position: this.header.end + begin });
  }

  tensors(): Record<string, Tensor> {
    return Object.fromEntries(this.names.map((name) => [name, this.tensor(name)]));
  }

  /** @internal Reads the file from a position on, in blocks. Each block overwrites the one before. */
  *blocks(start = 0): Generator<Uint8Array> {
    const block = new Uint8Array(2 ** 22);
    const { byteLength } = this.file;
    for (let position = start; position < byteLength; position += block.byteLength) {
      const part = block.subarray(0, Math.min(block.byteLength, byteLength - position));
      this.file.readInto(part, position);
      yield part;
    }
  }

  /** @internal The position where the header ends. */
  get headerEnd(): number {
    return this.header.end;
  }

  /** @internal Reads the first bytes of the file. */
  bytesBefore(end: number): Uint8Array {
    return this.file.read(0, end);
  }

  close(): void {
    this.file.close();
  }

  toString(): string {
    const entries = this.names.map((name) => ({ name, ...this.info(name) }));
    const metadata = Object.entries(this.metadata).map(([name, value]) => [name, formatMetadata(value)] as const);
    const { isClosed } = this.file;
    const typed = entries.map(({ dtype: type, ...entry }) => ({ ...entry, type }));
    return formatFile("safetensors", this.path, typed, { metadata, isClosed });
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private entry(name: string): TensorEntry {
    const entry = this.header.tensors.get(name);
    if (entry !== undefined) return entry;
    throw missingTensor(this.operation, this.path, name, this.names);
  }

  private dtypeOf({ name, dtype }: Pick<TensorEntry, "name" | "dtype">): DType {
    const supported = fileDType(dtype)?.dtype;
    if (supported) return supported;
    throw new DTypeError(
      this.operation,
      "unsupportedDType",
      `${this.path}: expected tensor "${name}" to be one of ${supportedNames}, got ${dtype}`,
    );
  }
}
