/** Examples as batches, in an order that is a function of the seed. */
import { DataError } from "../../core/errors.ts";
import type { DataPosition, Share } from "../../data/windows.ts";
import { fromArray } from "../../ops/creation/tensor.ts";
import { permutationOf, permuted } from "../../random/permutation.ts";
import { callKey } from "../../random/philox.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Example } from "./examples.ts";

/** Rows of tokens, and what is learned of them. */
export interface ExampleBatch {
  /** int32 [rows, tokens]; what is behind the end of a row's texts is not looked at. */
  readonly x: Tensor<"int32">;
  /** int32 [targets] */
  readonly y: Tensor<"int32">;
  /** The position in x, counted through all rows, from which each target is learned: int32 [targets]. */
  readonly from: Tensor<"int32">;
  /** The number of targets, by which this batch counts among others. */
  readonly targets: number;
  /** The lengths of texts in each row, if some have several. */
  readonly segments: readonly (readonly number[])[] | undefined;
  /** Whether blocks are computed again in the backward pass. */
  readonly checkpoint: boolean;
}

/** How rows are filled. */
export interface Filling {
  /** The most tokens of a row. */
  readonly context: number;
  /** Whether a row may have several texts, of which none sees another. */
  readonly packing: boolean;
  /** Whether blocks are computed again in the backward pass, which keeps nothing of them. */
  readonly checkpointActivations: boolean;
}

/** What a row has of an example: all of its tokens but the last, which is a target alone. */
const lengthOf = ({ tokens }: Example): number => tokens.length - 1;

/**
 * Examples to train on, without end: each epoch has each once. With packing the next examples go where a row has room,
 * until one fits in none.
 */
export class TrainingExamples {
  private epoch = 0;
  private index = 0;
  private order;

  /** @param examples at least one, none longer than the context and a token */
  constructor(
    private readonly examples: readonly Example[],
    private readonly filling: Filling,
    private readonly seed: bigint,
    private readonly fingerprint: string,
  ) {
    this.order = this.orderOf(0);
  }

  /** The next batch, or this rank's rows of it. */
  next(rows: number, { index, of }: Share = { index: 0, of: 1 }): ExampleBatch {
    const filled: Example[][] = [];
    while (this.put(filled, rows)) this.advance();
    const [from, to] = [index, index + 1].map((bound) => Math.floor((bound * filled.length) / of));
    return batchOf(filled.slice(from, to), this.filling);
  }

  /** Puts the next example into a row, if there is room. */
  private put(filled: Example[][], rows: number): boolean {
    const next = this.examples[permuted(this.order, this.examples.length, this.index)]!;
    const isRoom = (row: readonly Example[]) =>
      this.filling.packing && row.reduce((sum, own) => sum + lengthOf(own), lengthOf(next)) <= this.filling.context;
    const row = filled.find(isRoom);
    if (row) row.push(next);
    else if (filled.length < rows) filled.push([next]);
    else return false;
    return true;
  }

  private advance(): void {
    if (++this.index < this.examples.length) return;
    this.epoch++;
    this.index = 0;
    this.order = this.orderOf(this.epoch);
  }

  private orderOf(epoch: number) {
    return permutationOf(this.examples.length, callKey(this.seed, BigInt(epoch)));
  }

  getState(): DataPosition {
    return { epoch: this.epoch, index: this.index, seed: this.seed, fingerprint: this.fingerprint };
  }

  /** @throws {DataError} `otherData` for a position in other examples. */
  setState({ epoch, index, seed, fingerprint }: DataPosition): void {
    if (fingerprint !== this.fingerprint || seed !== this.seed || !(index < this.examples.length))
      throw new DataError(
        "train",
        "otherData",
        "expected the examples that the run began with, got others; pass the same files, model, context, packing, " +
          "held-out fraction and seed, or start over",
      );
    this.epoch = epoch;
    this.index = index;
    this.order = this.orderOf(epoch);
  }
}

/** Batches of `rows` examples, one in a row, in order. */
export function* batchesOf(examples: readonly Example[], rows: number, context: number): Generator<ExampleBatch> {
  for (let first = 0; first < examples.length; first += rows) {
    const own = examples.slice(first, first + rows).map((example) => [example]);
    yield batchOf(own, { context, packing: false, checkpointActivations: false });
  }
}

function batchOf(
  rows: readonly (readonly Example[])[],
  { packing, checkpointActivations: checkpoint }: Filling,
): ExampleBatch {
  const lengths = rows.map((row) => row.map(lengthOf));
  const width = Math.max(...lengths.map((row) => row.reduce((sum, length) => sum + length, 0)));
  const x = new Int32Array(rows.length * width);
  const [y, from]: [number[], number[]] = [[], []];
  for (const [row, examples] of rows.entries()) {
    let at = row * width;
    for (const { tokens, isTarget } of examples) {
      x.set(tokens.subarray(0, -1), at);
      for (const [index, token] of tokens.entries())
        if (index > 0 && isTarget[index] === 1) {
          y.push(token);
          from.push(at + index - 1);
        }
      at += tokens.length - 1;
    }
  }
  const filled = lengths.map((row) => [...row, width - row.reduce((sum, length) => sum + length, 0)]);
  return {
    x: fromArray(x, [rows.length, width]),
    y: fromArray(Int32Array.from(y)),
    from: fromArray(Int32Array.from(from)),
    targets: y.length,
    segments: packing ? filled.map((row) => row.filter((length) => length > 0)) : undefined,
    checkpoint,
  };
}

/** Releases the tensors of a batch. */
export const disposeBatch = ({ x, y, from }: ExampleBatch): void => {
  for (const each of [x, y, from]) each.dispose();
};
