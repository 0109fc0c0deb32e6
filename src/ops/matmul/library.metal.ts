/** Matrix products by the GPU vendor's library: decides which ones it supports, and encodes them. */
import type { TicketRange } from "../../backend/backend.ts";
import { array, real, whole, word } from "../../backend/fields.ts";
import { launch, metalTypeOf, reads, writes } from "../../backend/metal/launch.ts";
import { struct } from "../../backend/metal/struct.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import { type Matrix, matricesOf, type Problem, transposedProblem } from "./problem.ts";

const BATCH_AXES = 2;
/** Each index of the outer batch axis costs one call of the library, a few microseconds. */
const MOST_CALLS = 64;
const THREADGROUP = [16, 16] as const;

const libraryParameters = struct("LibraryProduct", {
  m: whole,
  n: whole,
  k: whole,
  batch: array(whole, BATCH_AXES),
  leading: array(whole, 4),
  batchStrides: array(array(whole, BATCH_AXES), 4),
  transposed: array(word, 2),
  addend: word,
  alpha: real,
  beta: real,
});

/** Values of the field `addend`. */
const [NO_ADDEND, MATRIX_ADDEND, ROW_ADDEND] = [0, 1, 2];

/** A matrix layout that the library supports: contiguous rows, or contiguous columns if it is transposed. */
interface Lines {
  readonly isTransposed: boolean;
  /** The stride between rows, or between columns, in elements. */
  readonly leading: number;
}

/** A product and the layouts of its operands, in the order of `matricesOf`. */
export interface LibraryPlan {
  readonly problem: Problem;
  readonly lines: readonly Lines[];
  readonly addend: number;
}

/** Returns the plan to compute a product with the library, or why the library doesn't support it. */
export function libraryPlan(given: Problem): LibraryPlan | string {
  if (!isFloat(given.out.tensor.dtype)) return "integers";
  if (given.m === 1 || given.n === 1) return "a vector, for which Orchard's kernel is as fast";
  if (given.k === 0) return "empty sums";
  const problem = given.out.column === 1 ? given : transposedProblem(given);
  const { m, n, k, out, input, a, b, batchShape } = problem;
  const outer = batchShape.length < BATCH_AXES ? 1 : Math.min(...batchShape);
  if (batchShape.length > BATCH_AXES || outer > MOST_CALLS)
    return `more than ${BATCH_AXES} batch axes, or more than ${MOST_CALLS} along each`;
  if ([a, b, out].some(hasNegativeStride)) return "negative strides";
  const factors = [linesOf(a, m, k), linesOf(b, k, n)];
  const [into, added] = [linesOf(out, m, n), input ? addendOf(problem, input) : { addend: NO_ADDEND, leading: 0 }];
  if (factors.includes(undefined) || into?.isTransposed !== false) return "rows and columns that are not contiguous";
  if (typeof added === "string") return added;
  const [left, right] = factors as [Lines, Lines];
  return {
    problem,
    lines: [left, right, { isTransposed: false, leading: added.leading || into.leading }, into],
    addend: added.addend,
  };
}

const hasNegativeStride = ({ row, column, batch }: Matrix): boolean => Math.min(row, column, ...batch) < 0;

/** Returns the layout of a matrix; undefined if it is not supported. Strides of axes of size 1 are ignored. */
function linesOf({ row, column }: Matrix, rows: number, columns: number): Lines | undefined {
  if ((column === 1 || columns === 1) && (rows === 1 || row >= columns))
    return { isTransposed: false, leading: rows === 1 ? columns : row };
  if ((row === 1 || rows === 1) && (columns === 1 || column >= rows))
    return { isTransposed: true, leading: columns === 1 ? rows : column };
  return undefined;
}

function addendOf({ m, n, beta }: Problem, input: Matrix): { addend: number; leading: number } | string {
  if (hasNegativeStride(input)) return "negative strides";
  const lines = linesOf(input, m, n);
  if (lines && !lines.isTransposed) return { addend: MATRIX_ADDEND, leading: lines.leading };
  if (input.row === 0 && input.column === 1 && beta === 1) return { addend: ROW_ADDEND, leading: 0 };
  return "an input that is neither row-major nor a single row";
}

/** Encodes a product by the library. If the library rejects it, a kernel with the same formula runs instead. */
export function launchLibraryProduct({ problem, lines, addend }: LibraryPlan): TicketRange {
  const { m, n, k, alpha, beta, batchShape, a, b, out } = problem;
  const matrices = matricesOf(problem);
  const axes = innerAxesLast(batchShape);
  return launch({
    file: "matmul/library.metal",
    name: `orchard_library_product_${metalTypeOf(out.tensor.dtype)}`,
    operands: [reads(a.tensor), reads(b.tensor), reads(matrices[2].tensor), writes(out.tensor)],
    parameters: libraryParameters.bytes({
      m,
      n,
      k,
      alpha,
      beta: addend === ROW_ADDEND ? 1 : beta,
      addend,
      batch: axes.map((axis) => batchShape[axis] ?? 1),
      leading: lines.map(({ leading }, at) => (at === 2 && addend === ROW_ADDEND ? 0 : leading)),
      batchStrides: matrices.map(({ batch }) => axes.map((axis) => batch[axis] ?? 0)),
      transposed: lines.slice(0, 2).map(({ isTransposed }) => Number(isTransposed)),
    }),
    grid: [n, m, elementCount(batchShape)],
    threadgroup: THREADGROUP,
    work: 2 * m * n * k * elementCount(batchShape),
  });
}

/** Returns the batch axes as [outer, inner]. One call computes the whole inner axis, which is the longer one. */
const innerAxesLast = (shape: readonly number[]): readonly number[] =>
  shape.length === BATCH_AXES && shape[0] > shape[1] ? [1, 0] : shape.length < BATCH_AXES ? [1, 0] : [0, 1];
