import { DTypeError, FileFormatError } from "../../core/errors.ts";
import { blockFormat } from "../../quant/formats.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { missingTensor } from "../missing_tensor.ts";
import { TensorFile } from "../tensor_file.ts";
import { formatGguf } from "./format.ts";
import { type GgufEntry, type GgufHeader, readHeader } from "./header.ts";
import type { GgufValue } from "./types.ts";

/** The description of a tensor in a GGUF file. */
export interface GgufTensorInfo {
  /** GGML's name of the type, such as `"q4_K"` or `"f32"`. */
  readonly type: string;
  /** The row-major shape, in the reverse order of the file. */
  readonly shape: Shape;
  readonly byteLength: number;
}

/** Reads tensors from GGUF files on demand. Call `close()` when done, or declare it with `using`. */
export interface GgufReader extends Disposable {
  readonly path: string;
  /** The version of the format: 2 or 3. */
  readonly version: number;
  /** Values by key, with their types: `metadata["general.architecture"].value`. */
  readonly metadata: Readonly<Record<string, GgufValue>>;
  /** The names of the tensors, in the order of the file. */
  readonly names: readonly string[];
  has(name: string): boolean;
  /**
   * Returns the type, shape and size of a tensor, without loading it. @throws {FileFormatError} for an unknown name.
   */
  info(name: string): GgufTensorInfo;
  /**
   * Loads a tensor, as a new tensor on each call. Blocks are loaded as quantized tensors. Tensors of at least 64 KB are
   * memory-mapped: pages are read when they are used. The tensor stays valid after the file is renamed, deleted or
   * closed. If another program truncates the file, this process ends with SIGBUS.
   *
   * @throws {FileFormatError} for an unknown name. @throws {DTypeError} for a type that is not supported.
   */
  tensor(name: string): Tensor | QuantizedTensor;
  /** Loads all tensors, by name. */
  tensors(): Record<string, Tensor | QuantizedTensor>;
  close(): void;
}

/** @internal One GGUF file. */
export class GgufFile implements GgufReader {
  readonly names: readonly string[];
  private readonly header: GgufHeader;
  private readonly file: TensorFile;

  constructor(
    readonly path: string,
    private readonly operation: string,
  ) {
    this.file = new TensorFile(path, operation);
    try {
      this.header = readHeader(
        this.file,
        (code, message, tensor) => new FileFormatError(operation, code, path, message, tensor),
      );
    } catch (cause) {
      this.close();
      throw cause;
    }
    this.names = [...this.header.tensors.keys()];
  }

  get version(): number {
    return this.header.version;
  }

  get isClosed(): boolean {
    return this.file.isClosed;
  }

  get metadata(): Readonly<Record<string, GgufValue>> {
    return this.header.metadata;
  }

  has(name: string): boolean {
    return this.header.tensors.has(name);
  }

  info(name: string): GgufTensorInfo {
    const { type, shape, byteLength } = this.entry(name);
    return { type: type.name, shape, byteLength };
  }

  tensor(name: string): Tensor | QuantizedTensor {
    this.file.checkOpen();
    const { shape, position, type } = this.entry(name);
    if (type.as === null)
      throw new DTypeError(
        this.operation,
        "unsupportedDType",
        `${this.path}: tensor "${name}" has type ${type.name}, which is not supported`,
      );
    if ("dtype" in type.as) return this.file.tensor({ name, dtype: type.as.dtype, shape, position });
    const { format } = type.as;
    const { values, bytes } = blockFormat(format);
    const rowShape = [...shape.slice(0, -1), ((shape.at(-1) ?? 0) / values) * bytes];
    const packed = this.file.tensor({ name, dtype: "uint8", shape: rowShape, position });
    return new QuantizedTensor(format, shape, "float32", { packed });
  }

  tensors(): Record<string, Tensor | QuantizedTensor> {
    return Object.fromEntries(this.names.map((name) => [name, this.tensor(name)]));
  }

  close(): void {
    this.file.close();
  }

  toString(): string {
    return formatGguf(this, this.isClosed);
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private entry(name: string): GgufEntry {
    const entry = this.header.tensors.get(name);
    if (entry !== undefined) return entry;
    throw missingTensor(this.operation, this.path, name, this.names);
  }
}
