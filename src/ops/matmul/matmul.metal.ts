import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import type { Size } from "../../backend/metal/encode.ts";
import { launch, metalTypeOf, noFloat64, reads, startOf, writes } from "../../backend/metal/launch.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import { elementCount, rowMajorStrides } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { type Plan, planOf, vectorRows } from "./plan.ts";
import { type Matrix, type Problem, type ProductScale, problemOf } from "./problem.ts";
import { SIMD_WIDTH, threadsOf } from "./tiles.ts";

export const productMetal: Implementation<ProductScale> = {
  unsupported: noFloat64,
  run(call) {
    launchProduct(planOf(problemOf(call)));
  },
};

/** Encodes a product: one kernel, or two where its sums are cut into parts. */
export function launchProduct({ splits, ...plan }: Plan): void {
  const { problem } = plan;
  const splitLength = roundUp(Math.ceil(problem.k / splits), SPLIT_STEP);
  const parts = problem.k === 0 ? 1 : Math.ceil(problem.k / splitLength);
  if (parts <= 1) {
    launchKernel(plan, { parts: 1, splitLength: problem.k, splitStride: 0 });
    return;
  }
  const splitStride = elementCount(problem.batchShape) * problem.m * problem.n;
  using scratch = scratchOf(problem, parts);
  launchKernel({ ...plan, problem: intoParts(problem, scratch) }, { parts, splitLength, splitStride });
  launchCombine(problem, scratch, { parts, splitLength, splitStride });
}

/** Parts begin where a tile does, and where elements may be read by fours. */
const SPLIT_STEP = 16;

/** How sums are cut along k. */
interface Split {
  readonly parts: number;
  readonly splitLength: number;
  /** From part to part, in elements. */
  readonly splitStride: number;
}

const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

function scratchOf({ batchShape, m, n }: Problem, parts: number): Tensor {
  const shape = [parts, ...batchShape, m, n];
  return new Tensor(new Storage(new MetalMemory(metalContext(), byteLengthOf(shape, "float32"))), "float32", shape);
}

/** The first stage writes plain sums; what is done with them is the second's. */
function intoParts(problem: Problem, scratch: Tensor): Problem {
  const [, ...strides] = rowMajorStrides(scratch.shape);
  const out = { tensor: scratch, row: problem.n, column: 1, batch: strides.slice(0, -2) };
  return { ...problem, out, input: undefined, alpha: 1, beta: 0 };
}

function launchKernel(plan: Omit<Plan, "splits">, split: Split): void {
  const { a, b, input, out, batchShape } = plan.problem;
  const { file, suffix = "", constants = [], groups, threadgroup } = shapes[plan.kernel](plan);
  launch({
    file,
    name: `${plan.kernel}_${typesOf(plan)}${suffix}`,
    constants,
    // Without an input, its place is taken by what has its dtype, and with it its alignment.
    operands: [reads(a.tensor), reads(b.tensor), reads((input ?? out).tensor), writes(out.tensor)],
    parameters: parametersOf(plan.problem, split),
    threadgroups: [...groups, elementCount(batchShape) * split.parts],
    threadgroup,
  });
}

/** The kernels' types in their host names: of the factors, and of the result where sums are floats. */
function typesOf({ kernel, problem: { a, out } }: Omit<Plan, "splits">): string {
  const type = metalTypeOf(a.tensor.dtype);
  return kernel === "whole" ? type : `${type}_${metalTypeOf(out.tensor.dtype)}`;
}

/** What is a kernel's own: its file, its function constants, and how a matrix is dealt out to threadgroups. */
interface LaunchShape {
  readonly file: string;
  readonly suffix?: string;
  readonly constants?: readonly number[];
  readonly groups: readonly [number, number];
  readonly threadgroup: Size;
}

const WHOLE_TILE = 16;

const shapes: Readonly<Record<Plan["kernel"], (plan: Omit<Plan, "splits">) => LaunchShape>> = {
  tiled: ({ problem: { m, n, a, b }, tile }) => ({
    file: "matmul/tiled.metal",
    suffix: `_${tile!.rows}x${tile!.columns}x${tile!.depth}`,
    constants: [...linesOf(a), ...linesOf(b)],
    groups: [Math.ceil(n / tile!.columns), Math.ceil(m / tile!.rows)],
    threadgroup: threadsOf(tile!),
  }),
  vector_along: ({ problem: { m, a } }) => ({
    file: "matmul/vector.metal",
    constants: [Number(canReadByFours(a, a.row, a.column))],
    groups: [Math.ceil(m / vectorRows.vector_along), 1],
    threadgroup: 4 * SIMD_WIDTH,
  }),
  vector_across: ({ problem: { m } }) => ({
    file: "matmul/vector.metal",
    constants: [0],
    groups: [Math.ceil(m / vectorRows.vector_across), 1],
    threadgroup: 8 * SIMD_WIDTH,
  }),
  whole: ({ problem: { m, n } }) => ({
    file: "matmul/whole.metal",
    groups: [Math.ceil(n / WHOLE_TILE), Math.ceil(m / WHOLE_TILE)],
    threadgroup: [WHOLE_TILE, WHOLE_TILE],
  }),
};

/** Whether a tile's lines run along rows' axis (1) or columns' (0), whichever has neighbours in memory; and whether by fours. */
function linesOf(matrix: Matrix): [number, number] {
  const { row, column } = matrix;
  const alongRows = Math.abs(row) < Math.abs(column);
  return [
    Number(alongRows),
    Number(canReadByFours(matrix, ...(alongRows ? ([column, row] as const) : ([row, column] as const)))),
  ];
}

/** Whether lines are runs in memory, and each starts at a multiple of 4 elements: a vector load needs its own alignment. */
const canReadByFours = ({ tensor, batch }: Matrix, outer: number, inner: number): boolean =>
  inner === 1 && [tensor.offset, outer, ...batch].every((elements) => elements % 4 === 0);

function launchCombine(problem: Problem, scratch: Tensor, split: Split): void {
  const { m, n, batchShape, input, out } = problem;
  launch({
    file: "matmul/combine.metal",
    name: `combine_${metalTypeOf(out.tensor.dtype)}`,
    operands: [reads(scratch), reads((input ?? out).tensor), writes(out.tensor)],
    parameters: parametersOf(problem, split),
    grid: [n, m, elementCount(batchShape)],
    threadgroup: [Math.min(n, SIMD_WIDTH), Math.min(m, 8)],
  });
}

const MAX_BATCH_RANK = 6;
const OPERAND_WORDS = 3 + MAX_BATCH_RANK;
const PRODUCT_WORDS = 8 + MAX_BATCH_RANK + 4 * OPERAND_WORDS + 3;

/** `Product` of `kernels/matmul/product.h`. */
function parametersOf(problem: Problem, { parts, splitLength, splitStride }: Split): Uint8Array {
  const { m, n, k, batchShape, a, b, input, out, alpha, beta } = problem;
  const words = new BigInt64Array(PRODUCT_WORDS);
  const sizes = [m, n, k, parts, splitLength, splitStride, input ? 1 : 0, batchShape.length, ...batchShape];
  for (const [at, size] of sizes.entries()) words[at] = BigInt(size);
  for (const [index, matrix] of [a, b, input, out].entries())
    if (matrix) writeOperand(words, 8 + MAX_BATCH_RANK + index * OPERAND_WORDS, matrix);
  const isWhole = Number.isInteger(alpha) && Number.isInteger(beta);
  const tail = PRODUCT_WORDS - 3;
  words[tail] = isWhole ? BigInt(alpha) : 0n;
  words[tail + 1] = isWhole ? BigInt(beta) : 0n;
  new Float32Array(words.buffer).set([alpha, beta], (tail + 2) * 2);
  return new Uint8Array(words.buffer);
}

function writeOperand(words: BigInt64Array, at: number, { tensor, row, column, batch }: Matrix): void {
  for (const [index, value] of [startOf(tensor), row, column, ...batch].entries()) words[at + index] = BigInt(value);
}
