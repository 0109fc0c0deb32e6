import { ArgumentError, DataError } from "../core/errors.ts";
import { madeBy } from "../core/parameters.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { type Permutation, permutationOf, permuted } from "../random/permutation.ts";
import { callKey, philox } from "../random/philox.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { TokenRange } from "./token_file.ts";

/** A batch of windows of tokens. `y` is `x` shifted by one token: the target at each position. */
export interface Batch {
  /** int32 [batch, context] */
  readonly x: Tensor<"int32">;
  /** int32 [batch, context] */
  readonly y: Tensor<"int32">;
}

/** The position of a run in its data. With the same data, it determines all further batches. */
export interface DataPosition {
  /** The number of complete epochs. */
  readonly epoch: number;
  /** The number of windows of this epoch that were returned. */
  readonly index: number;
  /** The seed of the order. */
  readonly seed: bigint;
  /** Identifies the tokens and the context length. */
  readonly fingerprint: string;
}

/** One of several equal shares of a batch, one per process. */
export interface Share {
  /** The index of the share, from 0. */
  readonly index: number;
  /** The number of shares. */
  readonly of: number;
}

/**
 * The windows of one epoch: a grid over the tokens, shifted by less than a window, in an order that differs by epoch.
 */
interface Epoch {
  readonly shift: number;
  readonly windows: number;
  readonly order: Permutation;
}

/**
 * An endless stream of training batches. Each epoch returns every window of a grid once, in random order. Each epoch
 * shifts the grid, so that over many epochs windows start at every token. The order is a function of seed, epoch and
 * index, which is computed, not stored.
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
    if (typeof tokens?.length !== "number" || typeof seed !== "bigint")
      throw madeBy("TrainingWindows", "openTextDataset");
    this.fingerprint = `${fingerprint}/${contextLength}`;
    this.current = this.epochOf(0);
  }

  /** The number of training tokens. */
  get tokenCount(): number {
    return this.tokens.length;
  }

  /** The number of windows in this epoch. */
  get windowCount(): number {
    return this.current.windows;
  }

  /**
   * Returns the next batch. It may have the last windows of one epoch and the first windows of the next.
   *
   * @param share returns only one share of the batch, where the other shares are for other processes; the position
   * still advances by the whole batch. The sizes of shares differ by at most one window
   *
   * @throws {ArgumentError} for a batch size that is not a whole number of at least 1.
   */
  next(batchSize: number, { index, of }: Share = WHOLE): Batch {
    checkBatchSize(batchSize);
    const starts = Array.from({ length: batchSize }, () => this.nextStart());
    const [from, to] = [index, index + 1].map((bound) => Math.floor((bound * batchSize) / of));
    return batchOf(this.tokens, this.contextLength, starts.slice(from, to));
  }

  private nextStart(): number {
    if (this.index >= this.current.windows) this.moveTo(this.epoch + 1, 0);
    const { shift, order, windows } = this.current;
    return shift + permuted(order, windows, this.index++) * this.contextLength;
  }

  /** Returns the current position: the `data` of a checkpoint. */
  getState(): DataPosition {
    return { epoch: this.epoch, index: this.index, seed: this.seed, fingerprint: this.fingerprint };
  }

  /**
   * Continues from a position of {@link getState}: the next batches are the ones that would have followed it.
   *
   * @throws {DataError} `otherData` for a position in other tokens, or with another context length or seed.
   */
  setState({ epoch, index, seed, fingerprint }: DataPosition): this {
    if (fingerprint !== this.fingerprint || seed !== this.seed) throw this.otherData(fingerprint, seed);
    if (
      ![epoch, index].every((count) => Number.isSafeInteger(count) && count >= 0) ||
      index > this.epochOf(epoch).windows
    )
      throw new DataError("setState", "invalidPosition", `there is no window ${index} of epoch ${epoch}`);
    this.moveTo(epoch, index);
    return this;
  }

  private otherData(fingerprint: string, seed: bigint): DataError {
    const [expected, got] = [describe(this.fingerprint, this.seed), describe(fingerprint, seed)];
    const advice = "open the same files with the same tokenizer, context, held-out fraction and seed, or start over";
    return new DataError("setState", "otherData", `expected a position in ${expected}, got ${got}; ${advice}`);
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

const WHOLE: Share = { index: 0, of: 1 };

const describe = (fingerprint: string, seed: bigint): string => {
  const [hash, context] = String(fingerprint).split("/");
  return `tokens ${hash.slice(0, 8)}, context ${context}, seed ${seed}`;
};

/**
 * The windows for evaluation, in order and always the same. {@link openTextDataset} returns it.
 *
 * @example
 * for (const { x, y } of heldOut.batches(12)) losses.push(evaluate(x, y)); // int32 [12, contextLength] each
 */
export class HeldOutWindows {
  /** @internal See {@link openTextDataset}. */
  constructor(
    private readonly tokens: TokenRange,
    readonly contextLength: number,
  ) {}

  /** The number of held-out tokens. */
  get tokenCount(): number {
    return this.tokens.length;
  }

  /** The number of held-out windows; 0 if the tokens are fewer than a window. */
  get windowCount(): number {
    return Math.max(0, Math.floor((this.tokens.length - 1) / this.contextLength));
  }

  /**
   * Iterates over all windows, or the first `maxWindows`, in order. The last batch may be smaller.
   *
   * @throws {ArgumentError} for a batch size that is not a whole number of at least 1.
   */
  *batches(batchSize: number, maxWindows: number = Number.POSITIVE_INFINITY): Generator<Batch> {
    checkBatchSize(batchSize);
    const windows = Math.min(this.windowCount, maxWindows);
    for (let first = 0; first < windows; first += batchSize) {
      const count = Math.min(batchSize, windows - first);
      const starts = Array.from({ length: count }, (_, index) => (first + index) * this.contextLength);
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
    `expected the batch size to be a whole number of at least 1, got ${batchSize}`,
  );
}
