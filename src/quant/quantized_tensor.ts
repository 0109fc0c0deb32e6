import { ArgumentError, DisposedError } from "../core/errors.ts";
import { type Kind, madeBy } from "../core/parameters.ts";
import { elementCount, type Shape } from "../tensor/shape.ts";
import { byteLengthOf, notCloneable, Tensor } from "../tensor/tensor.ts";
import { formatName, type QuantizedFormat, type ScaleDType } from "./formats.ts";

/** The tensors that a quantized tensor consists of. */
export interface QuantizedParts {
  /** Blocks: uint8 […, bytes of a row]. Affine: uint32 […, words of a row]. */
  readonly packed: Tensor;
  /** Affine: one scale per group, […, groups of a row]. */
  readonly scales?: Tensor | undefined;
  /** Affine: one bias per group, […, groups of a row]; absent if the format is symmetric. */
  readonly biases?: Tensor | undefined;
}

/**
 * Quantized weights, as {@link quantize} and {@link quantizeGgml} make them and files store them. It has a logical
 * shape and the dtype that it dequantizes to, but only {@link dequantize} unpacks it in memory. Operations that do not
 * support it throw an error. Its parts are tensors, so they move between backends with the operations that use them.
 * `tidy` does not free it; `dispose()` frees it early.
 *
 * @example
 * using w = quantizeGgml(randn([64, 256]), "q4_0");
 * String(w); // "QuantizedTensor q4_0[64, 256], 9216 bytes, 4.5 bits a value, dequantizes to float32"
 */
export class QuantizedTensor implements Disposable {
  /** The name of a block format, or bits and group size of the affine format. */
  readonly format: QuantizedFormat;
  /** The logical shape: that of the dequantized tensor. */
  readonly shape: Shape;
  /** The dtype of the dequantized tensor. */
  readonly dtype: ScaleDType;
  readonly #parts: QuantizedParts;
  /** @internal Makes `structuredClone` throw, as for a tensor. */
  readonly notCloneable = notCloneable;

  /** @internal Takes ownership of the parts. */
  constructor(format: QuantizedFormat, shape: Shape, dtype: ScaleDType, parts: QuantizedParts) {
    if (!Array.isArray(shape) || !Tensor.isTensor(parts?.packed))
      throw madeBy("QuantizedTensor", "quantize or quantizeGgml");
    this.format = typeof format === "string" ? format : Object.freeze({ ...format });
    this.shape = Object.freeze([...shape]);
    this.dtype = dtype;
    this.#parts = parts;
    for (const part of this.tensors) part.isKept = true;
    Object.freeze(this);
  }

  /** @internal */
  static isQuantized(value: unknown): value is QuantizedTensor {
    return typeof value === "object" && value !== null && #parts in value;
  }

  /** @internal The tensors that store the values, the scales and the biases. */
  get parts(): QuantizedParts {
    return this.#parts;
  }

  private get tensors(): Tensor[] {
    const { packed, scales, biases } = this.#parts;
    return [packed, scales, biases].filter((part) => part !== undefined);
  }

  /** The number of axes. */
  get rank(): number {
    return this.shape.length;
  }

  /** The number of values. */
  get size(): number {
    return elementCount(this.shape);
  }

  /** The number of bytes, including scales and biases. */
  get byteLength(): number {
    return this.tensors.reduce((sum, { shape, dtype }) => sum + byteLengthOf(shape, dtype), 0);
  }

  /** Bits per value, including scales and biases; 0 if there are no values. */
  get bitsPerValue(): number {
    return this.size === 0 ? 0 : (this.byteLength * 8) / this.size;
  }

  /** Whether the tensor was disposed of. */
  get isDisposed(): boolean {
    return this.#parts.packed.isDisposed;
  }

  /** @internal @throws {DisposedError} naming the operation. */
  checkAlive(operation: string): void {
    if (this.isDisposed)
      throw new DisposedError(operation, "disposed", `a quantized ${this.name} was used after dispose()`);
    for (const part of this.tensors) part.checkAlive(operation);
  }

  private get name(): string {
    return `${formatName(this.format)}[${this.shape.join(", ")}]`;
  }

  /** Describes the tensor for error messages, with the fix if an ordinary tensor is expected. */
  describe(): string {
    return `a quantized ${this.name} (dequantize() converts it to ${this.dtype})`;
  }

  /** Frees its memory immediately. A second call has no effect. */
  dispose(): void {
    for (const part of this.tensors) part.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Returns format, shape and size, without values. */
  toString(): string {
    const gone = this.isDisposed ? " (disposed)" : "";
    const size = `${this.byteLength} bytes, ${Number(this.bitsPerValue.toFixed(3))} bits a value`;
    return `QuantizedTensor ${this.name}, ${size}, dequantizes to ${this.dtype}${gone}`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** @throws {ArgumentError} if a number is expected: it can't be converted to one. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint !== "number") return this.toString();
    throw new ArgumentError("QuantizedTensor", "notANumber", `expected a number, got ${this.describe()}`);
  }
}

/** Accepts a quantized tensor that was not disposed of. */
export const aQuantizedTensor: Kind<QuantizedTensor> = {
  expected: "a quantized tensor",
  parse(value, operation) {
    if (!QuantizedTensor.isQuantized(value)) return undefined;
    value.checkAlive(operation);
    return value;
  },
};
