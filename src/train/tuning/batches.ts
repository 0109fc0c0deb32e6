/** Batches examples in an order that depends on the seed. */
import { DataError } from "../../core/errors.ts";
import type { DataPosition, Share } from "../../data/windows.ts";
import { fromArray } from "../../ops/creation/tensor.ts";
import { permutationOf, permuted } from "../../random/permutation.ts";
import { callKey } from "../../random/philox.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Example } from "./examples.ts";

/** Rows of tokens, and their targets. */
export interface ExampleBatch {
  /** int32 [rows, tokens]. Padding after the end of a row's texts is ignored. */
  readonly x: Tensor<"int32">;
  /** int32 [targets] */
  readonly y: Tensor<"int32">;
  /** The position in flattened x that predicts each target: int32 [targets]. */
  readonly from: Tensor<"int32">;
  /** The number of targets, the weight of this batch. */
  readonly targets: number;
  /** The lengths of the texts in each row, if some rows have several. */
  readonly segments: readonly (readonly number[])[] | undefined;
  /** Whether blocks are recomputed in the backward pass. */
  readonly checkpoint: boolean;
}

/** Options for filling rows. */
export interface Filling {
  /** Maximum tokens of a row. */
  readonly context: number;
  /** Whether a row may contain several texts. Attention stays within each text. */
  readonly packing: boolean;
  /** Whether to recompute blocks in the backward pass instead of storing their activations. */
  readonly checkpointActivations: boolean;
}

/** The tokens of an example in a row: all except the last, which is only a target. */
const lengthOf = ({ tokens }: Example): number => tokens.length - 1;

/**
 * An endless sequence of training examples; each epoch contains each example once. With packing, the next examples are
 * placed in rows with room until one fits in none.
 */
export class TrainingExamples {
  private epoch = 0;
  private index = 0;
  private order;

  /** @param examples at least one, each of at most context + 1 tokens */
  constructor(
    private readonly examples: readonly Example[],
    private readonly filling: Filling,
    private readonly seed: bigint,
    private readonly fingerprint: string,
  ) {
    this.order = this.orderOf(0);
  }

  /** Returns the next batch, or this rank's rows of it. */
  next(rows: number, { index, of }: Share = { index: 0, of: 1 }): ExampleBatch {
    const filled: Example[][] = [];
    while (this.put(filled, rows)) this.advance();
    const [from, to] = [index, index + 1].map((bound) => Math.floor((bound * filled.length) / of));
    return batchOf(filled.slice(from, to), this.filling);
  }

  /** Places the next example in a row, if there is room. */
  private put(filled: Example[][], rows: number): boolean {
    const next = this.examples[permuted(this.order, this.examples.length, this.index)];
    const isRoom = (row: readonly Example[]) =>
      this.filling.packing &&
      row.reduce((sum, example) => sum + lengthOf(example), lengthOf(next)) <= this.filling.context;
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

  /** Restores a position. @throws {DataError} `otherData` if it belongs to other examples. */
  setState({ epoch, index, seed, fingerprint }: DataPosition): void {
    if (fingerprint !== this.fingerprint || seed !== this.seed || !(index < this.examples.length))
      throw new DataError(
        "train",
        "otherData",
        "expected the examples with which the run started, got others; pass the same files, model, context, packing, " +
          "held-out fraction and seed, or start over",
      );
    this.epoch = epoch;
    this.index = index;
    this.order = this.orderOf(epoch);
  }
}

/** Yields batches of `rows` examples in order, one per row. */
export function* batchesOf(examples: readonly Example[], rows: number, context: number): Generator<ExampleBatch> {
  for (let first = 0; first < examples.length; first += rows) {
    const batch = examples.slice(first, first + rows).map((example) => [example]);
    yield batchOf(batch, { context, packing: false, checkpointActivations: false });
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
