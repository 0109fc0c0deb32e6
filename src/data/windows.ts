import { ArgumentError, DataError } from "../core/errors.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { type Permutation, permutationOf, permuted } from "../random/permutation.ts";
import { callKey, philox } from "../random/philox.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { TokenRange } from "./token_file.ts";

/** Windows of tokens: `y` is `x` moved on by one token, which is what a model is to say at each place. */
export interface Batch {
  /** int32 [batch, context] */
  readonly x: Tensor<"int32">;
  /** int32 [batch, context] */
  readonly y: Tensor<"int32">;
}

/** Where in the data a run is. With the same data, all further batches follow from it. */
export interface DataPosition {
  /** How often all windows were given before. */
  readonly epoch: number;
  /** How many windows of this epoch were given. */
  readonly index: number;
  /** Of the order. */
  readonly seed: bigint;
  /** Of the tokens and the context. */
  readonly fingerprint: string;
}

/** The windows of one epoch: a grid over the tokens, moved by less than a window, in an order of its own. */
interface Epoch {
  readonly shift: number;
  readonly windows: number;
  readonly order: Permutation;
}

/**
 * Batches of training windows, for ever: in each epoch every window of a grid once, in random order. The grid begins elsewhere in each
 * epoch, so that windows begin at every token in the long run. The order is a function of seed, epoch and place, with no memory of its own.
 *
 * @example
 * const { x, y } = train.next(12);
 * const loss = crossEntropy(model.forward(x), y, { dim: -1 });
 */
export class TrainingWindows {
  private epoch = 0;
  private index = 0;
  private current: Epoch;
  private readonly fingerprint: string;

  /** @internal See {@link openTextDataset}. */
  constructor(
    private readonly tokens: TokenRange,
    readonly contextLength: number,
    private readonly seed: bigint,
    fingerprint: string,
  ) {
    this.fingerprint = `${fingerprint}/${contextLength}`;
    this.current = this.epochOf(0);
  }

  /** How many tokens there are to train on. */
  get tokenCount(): number {
    return this.tokens.length;
  }

  /** How many windows this epoch has. */
  get windowCount(): number {
    return this.current.windows;
  }

  /** The next windows. A batch may have the last windows of one epoch and the first of the next. @throws {ArgumentError} */
  next(batchSize: number): Batch {
    checkBatchSize(batchSize);
    return batchOf(
      this.tokens,
      this.contextLength,
      Array.from({ length: batchSize }, () => this.nextStart()),
    );
  }

  private nextStart(): number {
    if (this.index >= this.current.windows) this.moveTo(this.epoch + 1, 0);
    const { shift, order, windows } = this.current;
    return shift + permuted(order, windows, this.index++) * this.contextLength;
  }

  /** Where the run is: a checkpoint's `data`. */
  getState(): DataPosition {
    return { epoch: this.epoch, index: this.index, seed: this.seed, fingerprint: this.fingerprint };
  }

  /**
   * Goes on from a position of {@link getState}: the next batches are those that would have followed there.
   *
   * @throws {DataError} `otherData` where it is of other tokens, another context or another seed.
   */
  setState({ epoch, index, seed, fingerprint }: DataPosition): this {
    if (fingerprint !== this.fingerprint || seed !== this.seed)
      throw new DataError(
        "setState",
        "otherData",
        `the position is of other data: ${describe(fingerprint, seed)} came, this is ${describe(this.fingerprint, this.seed)}; open the same files with the same tokenizer, context, held-out part and seed, or begin anew`,
      );
    if (
      ![epoch, index].every((count) => Number.isSafeInteger(count) && count >= 0) ||
      index > this.epochOf(epoch).windows
    )
      throw new DataError("setState", "invalidPosition", `there is no window ${index} of epoch ${epoch}`);
    this.moveTo(epoch, index);
    return this;
  }

  private moveTo(epoch: number, index: number): void {
    this.epoch = epoch;
    this.index = index;
    this.current = this.epochOf(epoch);
  }

  private epochOf(epoch: number): Epoch {
    const key = callKey(this.seed, BigInt(epoch));
    const shifts = Math.min(this.contextLength, this.tokens.length - this.contextLength);
    const shift = Math.floor((philox([0, 0, 1, 0], key)[0] / 2 ** 32) * shifts);
    const windows = Math.floor((this.tokens.length - 1 - shift) / this.contextLength);
    return { shift, windows, order: permutationOf(windows, key) };
  }
}

const describe = (fingerprint: string, seed: bigint): string => {
  const [hash, context] = String(fingerprint).split("/");
  return `tokens ${hash!.slice(0, 8)}, context ${context}, seed ${seed}`;
};

/** The windows that a model never learns from, one after the other and always the same. */
export class HeldOutWindows {
  /** @internal See {@link openTextDataset}. */
  constructor(
    private readonly tokens: TokenRange,
    readonly contextLength: number,
  ) {}

  /** How many tokens are held out. */
  get tokenCount(): number {
    return this.tokens.length;
  }

  /** 0 where fewer tokens are held out than a window has. */
  get windowCount(): number {
    return Math.max(0, Math.floor((this.tokens.length - 1) / this.contextLength));
  }

  /**
   * All windows, or the first of them, in order. The last batch is smaller where they do not come out even.
   *
   * @param most how many windows at most
   *
   * @throws {ArgumentError} for a batch size that is no whole number of at least 1.
   */
  *batches(batchSize: number, most: number = Number.POSITIVE_INFINITY): Generator<Batch> {
    checkBatchSize(batchSize);
    const windows = Math.min(this.windowCount, most);
    for (let first = 0; first < windows; first += batchSize) {
      const count = Math.min(batchSize, windows - first);
      const starts = Array.from({ length: count }, (_, at) => (first + at) * this.contextLength);
      yield batchOf(this.tokens, this.contextLength, starts);
    }
  }
}

function batchOf(tokens: TokenRange, contextLength: number, starts: readonly number[]): Batch {
  const [x, y] = [new Int32Array(starts.length * contextLength), new Int32Array(starts.length * contextLength)];
  for (const [row, start] of starts.entries()) {
    const [from, to] = [row * contextLength, (row + 1) * contextLength];
    tokens.copyTo(x.subarray(from, to), start);
    tokens.copyTo(y.subarray(from, to), start + 1);
  }
  const shape = [starts.length, contextLength];
  return { x: fromArray(x, shape), y: fromArray(y, shape) };
}

function checkBatchSize(batchSize: number): void {
  if (Number.isSafeInteger(batchSize) && batchSize >= 1) return;
  throw new ArgumentError(
    "batch",
    "invalidCount",
    `a batch has a whole number of windows, at least 1; ${batchSize} came`,
  );
}
