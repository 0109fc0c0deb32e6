import { describeValue } from "../core/describe.ts";
import { ArgumentError, DisposedError, ShapeError } from "../core/errors.ts";
import { aNumber } from "../core/kinds.ts";
import { named, unlisted } from "../core/parameters.ts";
import { bytesOf, type DataOf, type DType, type ElementOf, isFloat } from "./dtype.ts";
import { ElementCopy, elementAt, readElements } from "./elements.ts";
import { formatTensor } from "./format.ts";
import { freezeList, frozenRowMajor } from "./frozen.ts";
import { jsonOf, type TensorJson } from "./json.ts";
import type { StorageMode } from "./memory.ts";
import { elementCount, isRowMajor, MAX_RANK, type Shape, sameShape } from "./shape.ts";
import type { Storage } from "./storage.ts";
import { tidyScope } from "./tidy.ts";

/** Called with a gradient as it passes; what it returns, if anything, passes on instead. */
export type GradientHook = (gradient: Tensor) => Tensor | undefined;

/**
 * @internal Which result of which recorded operation a tensor is: all that it knows of the graph, whose nodes are
 * autograd's.
 */
export interface GradientEdge {
  readonly node: {
    hooksOf(output: number): GradientHook[];
    retainGradOf(output: number, tensor: Tensor): void;
  };
  /** Which of the operation's outputs. */
  readonly output: number;
}

/**
 * A block of elements of one dtype with a shape. Views (`transpose`, `slice`, `expand`, …) share their storage.
 *
 * Make one with {@link tensor}, `zeros`, `randn` and their like. Operations are functions (`add(a, b)`) and methods
 * (`a.add(b)`).
 *
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * await x.matmul(x).data(); // Float32Array [7, 10, 15, 22]
 */
export class Tensor<D extends DType = DType> implements Disposable {
  // Private, for readers alone: native code relies on them, and JavaScript does not know `readonly`.
  readonly #shape: Shape;
  readonly #dtype: D;
  readonly #strides: readonly number[];
  readonly #offset: number;
  readonly #storage: Storage;
  // Private at run time too: what compares or copies an object's properties is to see none of the bookkeeping.
  #grad: Tensor<D> | null = null;
  #edge: GradientEdge | null = null;
  #hooks: GradientHook[] | null = null;
  #isKept = false;
  #leafRequiresGrad = false;
  #disposed = false;
  /**
   * @internal `structuredClone` and `postMessage` copy an object's own properties, of which there would be none: with a
   * function among them they throw a DataCloneError, in place of making `{}`.
   */
  readonly notCloneable = notCloneable;

  /** @internal */
  constructor(storage: Storage, dtype: D, shape: Shape, strides?: readonly number[], offset = 0) {
    this.#storage = storage;
    this.#dtype = dtype;
    this.#shape = freezeList(shape);
    this.#strides = strides === undefined ? frozenRowMajor(this.#shape) : freezeList(strides);
    this.#offset = offset;
    storage.retain();
    tidyScope.get()?.add(this);
    if (isInTest) Object.defineProperties(this, propertiesInTests);
  }

  /** @internal Whether a value is a tensor: no look-alike, and no proxy. Runs no code of the value. */
  static isTensor(value: unknown): value is Tensor {
    return typeof value === "object" && value !== null && #storage in value;
  }

  /** The size of each axis, frozen. */
  get shape(): Shape {
    return this.#shape;
  }

  get dtype(): D {
    return this.#dtype;
  }

  /** In elements, for each axis, frozen; 0 repeats. */
  get strides(): readonly number[] {
    return this.#strides;
  }

  /** Of the first element in its storage, in elements. */
  get offset(): number {
    return this.#offset;
  }

  /** @internal */
  get storage(): Storage {
    return this.#storage;
  }

  /**
   * Where the elements are now: in the host's memory, or in a Metal buffer of this storage mode.
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

  /** The number of elements. */
  get size(): number {
    return elementCount(this.shape);
  }

  /** Whether elements lie row-major without gaps. */
  get isContiguous(): boolean {
    return isRowMajor(this.shape, this.strides);
  }

  /** @internal Where it comes from in the graph; null on a leaf and on what needs no gradient. */
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

  /** @internal Kept by every `tidy`: see {@link keep}. */
  get isKept(): boolean {
    return this.#isKept;
  }

  set isKept(value: boolean) {
    this.#isKept = value;
  }

  /** Whether `backward()` brings a gradient here, or through here. Assign true to make a leaf a parameter. */
  get requiresGrad(): boolean {
    return this.edge !== null || this.#leafRequiresGrad;
  }

  set requiresGrad(value: boolean) {
    if (this.edge !== null)
      throw new ArgumentError(
        "requiresGrad",
        "notALeaf",
        "expected a leaf, got the result of an operation; detach() gives a leaf",
      );
    if (typeof value !== "boolean")
      throw new ArgumentError(
        "requiresGrad",
        "invalidOption",
        `expected requiresGrad to be true or false, got ${describeValue(value)}`,
      );
    if (value && !isFloat(this.dtype))
      throw new ArgumentError("requiresGrad", "notAFloat", `expected a float dtype for a gradient, got ${this.dtype}`);
    this.#leafRequiresGrad = value;
  }

  /** The gradient that `backward()` summed up, on tensors that require one; null before. Of this shape. */
  get grad(): Tensor<D> | null {
    return this.#grad;
  }

  set grad(value: Tensor<D> | null) {
    if (value !== null) checkGradient(this, value);
    this.#grad = value;
  }

  /** Whether it was made by the user, or needs no gradient. */
  get isLeaf(): boolean {
    return this.edge === null;
  }

  get isDisposed(): boolean {
    return this.#disposed;
  }

  /** @internal @throws {DisposedError} naming the operation. */
  checkAlive(operation: string): void {
    if (this.#disposed)
      throw new DisposedError(operation, "disposed", `a tensor ${this.describe()} was used after dispose()`);
    if (this.storage.isClosed) throw this.storage.closedError(operation, this.describe());
  }

  /** `float32[2, 3]`, for messages. */
  describe(): string {
    return `${this.dtype}[${this.shape.join(", ")}]`;
  }

  /**
   * A copy of the elements, row-major. It never blocks the event loop: it waits for the device without holding it, and
   * copies what is large a millisecond's worth at a time. (Operations themselves compute within their call on the
   * backends `cpu` and `reference`, and are only encoded there on `metal`.) Changing the tensor in place before the
   * promise settles gives a mixture of both.
   */
  async data(): Promise<DataOf<D>> {
    this.checkAlive("data");
    const { storage } = this;
    storage.retain(); // the tensor may be disposed of meanwhile
    try {
      const copy = new ElementCopy("data", this);
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

  /** As {@link data}, blocking until the device is done. */
  dataSync(): DataOf<D> {
    return this.read("dataSync");
  }

  private read(operation: string): DataOf<D> {
    this.checkAlive(operation);
    return readElements(operation, this);
  }

  /** The value of a tensor of one element. @throws {ArgumentError} where it has more or none. */
  item(): ElementOf<D> {
    this.checkAlive("item");
    if (this.size !== 1)
      throw new ArgumentError("item", "notOneElement", `expected a tensor of one element, got ${this.describe()}`);
    return this.element(elementAt(this, 0));
  }

  private element(value: number | bigint): ElementOf<D> {
    return (this.dtype === "bool" ? value !== 0 : value) as ElementOf<D>;
  }

  /**
   * The elements as nested arrays; the bare element where the rank is 0. Blocks.
   *
   * @param options `rank`: the rank that the tensor has, which the type of the result then says
   *
   * @example
   * const rows = tensor([[1, 2], [3, 4]]).toArray({ rank: 2 }); // number[][]
   *
   * @throws {ShapeError} where the rank is another one.
   */
  toArray(): NestedArray<ElementOf<D>>;
  toArray<R extends keyof ArrayOfRank<ElementOf<D>>>(options: { readonly rank: R }): ArrayOfRank<ElementOf<D>>[R];
  toArray(...given: unknown[]): NestedArray<ElementOf<D>> {
    const { rank } = given.length === 0 ? { rank: undefined } : toArrayParameters(given);
    if (rank !== undefined && rank !== this.rank)
      throw new ShapeError("toArray", "rankDiffers", `expected a tensor of rank ${rank}, got ${this.describe()}`);
    const data = this.read("toArray");
    let next = 0;
    const level = (axis: number): NestedArray<ElementOf<D>> =>
      axis === this.rank
        ? this.element(data[next++]!)
        : Array.from({ length: this.shape[axis]! }, () => level(axis + 1));
    return level(0);
  }

  /**
   * Adds a hook on the gradient, called once in each backward pass with the whole sum. Returns a function that removes
   * it.
   *
   * @throws {ArgumentError} where the tensor requires no gradient.
   */
  registerHook(hook: GradientHook): () => void {
    this.checkRequiresGrad("registerHook");
    if (typeof hook !== "function")
      throw new ArgumentError(
        "registerHook",
        "invalidOperand",
        `expected a hook, a function, got ${describeValue(hook)}`,
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
   * Has `backward()` leave a gradient in `grad` here too, on a tensor that is no leaf (leaves have it anyway). Returns
   * the tensor.
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
   * Disposes of this tensor; its memory is freed at once where no view and no backward pass needs it. A second call has
   * no effect.
   */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.storage.release();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Shape, dtype and a table of the elements, abbreviated where it is long. */
  /**
   * What `JSON.stringify` writes: the dtype, the shape and the elements as nested arrays.
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

/** Whether the process runs tests: `bun test` sets it so, and other runners do. */
let isInTest = process.env["NODE_ENV"] === "test";

/** @internal From now on tensors are as they are in tests. */
export function showContents(): void {
  isInTest = true;
}

/**
 * What every tensor has in tests: matchers such as `toEqual` see an object's own properties alone, and without one any
 * two tensors would be equal to them. They read `compared` first, which brings `contents` up to date; that one is no
 * getter itself, since Bun prints none of those where a comparison fails.
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

/** An array of arrays …, as deep as a tensor has axes; an element itself where it has none. */
export type NestedArray<T> = T | NestedArray<T>[];

/** The same by rank. */
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

const rankOfArray = aNumber({
  holds: (value) => Number.isInteger(value) && value >= 0 && value <= MAX_RANK,
  expected: `a rank from 0 to ${MAX_RANK}`,
});
const toArrayParameters = unlisted("toArray", { rank: named(rankOfArray) });

function checkGradient(owner: Tensor, gradient: unknown): void {
  if (!Tensor.isTensor(gradient))
    throw new ArgumentError(
      "grad",
      "invalidOperand",
      `expected grad to be a tensor or null, got ${describeValue(gradient)}`,
    );
  gradient.checkAlive("grad");
  if (sameShape(gradient.shape, owner.shape) && isFloat(gradient.dtype)) return;
  throw new ArgumentError(
    "grad",
    "gradientDiffers",
    `expected the gradient of a ${owner.describe()} to be of its shape and a float dtype, got ${gradient.describe()}`,
  );
}

const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** The bytes that a tensor's own elements take, without gaps. */
export const byteLengthOf = (shape: Shape, dtype: DType): number => elementCount(shape) * bytesOf(dtype);
