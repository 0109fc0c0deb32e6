import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { countCodepath } from "../../backend/dispatch.ts";
import type { Size } from "../../backend/metal/encode.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { plainLoop } from "../../backend/metal/loop.ts";
import { productLibrary } from "../../backend/metal/product_library.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { tensorUnits } from "../../backend/metal/tensor_units.ts";
import { elementCount, rowMajorStrides } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LibraryPlan, launchLibraryProduct, libraryPlan } from "./library.metal.ts";
import { type Plan, planOf, vectorRows } from "./plan.ts";
import { type ProductScale, productParameters } from "./primitive.ts";
import { fieldsOf, type Matrix, matricesOf, type Problem, problemOf } from "./problem.ts";
import { SIMD_WIDTH, threadsOf } from "./tiles.ts";

export const productMetal: MetalImplementation<ProductScale> = {
  unsupported: noFloat64,
  run(call) {
    const problem = problemOf(call);
    const forLibrary = planForLibrary(call.operation, problem);
    if (forLibrary) return launchLibraryProduct(forLibrary);
    const plan = planOf(problem);
    if (plan.kernel === "tensor_tiled") countCodepath("matmul", "metal", `matmul2d: ${tensorUnits().reason}`);
    return launchProduct(plan);
  },
};

/** Returns the plan for the vendor's library; undefined to use Orchard's kernels. Counts the choice by its reason. */
function planForLibrary(operation: string, problem: Problem): LibraryPlan | undefined {
  const library = productLibrary();
  if (library.reason === "") return undefined; // no such library for this device
  const plan = library.use ? libraryPlan(problem) : library.reason;
  const isPlan = typeof plan !== "string";
  countCodepath(operation, "metal", isPlan ? library.reason : `Orchard's kernel: ${plan}`);
  return isPlan ? plan : undefined;
}

/** Encodes a product: one kernel, or two if its sums are split along k. */
export function launchProduct({ splits, ...plan }: Plan): TicketRange {
  const { problem } = plan;
  const splitLength = roundUp(Math.ceil(problem.k / splits), SPLIT_STEP);
  const parts = problem.k === 0 ? 1 : Math.ceil(problem.k / splitLength);
  if (parts <= 1) return launchKernel(plan, { splits: 1, splitLength: problem.k, splitStride: 0 });
  const splitStride = elementCount(problem.batchShape) * problem.m * problem.n;
  using scratch = scratchTensor([parts, ...problem.batchShape, problem.m, problem.n], "float32");
  const split = { splits: parts, splitLength, splitStride };
  return spanOf([
    launchKernel({ ...plan, problem: intoParts(problem, scratch) }, split),
    launchCombine(problem, scratch, split),
  ]);
}

/** Parts start at a tile boundary, and at a multiple of 4 elements so that vector loads are possible. */
const SPLIT_STEP = 16;

/** How sums are split along k. */
interface Split {
  /** The number of parts. */
  readonly splits: number;
  readonly splitLength: number;
  /** The stride between parts, in elements. */
  readonly splitStride: number;
}

const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/** The first kernel writes plain sums. The second one scales them and adds the input. */
function intoParts(problem: Problem, scratch: Tensor): Problem {
  const [, ...strides] = rowMajorStrides(scratch.shape);
  const out = { tensor: scratch, row: problem.n, column: 1, batch: strides.slice(0, -2) };
  return { ...problem, out, input: undefined, alpha: 1, beta: 0 };
}

function launchKernel(plan: Omit<Plan, "splits">, split: Split): TicketRange {
  const [a, b, input, out] = matricesOf(plan.problem).map(({ tensor }) => tensor);
  const { m, n, k, batchShape } = plan.problem;
  const { file, suffix = "", constants = [], groups, threadgroup } = shapes[plan.kernel](plan);
  return launch({
    file,
    name: `${plan.kernel}_${typesOf(plan)}${suffix}`,
    constants,
    operands: [reads(a), reads(b), reads(input), writes(out)],
    parameters: parametersOf(plan.problem, split),
    threadgroups: [...groups, elementCount(batchShape) * split.splits],
    threadgroup,
    work: 2 * m * n * k * elementCount(batchShape),
  });
}

/** Returns the types in a kernel's host name: the factors' type and, if sums are floats, the result's type. */
function typesOf({ kernel, problem: { a, out } }: Omit<Plan, "splits">): string {
  const type = metalTypeOf(a.tensor.dtype);
  return kernel === "whole" ? type : `${type}_${metalTypeOf(out.tensor.dtype)}`;
}

/** The parts of a launch that differ between kernels: file, function constants, and the grid of threadgroups. */
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
    suffix: `_${tile.rows}x${tile.columns}x${tile.depth}`,
    constants: [...tileLayoutOf(a), ...tileLayoutOf(b)],
    groups: [Math.ceil(n / tile.columns), Math.ceil(m / tile.rows)],
    threadgroup: threadsOf(tile),
  }),
  tensor_tiled: ({ problem: { m, n, a, b }, tile }) => {
    const [[aDown, aQuads], [bDown, bQuads]] = [tileLayoutOf(a), tileLayoutOf(b)];
    return {
      file: "matmul/tensor.metal",
      suffix: `_${tile.rows}x${tile.columns}x${tile.depth}_${aDown}${bDown}`,
      constants: [aQuads, bQuads],
      groups: [Math.ceil(n / tile.columns), Math.ceil(m / tile.rows)],
      threadgroup: threadsOf(tile),
    };
  },
  fragments: ({ problem: { m, n, a, b, out, input }, tile }) => {
    const [[aDown, aEights], [bDown, bEights]] = [tileLayoutOf(a, 8), tileLayoutOf(b, 8)];
    const pairs = Number(canReadBy(2, out, out.row, out.column));
    return {
      file: "matmul/fragments.metal",
      suffix: `_${tile.rows}x${tile.columns}x${tile.depth}`,
      constants: [1 - aDown, aEights, bDown, bEights, pairs, Number(input !== undefined)],
      groups: [Math.ceil(n / tile.columns), Math.ceil(m / tile.rows)],
      threadgroup: threadsOf(tile),
    };
  },
  vector_along: ({ problem: { m, a } }) => ({
    file: "matmul/vector.metal",
    constants: [Number(canReadBy(4, a, a.row, a.column))],
    groups: [Math.ceil(m / vectorRows.vector_along), 1],
    threadgroup: 4 * SIMD_WIDTH,
  }),
  vector_across: ({ problem: { m, a } }) => ({
    file: "matmul/vector.metal",
    constants: [Number(canReadBy(4, a, a.column, a.row))],
    groups: [Math.ceil(m / vectorRows.vector_across), 1],
    threadgroup: 8 * SIMD_WIDTH,
  }),
  whole: ({ problem: { m, n } }) => ({
    file: "matmul/whole.metal",
    groups: [Math.ceil(n / WHOLE_TILE), Math.ceil(m / WHOLE_TILE)],
    threadgroup: [WHOLE_TILE, WHOLE_TILE],
  }),
};

/**
 * Whether a tile is stored transposed (1), so that it is contiguous in the same axis as memory, and whether it is read
 * by vector loads of `width` elements.
 */
function tileLayoutOf(matrix: Matrix, width = 4): [number, number] {
  const { row, column } = matrix;
  const isTransposed = Math.abs(row) < Math.abs(column);
  const [outer, inner] = isTransposed ? [column, row] : [row, column];
  return [Number(isTransposed), Number(canReadBy(width, matrix, outer, inner))];
}

/**
 * Whether rows are contiguous and each starts at a multiple of `width` elements: a vector load must be aligned to its
 * size.
 */
const canReadBy = (width: number, { tensor, batch }: Matrix, outer: number, inner: number): boolean =>
  inner === 1 && [tensor.offset, outer, ...batch].every((elements) => elements % width === 0);

function launchCombine(problem: Problem, scratch: Tensor, split: Split): TicketRange {
  const { m, n, batchShape, input, out } = problem;
  return launch({
    file: "matmul/combine.metal",
    name: `combine_${metalTypeOf(out.tensor.dtype)}`,
    operands: [reads(scratch), reads((input ?? out).tensor), writes(out.tensor)],
    parameters: parametersOf(problem, split),
    grid: [n, m, elementCount(batchShape)],
    threadgroup: [Math.min(n, SIMD_WIDTH), Math.min(m, 8)],
  });
}

/** Integer kernels read `alpha` and `beta` from integer fields. */
function parametersOf(problem: Problem, split: Split): Uint8Array {
  const { alpha, beta, batchShape } = problem;
  const operands = matricesOf(problem).map(({ tensor, batch }) => ({ tensor, strides: batch }));
  const areWhole = Number.isInteger(alpha) && Number.isInteger(beta);
  return productParameters.bytes({
    ...fieldsOf(problem),
    ...split,
    batch: plainLoop(batchShape, operands).loop,
    wholeAlpha: areWhole ? alpha : 0,
    wholeBeta: areWhole ? beta : 0,
  });
}
