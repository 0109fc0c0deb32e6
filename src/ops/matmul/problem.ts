/**
 * The memory layout of a matrix product, for every backend: sizes, strides, and a batch with as few axes as possible.
 * Gradients are such products too. A transposed operand has swapped strides, and a broadcast one has strides of 0. A
 * batch of adjacent matrices times one matrix becomes one tall matrix.
 */

import type { OperationCall } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import { plainList } from "../../tensor/frozen.ts";
import { broadcastStrides, collapse, type LoopNest } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ProductScale } from "./primitive.ts";

/** One matrix per index of a batch, in a tensor's storage. Strides are in elements; 0 repeats. */
export interface Matrix {
  readonly tensor: Tensor;
  readonly row: number;
  readonly column: number;
  readonly batch: readonly number[];
}

/** out = alpha · a · b + beta · input for each index of a batch: a is m × k, b is k × n, input and out are m × n. */
export interface Problem extends ProductScale {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batchShape: readonly number[];
  readonly a: Matrix;
  readonly b: Matrix;
  readonly out: Matrix;
  readonly input: Matrix | undefined;
}

/**
 * The operands in the order of `operandNames`. Without an input, the result is passed in its place, and kernels do not
 * read it.
 */
export const matricesOf = ({ a, b, input, out }: Problem): readonly Matrix[] => [a, b, input ?? out, out];

/** The fields that the kernels of every backend share. */
export const fieldsOf = (problem: Problem) => {
  const { m, n, k, alpha, beta, input } = problem;
  const matrices = matricesOf(problem);
  return {
    m,
    n,
    k,
    hasInput: input !== undefined,
    alpha,
    beta,
    rowStrides: matrices.map(({ row }) => row),
    columnStrides: matrices.map(({ column }) => column),
  };
};

/** Describes a call as a problem, with as few batch axes as the strides allow. */
export function problemOf({ inputs: [a, b, input], outputs: [out], attributes }: OperationCall<ProductScale>): Problem {
  const shape = plainList(out.shape);
  const [m, n, k] = [shape.at(-2)!, lastElement(shape), lastElement(plainList(a.shape))];
  const { alpha, beta } = attributes;
  const nest = shape.length === 2 ? one : batchNest(shape.slice(0, -2), input ? [a, b, out, input] : [a, b, out]);
  const [first, second, result, addend] = nest.strides;
  const problem: Problem = {
    alpha,
    beta,
    m,
    n,
    k,
    batchShape: nest.shape,
    a: matrixOf(a, first),
    b: matrixOf(b, second),
    out: matrixOf(out, result),
    input: input && matrixOf(input, addend),
  };
  return nest === one ? problem : foldBatch(problem);
}

/** The batch of a single product. */
const one: LoopNest = { shape: [], strides: [[], [], [], []] };

const batchNest = (batch: readonly number[], tensors: readonly Tensor[]): LoopNest =>
  collapse(
    batch,
    tensors.map(({ shape, strides }) =>
      broadcastStrides(plainList(shape).slice(0, -2), plainList(strides).slice(0, -2), batch),
    ),
  );

function matrixOf(tensor: Tensor, batch: readonly number[]): Matrix {
  const strides = plainList(tensor.strides);
  return { tensor, row: strides.at(-2)!, column: lastElement(strides), batch };
}

/** Transposes a problem: outᵀ = alpha · bᵀ · aᵀ + beta · inputᵀ. */
export function transposedProblem(problem: Problem): Problem {
  const transpose = (matrix: Matrix): Matrix => ({ ...matrix, row: matrix.column, column: matrix.row });
  const { m, n, a, b, out, input } = problem;
  return {
    ...problem,
    m: n,
    n: m,
    a: transpose(b),
    b: transpose(a),
    out: transpose(out),
    input: input && transpose(input),
  };
}

/** Merges matrices that are adjacent in memory and multiplied by the same b into one matrix. */
function foldBatch(problem: Problem): Problem {
  const { m, batchShape, a, b, out, input } = problem;
  const size = batchShape.at(-1);
  const tall = input ? [a, out, input] : [a, out];
  const folds =
    size !== undefined && b.batch.at(-1) === 0 && tall.every(({ row, batch }) => m === 1 || batch.at(-1) === row * m);
  if (!folds) return problem;
  const fold = (matrix: Matrix): Matrix => ({
    ...matrix,
    row: m === 1 ? lastElement(matrix.batch) : matrix.row,
    batch: matrix.batch.slice(0, -1),
  });
  return foldBatch({
    ...problem,
    m: m * size,
    batchShape: batchShape.slice(0, -1),
    a: fold(a),
    b: { ...b, batch: b.batch.slice(0, -1) },
    out: fold(out),
    input: input && fold(input),
  });
}
