/** A row of the table that drives the tests of operations: samples, dtypes, the oracle, the gradient check. */
import type { BackendName } from "../../src/backend/names.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { repeats } from "../support/repeats.ts";
import type { Block, Layout, OperandSpec } from "./samples.ts";
import type { Accuracy } from "./tolerance.ts";

/** Rounds each step of a plain low-precision computation; the identity for the oracle itself. */
export type Round = (value: number) => number;

/**
 * The {@link Round} of the oracle itself, which rounds nothing. A formula that receives it may sum without rounding
 * errors, to be more accurate than plain float64 sums.
 */
export const exactly: Round = (value) => value;

/** One call: operands, and the operation's other arguments. */
export interface Sample<Options = undefined> {
  /** Default: shapes and layouts. */
  readonly name?: string;
  readonly inputs: readonly OperandSpec[];
  readonly options: Options;
  /** Dtypes for which the sample makes sense. Default: all of the row's. */
  readonly dtypes?: readonly DType[];
  /** False if the gradient is not defined at these values (ties, kinks, NaN). */
  readonly gradient?: boolean;
}

/** The oracle's result. */
export interface Expected {
  readonly shape: readonly number[];
  /** Row-major; exact up to float64's precision. */
  readonly values: readonly number[];
  /** Default: the dtype of the first operand. */
  readonly dtype?: DType;
  /**
   * The error that each value may have by analysis (pairwise summation: log₂ n · Σ |x|), in rounding errors of the
   * computation's dtype. By chance, a plain computation with few results can be more accurate than any bound.
   */
  readonly roundings?: readonly number[];
}

export interface OperationRow<Options = undefined> {
  readonly name: string;
  /** The public function. */
  readonly compute: (inputs: readonly Tensor[], options: Options) => Tensor | readonly Tensor[];
  readonly dtypes: readonly DType[];
  readonly samples: readonly Sample<Options>[];
  /**
   * The definition, written without any code of the library, for exact operands. With a `round` it is the plain
   * computation in low precision that FlashAttention's rule compares with: each step is rounded.
   */
  readonly oracle: (inputs: readonly Block[], options: Options, round: Round) => Expected | readonly Expected[];
  readonly accuracy: Accuracy;
  /**
   * For an operation that is linear in each operand: the number of terms of its longest sum. Results and gradients may
   * then be off by 2 √n · Σ |terms| roundings too (Higham and Mary, "A New Approach to Probabilistic Rounding Error
   * Analysis", 2019), if a plain computation happens to be better.
   */
  readonly sumLength?: (inputs: readonly Block[], options: Options) => number;
  /**
   * Whether the operation computes each element separately, from operands that are broadcast. The gradient of a
   * broadcast operand is then the sum over its repetitions, with the error of any sum: see `sumLength`.
   */
  readonly elementwise?: boolean;
  /**
   * Whether the operation has a gradient, checked in float64 by finite differences and then on each backend against
   * float64.
   */
  readonly gradient: boolean;
  /**
   * The error that gradients may have by analysis, in rounding errors of the largest one, like `roundings` of a result.
   * A list for each operand has the error of each element, in rounding errors of that element.
   */
  readonly gradientRoundings?: (inputs: readonly Block[], options: Options) => number | readonly (readonly number[])[];
  /** Backends and dtypes that lack the operation on purpose, with the reason; they are listed at the end of the run. */
  readonly lacks?: Partial<Record<BackendName, { readonly dtypes?: readonly DType[]; readonly reason: string }>>;
}

/** Returns each shape contiguous, then an operand for each further layout, with the shapes in turn. */
export function withLayouts(shapes: readonly (readonly number[])[], extra: readonly Layout[]): OperandSpec[] {
  return [
    ...shapes.map((shape) => ({ shape })),
    ...extra.map((layout, index) => ({ shape: shapes[index % shapes.length], layout })),
  ];
}

/** Rows of 129 elements: usually enough for several threadgroups, each of which ends inside a row. */
export const manyRows = repeats({ usual: 17, all: 65 });

/** Sizes 0 and 1, odd sizes, several ranks, and one that needs many threadgroups. */
export const commonShapes: readonly (readonly number[])[] = [
  [],
  [1],
  [0],
  [7],
  [3, 5],
  [2, 0, 3],
  [2, 3, 17],
  [1031],
  [manyRows, 129],
];
