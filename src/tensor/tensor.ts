import { describeValue } from "../core/describe.ts";
import { ArgumentError, DisposedError, ShapeError } from "../core/errors.ts";
import { aNumber } from "../core/kinds.ts";
import { named, required, unlisted } from "../core/parameters.ts";
import {
  bytesOf,
  type Complex,
  type DataOf,
  type DType,
  type ElementOf,
  hasGradients,
  isComplex,
  isGradientDType,
} from "./dtype.ts";
import { ElementCopy, elementAt, readElements } from "./elements.ts";
import { formatTensor } from "./format.ts";
import { freezeList, frozenRowMajor } from "./frozen.ts";
import { jsonOf, type TensorJson } from "./json.ts";
import type { StorageMode } from "./memory.ts";
import { elementCount, isRowMajor, MAX_RANK, type Shape, sameShape, type TensorShape } from "./shape.ts";
import type { Storage } from "./storage.ts";
import { tidyScope } from "./tidy.ts";

/** A function that is called with a gradient. If it returns a tensor, that replaces the gradient. */
export type GradientHook = (gradient: Tensor) => Tensor | undefined;

/** @internal Identifies a tensor as a result of a recorded operation. */
export interface GradientEdge {
  readonly node: {
    hooksOf(output: number): GradientHook[];
    retainGradOf(output: number, tensor: Tensor): void;
  };
  /** The index of the operation's output. */
  readonly output: number;
}

/**
 * An n-dimensional array of elements of one dtype. Views (`transpose`, `slice`, `expand`, …) share their storage.
 *
 * Create one with {@link tensor}, `zeros`, `randn` and similar functions. Operations are functions (`add(a, b)`) and
 * methods (`a.add(b)`).
 *
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * await x.matmul(x).data(); // Float32Array [7, 10, 15, 22]
 */
export class Tensor<D extends DType = DType> implements Disposable {
  // Private with getters only: native code relies on them, and `readonly` is not enforced at run time.
  readonly #shape: TensorShape;
  readonly #dtype: D;
  readonly #strides: readonly number[];
  readonly #offset: number;
  readonly #storage: Storage;
  // Private at run time too, so that code that compares or copies properties does not see them.
  #grad: Tensor<D> | null = null;
  #edge: GradientEdge | null = null;
  #hooks: GradientHook[] | null = null;
  #isKept = false;
  #leafRequiresGrad = false;
  #disposed = false;
  /**
   * @internal Makes `structuredClone` and `postMessage` throw a DataCloneError, since functions can't be cloned.
   *   Without it they would produce `{}`.
   */
  readonly notCloneable = notCloneable;

  /** @internal */
  constructor(storage: Storage, dtype: D, shape: Shape, strides?: readonly number[], offset = 0) {
    this.#storage = storage;
    this.#dtype = dtype;
    this.#shape = freezeList(shape) as TensorShape;
    this.#strides = strides === undefined ? frozenRowMajor(this.#shape) : freezeList(strides);
    this.#offset = offset;
    storage.retain();
    tidyScope.get()?.add(this);
    if (isInTest) Object.defineProperties(this, propertiesInTests);
  }

  /** @internal Whether a value is a tensor, and not a look-alike or proxy. Runs no code of the value. */
  static isTensor(value: unknown): value is Tensor {
    return typeof value === "object" && value !== null && #storage in value;
  }

  /**
   * The size of each axis, frozen.
   *
   * @example
   * const [batch, length] = x.shape;
   */
  get shape(): TensorShape {
    return this.#shape;
  }

  get dtype(): D {
    return this.#dtype;
  }

  /** The stride of each axis in elements, frozen. A stride of 0 repeats elements. */
  get strides(): readonly number[] {
    return this.#strides;
  }

  /** The offset of the first element in the storage, in elements. */
  get offset(): number {
    return this.#offset;
  }

  /** @internal */
  get storage(): Storage {
    return this.#storage;
  }

  /**
   * The current location of the elements: host memory, or a Metal buffer of this storage mode.
   *
   * @example
   * zeros([2], { storage: "private" }).storageMode; // "private" on metal, "host" on the other backends
   *
   * @throws {DisposedError}
   */
  get storageMode(): "host" | StorageMode {
    return this.storage.memory.storage ?? "host";
  }

  /** The number of axes, 0 to 8. */
  get rank(): number {
    return this.shape.length;
  }

  /**
   * Returns the shape as a tuple after a check of the rank.
   *
   * @param rank the tensor's rank, 0 to 8
   *
   * @example
   * const [batch, length] = x.sizes(2);
   *
   * @throws {ShapeError} if the tensor has a different rank.
   */
  sizes<R extends keyof SizesOfRank>(rank: R): SizesOfRank[R];
  sizes(...given: unknown[]): TensorShape {
    const { rank } = sizesParameters(given);
    if (rank === this.rank) return this.shape;
    throw new ShapeError("sizes", "rankDiffers", `expected a tensor of rank ${rank}, got ${this.describe()}`);
  }

  /** The number of elements. */
  get size(): number {
    return elementCount(this.shape);
  }

  /** Whether the elements are contiguous in row-major order. */
  get isContiguous(): boolean {
    return isRowMajor(this.shape, this.strides);
  }

  /** @internal The tensor's origin in the graph; null for leaves and tensors that require no gradient. */
  get edge(): GradientEdge | null {
    return this.#edge;
  }

  set edge(value: GradientEdge | null) {
    this.#edge = value;
  }

  /** @internal */
  get hooks(): GradientHook[] | null {
    return this.#hooks;
  }

  set hooks(value: GradientHook[] | null) {
    this.#hooks = value;
  }

  /** @internal Whether `tidy` keeps the tensor; see {@link keep}. */
  get isKept(): boolean {
    return this.#isKept;
  }

  set isKept(value: boolean) {
    this.#isKept = value;
  }

  /** Whether `backward()` computes a gradient of this tensor. Assign true to make a leaf a parameter. */
  get requiresGrad(): boolean {
    return this.edge !== null || this.#leafRequiresGrad;
  }

  set requiresGrad(value: boolean) {
    if (this.edge !== null)
      throw new ArgumentError(
        "requiresGrad",
        "notALeaf",
        "expected a leaf, got the result of an operation; detach() returns a leaf",
      );
    if (typeof value !== "boolean")
      throw new ArgumentError(
        "requiresGrad",
        "invalidOption",
        `expected requiresGrad to be true or false, got ${describeValue(value)}`,
      );
    if (value && !hasGradients(this.dtype))
      throw new ArgumentError("requiresGrad", "notAFloat", `expected a float dtype for a gradient, got ${this.dtype}`);
    this.#leafRequiresGrad = value;
  }

  /** The gradient accumulated by `backward()`, with this tensor's shape; null before the first. */
  get grad(): Tensor<D> | null {
    return this.#grad;
  }

  set grad(value: Tensor<D> | null) {
    if (value !== null) checkGradient(this, value);
    this.#grad = value;
  }

  /** Whether the tensor was created by the user or requires no gradient. */
  get isLeaf(): boolean {
    return this.edge === null;
  }

  get isDisposed(): boolean {
    return this.#disposed;
  }

  /** @internal Checks that the tensor is not disposed. @throws {DisposedError} */
  checkAlive(operation: string): void {
    if (this.#disposed)
      throw new DisposedError(operation, "disposed", `a tensor ${this.describe()} was used after dispose()`);
    if (this.storage.isClosed) throw this.storage.closedError(operation, this.describe());
  }

  /** Returns dtype and shape for messages, such as `float32[2, 3]`. */
  describe(): string {
    return `${this.dtype}[${this.shape.join(", ")}]`;
  }

  /**
   * Copies the elements in row-major order. It does not block the event loop: it waits for the device asynchronously,
   * and copies large tensors in parts of about a millisecond. (The backends `cpu` and `reference` compute operations
   * within the call; `metal` only encodes them.) If the tensor is changed in place before the promise settles, the copy
   * may mix old and new values.
   */
  async data(): Promise<DataOf<D>> {
    this.checkAlive("data");
    const { storage } = this;
    storage.retain(); // the tensor may be disposed meanwhile
    try {
      const copy = new ElementCopy<D>("data", this);
      for (;;) {
        const settled = storage.memory.whenReady();
        if (settled !== null) await settled;
        else if (copy.copyNext(copy.part)) return copy.result;
        else await turnOfEventLoop();
      }
    } finally {
      storage.release();
    }
  }

  /** As {@link data}, but blocks until the device is done. */
  dataSync(): DataOf<D> {
    return this.read("dataSync");
  }

  private read(operation: string): DataOf<D> {
    this.checkAlive(operation);
    return readElements(operation, this);
  }

  /** Returns the value of a tensor with one element. @throws {ArgumentError} for any other size. */
  item(): ElementOf<D> {
    this.checkAlive("item");
    if (this.size !== 1)
      throw new ArgumentError("item", "notOneElement", `expected a tensor of one element, got ${this.describe()}`);
    return this.element(elementAt(this, 0));
  }

  private element(value: number | bigint | Complex): ElementOf<D> {
    return (this.dtype === "bool" ? value !== 0 : value) as ElementOf<D>;
  }

  /**
   * Returns the elements as nested arrays, or the element itself for rank 0. Blocks until the device is done.
   *
   * The compiler doesn't know the rank, so the result has the type `any` without the option `rank`: numbers can be read
   * by index, and used, without an assertion.
   *
   * @param options `rank`: the tensor's rank, which determines the type of the result
   *
   * @example
   * const x = tensor([[1, 2], [3, 4]]);
   * x.toArray()[1][0]; // 3
   * const rows = x.toArray({ rank: 2 }); // number[][]
   *
   * @throws {ShapeError} if the tensor has a different rank.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the only type that is a number, and that every index reads from
  toArray(): any;
  toArray<R extends keyof ArrayOfRank<ElementOf<D>>>(options: { readonly rank: R }): ArrayOfRank<ElementOf<D>>[R];
  toArray(...given: unknown[]): NestedArray<ElementOf<D>> {
    const { rank } = given.length === 0 ? { rank: undefined } : toArrayParameters(given);
    if (rank !== undefined && rank !== this.rank)
      throw new ShapeError("toArray", "rankDiffers", `expected a tensor of rank ${rank}, got ${this.describe()}`);
    const data = this.read("toArray");
    let next = 0;
    const nextElement = isComplex(this.dtype)
      ? () => ({ re: data[next++] as number, im: data[next++] as number })
      : () => data[next++];
    const level = (axis: number): NestedArray<ElementOf<D>> =>
      axis === this.rank
        ? this.element(nextElement())
        : Array.from({ length: this.shape[axis] }, () => level(axis + 1));
    return level(0);
  }

  /**
   * Adds a hook that is called once in each backward pass with the complete gradient. Returns a function that removes
   * it.
   *
   * @throws {ArgumentError} if the tensor requires no gradient.
   */
  registerHook(hook: GradientHook): () => void {
    this.checkRequiresGrad("registerHook");
    if (typeof hook !== "function")
      throw new ArgumentError(
        "registerHook",
        "invalidOperand",
        `expected hook to be a function, got ${describeValue(hook)}`,
      );
    this.hooks ??= [];
    const hooks = this.edge ? this.edge.node.hooksOf(this.edge.output) : this.hooks;
    hooks.push(hook);
    return () => {
      const at = hooks.indexOf(hook);
      if (at >= 0) hooks.splice(at, 1);
    };
  }

  /**
   * Makes `backward()` store the gradient in `grad` for a tensor that is not a leaf, as it does for leaves. Returns the
   * tensor.
   */
  retainGrad(): this {
    this.checkRequiresGrad("retainGrad");
    this.edge?.node.retainGradOf(this.edge.output, this);
    return this;
  }

  private checkRequiresGrad(operation: string): void {
    this.checkAlive(operation);
    if (!this.requiresGrad) throw new ArgumentError(operation, "noGradient", `${this.describe()} requires no gradient`);
  }

  /**
   * Disposes of this tensor. Its memory is freed immediately unless a view or a backward pass needs it. A second call
   * has no effect.
   */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.storage.release();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Returns shape, dtype and elements as text, abbreviated for long axes. */
  /**
   * Returns the value that `JSON.stringify` writes: the dtype, the shape and the elements as nested arrays.
   *
   * @example
   * JSON.stringify(tensor([[1, NaN]])); // {"dtype":"float32","shape":[1,2],"data":[[1,"NaN"]]}
   *
   * @throws {ArgumentError} `tooLarge` for more than a million elements.
   */
  toJSON(): TensorJson {
    return jsonOf(this);
  }

  toString(): string {
    return this.#disposed ? `Tensor ${this.describe()} (disposed)` : formatTensor(this);
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/** @internal See {@link Tensor.notCloneable}. */
export function notCloneable(): never {
  throw new ArgumentError("Tensor", "notCloneable", "a tensor can't be cloned; send its data(), shape and dtype");
}

/** Whether the process runs tests: `bun test` and other runners set NODE_ENV. */
let isInTest = process.env["NODE_ENV"] === "test";

/** @internal Adds the properties that tensors have only in tests. */
export function showContents(): void {
  isInTest = true;
}

/**
 * Properties of tensors in tests. Matchers such as `toEqual` compare only own properties: if tensors had none, all
 * tensors would be equal. A matcher reads `compared` first, and its getter updates `contents`. `contents` is not a
 * getter, because Bun does not print the values of getters when a comparison fails.
 */
const propertiesInTests: PropertyDescriptorMap & ThisType<Tensor & { contents: unknown }> = {
  compared: {
    enumerable: true,
    get() {
      const { dtype, shape, isDisposed } = this;
      this.contents = isDisposed ? this.toString() : { dtype, shape, elements: this.toArray() };
      return "by contents";
    },
  },
  contents: { enumerable: true, writable: true, value: undefined },
};

/** Arrays nested as deep as the tensor's rank; an element for rank 0. */
export type NestedArray<T> = T | NestedArray<T>[];

/** The nested array type for each rank. */
export interface ArrayOfRank<T> {
  0: T;
  1: T[];
  2: T[][];
  3: T[][][];
  4: T[][][][];
  5: T[][][][][];
  6: T[][][][][][];
  7: T[][][][][][][];
  8: T[][][][][][][][];
}

/** The type of {@link Tensor.sizes} for each rank. */
export interface SizesOfRank {
  0: readonly [];
  1: readonly [number];
  2: readonly [number, number];
  3: readonly [number, number, number];
  4: readonly [number, number, number, number];
  5: readonly [number, number, number, number, number];
  6: readonly [number, number, number, number, number, number];
  7: readonly [number, number, number, number, number, number, number];
  8: readonly [number, number, number, number, number, number, number, number];
}

const aRank = aNumber({
  holds: (value) => Number.isInteger(value) && value >= 0 && value <= MAX_RANK,
  expected: `a rank from 0 to ${MAX_RANK}`,
});
const toArrayParameters = unlisted("toArray", { rank: named(aRank) });
const sizesParameters = unlisted("sizes", { rank: required(aRank) });

function checkGradient(owner: Tensor, gradient: unknown): void {
  if (!Tensor.isTensor(gradient))
    throw new ArgumentError(
      "grad",
      "invalidOperand",
      `expected grad to be a tensor or null, got ${describeValue(gradient)}`,
    );
  gradient.checkAlive("grad");
  if (sameShape(gradient.shape, owner.shape) && isGradientDType(gradient.dtype, owner.dtype)) return;
  const kind = isComplex(owner.dtype) ? "complex" : "float";
  throw new ArgumentError(
    "grad",
    "gradientDiffers",
    `expected the gradient of a ${owner.describe()} to have its shape and a ${kind} dtype, got ${gradient.describe()}`,
  );
}

const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Returns the size in bytes of a contiguous tensor. */
export const byteLengthOf = (shape: Shape, dtype: DType): number => elementCount(shape) * bytesOf(dtype);

/** Whether a tensor has a dtype, for the compiler too. */
export const hasDType = <D extends DType>(x: Tensor | undefined, dtype: D): x is Tensor<D> => x?.dtype === dtype;
