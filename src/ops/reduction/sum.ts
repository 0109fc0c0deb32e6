import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { named, parameters } from "../../core/parameters.ts";
import { type ComplexDType, type DType, type FloatDType, hasGradients } from "../../tensor/dtype.ts";
import { aDType } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { copyOf } from "../copy/copy.ts";
import { reshape } from "../view/reshape.ts";
import { expandResult } from "./expand_result.ts";
import type { FoldName } from "./folds.ts";
import {
  axesParameters,
  fold,
  isOfOne,
  planReduction,
  type ReductionArguments,
  type ReductionOptions,
  type ReductionPlan,
} from "./reduce.ts";

/**
 * The result dtype of sums and products: floats and complex numbers keep their dtype, integers and bools become int64.
 */
export type SumOf<D extends DType> = D extends FloatDType | ComplexDType ? D : "int64";

/** Options of {@link sum} and `prod`: the axes, whether they are kept, and the dtype. */
export interface SumOptions<D extends DType = DType> extends ReductionOptions {
  /** Dtype of the result. Elements are converted to it before the reduction. */
  dtype?: D | undefined;
}

/**
 * Computes the sum over axes. Integers and bools are added in int64, which wraps around. Floats of at most 32 bits are
 * added in float32 or better, as a tree, so that the error does not grow with the number of elements. An empty sum is
 * 0.
 *
 * @example
 * sum(tensor([[1, 2], [3, 4]]), { dim: 1 }); // float32 [3, 7]
 * sum(tensor([[1, 2], [3, 4]]), 1, true); // float32 [[3], [7]]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function sum<D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  ...options: ReductionArguments<SumOptions<E>>
): Tensor<E>;
export function sum(...values: unknown[]): Tensor {
  const { x, dim, keepdim, dtype } = sumParameters(values);
  const plan = planReduction("sum", x, { dim, keepdim });
  const { input, output } = accumulate("sum", x, plan, dtype);
  const whole = input.shape;
  record("sum", [input], [output], [], ([gradient]) => [expandResult(gradient, plan, whole)]);
  return toDType(output, dtype ?? output.dtype);
}
sum.method = "summed" as const;

const sumParameters = foldParameters("sum");

/** @internal Declares the parameters of a reduction with a dtype option. */
export function foldParameters(operation: string) {
  return parameters(operation, { ...axesParameters, dtype: named(aDType) });
}

/** Returns the sums or products of one element each. */
function copied(name: FoldName, x: Tensor, { shape }: ReductionPlan, dtype: DType): Tensor {
  const view = reshape(x, shape);
  return view.dtype === dtype ? copyOf(name, view) : toDType(view, dtype);
}

/** @internal Computes a sum or product in `dtype` if that is a float, else in int64. */
export function accumulate(name: FoldName, x: Tensor, plan: ReductionPlan, dtype: DType = x.dtype) {
  const input = hasGradients(dtype) || hasGradients(x.dtype) ? toDType(x, dtype) : x;
  const to = hasGradients(dtype) ? dtype : "int64";
  const isCopy = (name === "sum" || name === "prod") && isOfOne(input, plan);
  const output = isCopy ? noGrad(() => copied(name, input, plan, to)) : fold(name, input, plan, to);
  return { input, output };
}
