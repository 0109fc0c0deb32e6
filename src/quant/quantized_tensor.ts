import { ArgumentError, DisposedError } from "../core/errors.ts";
import { type Kind, madeBy } from "../core/parameters.ts";
import { elementCount, type Shape } from "../tensor/shape.ts";
import { byteLengthOf, notCloneable, Tensor } from "../tensor/tensor.ts";
import { formatName, type QuantizedFormat, type ScaleDType } from "./formats.ts";

/** What a quantised tensor is made of. */
export interface QuantizedParts {
  /** Blocks: uint8 […, bytes of a row]. Affine: uint32 […, words of a row]. */
  readonly packed: Tensor;
  /** Affine: one for each group, […, groups of a row]. */
  readonly scales?: Tensor | undefined;
  /** The same of biases; absent where a format is symmetric. */
  readonly biases?: Tensor | undefined;
}

/**
 * Weights in a few bits each: what {@link quantize} and {@link quantizeGgml} make, and files hold. It has a logical
 * shape and the dtype of what it dequantises to, but its elements are never unpacked in memory, save by
 * {@link dequantize}. Operations that do not take it refuse it. Its parts are tensors, and so they move between
 * backends with the operations that use them. `tidy` leaves it; `dispose()` frees it early.
 *
 * @example
 * using w = quantizeGgml(randn([64, 256]), "q4_0");
 * String(w); // "QuantizedTensor q4_0[64, 256], 9216 bytes, 4.5 bits a value, dequantises to float32"
 */
export class QuantizedTensor implements Disposable {
  /** The name of a format of blocks, or bits and groups of an affine one. */
  readonly format: QuantizedFormat;
  /** The logical shape: of what it dequantises to. */
  readonly shape: Shape;
  /** The dtype of what it dequantises to. */
  readonly dtype: ScaleDType;
  readonly #parts: QuantizedParts;
  /** @internal So that `structuredClone` throws, as of a tensor. */
  readonly notCloneable = notCloneable;

  /** @internal It owns the parts. */
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

  /** @internal The tensors that it is made of. */
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

  /** The bytes that it takes, scales and all. */
  get byteLength(): number {
    return this.tensors.reduce((sum, { shape, dtype }) => sum + byteLengthOf(shape, dtype), 0);
  }

  /** Bits a value, scales and all; 0 where there are no values. */
  get bitsPerValue(): number {
    return this.size === 0 ? 0 : (this.byteLength * 8) / this.size;
  }

  get isDisposed(): boolean {
    return this.#parts.packed.isDisposed;
  }

  /** @internal @throws {DisposedError} naming the operation. */
  checkAlive(operation: string): void {
    if (this.isDisposed)
      throw new DisposedError(operation, "disposed", `a quantised ${this.name} was used after dispose()`);
    for (const part of this.tensors) part.checkAlive(operation);
  }

  private get name(): string {
    return `${formatName(this.format)}[${this.shape.join(", ")}]`;
  }

  /** For messages: that it is quantised, and what to do where a tensor is expected. */
  describe(): string {
    return `a quantised ${this.name}, of which dequantize() makes a ${this.dtype} tensor`;
  }

  /** Frees its memory at once. A second call has no effect. */
  dispose(): void {
    for (const part of this.tensors) part.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Format, shape and size, without values. */
  toString(): string {
    const gone = this.isDisposed ? " (disposed)" : "";
    const size = `${this.byteLength} bytes, ${Number(this.bitsPerValue.toFixed(3))} bits a value`;
    return `QuantizedTensor ${this.name}, ${size}, dequantises to ${this.dtype}${gone}`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** @throws {ArgumentError} for a number: there is none that it could be. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint !== "number") return this.toString();
    throw new ArgumentError("QuantizedTensor", "notANumber", `expected a number, got ${this.describe()}`);
  }
}

/** A quantised tensor that was not disposed of. */
export const aQuantizedTensor: Kind<QuantizedTensor> = {
  expected: "a quantised tensor",
  parse(value, operation) {
    if (!QuantizedTensor.isQuantized(value)) return undefined;
    value.checkAlive(operation);
    return value;
  },
};
