import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { aNumber, axes, either, flag } from "../../core/kinds.ts";
import { type Given, type Kind, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isComplex, type RealOf } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { abs, mul } from "../elementwise/arithmetic.ts";
import { reshape } from "../view/reshape.ts";
import { dividedWhereNotZero, powerDerivative, signOf, ties } from "./derivatives.ts";
import { expandResult } from "./expand_result.ts";
import { evenShares } from "./extrema.ts";
import type { FoldName } from "./folds.ts";
import {
  floatOperand,
  fold,
  isOfOne,
  planReduction,
  type ReductionOptions,
  type ReductionPlan,
  refuseEmpty,
} from "./reduce.ts";

/** Options of {@link norm}: the axes, whether they are kept, and the order. */
export interface NormOptions extends ReductionOptions {
  /** The order: any number, including ±Infinity. Default 2. */
  p?: number | undefined;
}

/** Arguments of {@link NormOptions}: in an object, or the order, the axes and `keepdim` by position. */
export type NormArguments = Given<NormOptions, ["p", "dim", "keepdim"]>;

/** The Frobenius norm is the norm of order 2 over all elements. */
const frobenius: Kind<number> = { expected: '"fro"', parse: (value) => (value === "fro" ? 2 : undefined) };
const order: Kind<number> = aNumber({ holds: (p) => !Number.isNaN(p), expected: "a number, ±Infinity included" });

/**
 * Computes the vector norm over axes, (Σ |x|ᵖ)^(1/p). It is the largest |x| for p = ∞, the smallest for p = −∞, and the
 * number of nonzero elements for p = 0. The gradient is 0 where the norm is 0. For p = ±∞, elements of equal magnitude
 * share it.
 *
 * @example
 * norm(tensor([[3, 4], [6, 8]]), { dim: 1 }); // float32 [5, 10]
 *
 * @throws {DTypeError} for integers and bools.
 * @throws {ShapeError} for an axis out of range or given twice, and if p = ∞ or p < 0 and there are no elements.
 * @throws {ArgumentError} if p is NaN.
 */
export function norm<D extends DType>(x: Tensor<D>, ...options: NormArguments): Tensor<RealOf<D>>;
export function norm(...values: unknown[]): Tensor {
  const { x, p, dim, keepdim } = normParameters(values);
  const input = isComplex(x.dtype) ? abs(x) : floatOperand("norm", x);
  const plan = planReduction("norm", input, { dim, keepdim });
  if (p < 0 || p === Number.POSITIVE_INFINITY) refuseEmpty("norm", input, plan);
  const output =
    isOfOne(input, plan) && p !== 0 ? magnitudes(input, plan) : fold(foldOf(p), input, plan, input.dtype, p);
  record("norm", [input], [output], [input, output], ([gradient], [saved, result]) => {
    const derivative = normDerivative(saved, expandResult(result, plan, saved.shape), p, plan);
    return [mul(expandResult(gradient, plan, saved.shape), derivative)];
  });
  return output;
}
norm.method = "real" as const;
const normParameters = parameters("norm", {
  x: operand(aTensor),
  p: optional(either(order, frobenius), 2),
  dim: optional(axes),
  keepdim: optional(flag, false),
});

/** The norm of one element of any order but 0. */
const magnitudes = (x: Tensor, { shape }: ReductionPlan): Tensor => noGrad(() => abs(reshape(x, shape)));

function foldOf(p: number): FoldName {
  const special: ReadonlyMap<number, FoldName> = new Map([
    [0, "norm0"],
    [1, "norm1"],
    [2, "norm2"],
    [Number.POSITIVE_INFINITY, "normInf"],
    [Number.NEGATIVE_INFINITY, "normNegInf"],
  ]);
  return special.get(p) ?? "normP";
}

/** Returns the derivative of the norm y with respect to each element. */
function normDerivative(x: Tensor, y: Tensor, p: number, plan: ReductionPlan): Tensor {
  if (p === 0) return mul(signOf(x), 0);
  if (p === 1) return signOf(x);
  if (p === 2) return dividedWhereNotZero(x, y);
  if (Number.isFinite(p)) return powerDerivative(x, y, p);
  const signs = signOf(x);
  return mul(signs, evenShares(ties(mul(x, signs), y), plan));
}
