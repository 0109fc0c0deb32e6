import { DTypeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { defineBinary } from "./define.ts";
import type { BinaryOperation, Operand, ResultOf } from "./types.ts";

const step: BinaryOperation = defineBinary("heaviside", {
  isPublic: false,
  takes: "everything",
  reference: {
    float: (x, atZero) => (x === 0 ? atZero : Number(x > 0)),
    integer: (x, atZero) => (x === 0n ? atZero : x > 0n ? 1n : 0n),
  },
});

/**
 * Computes the Heaviside step function for each pair of elements, with broadcasting: 0 if x is below 0, 1 if it is
 * above, and the other operand if it is 0. For NaN it is 0, as in PyTorch. It has no gradient.
 *
 * @param values the result at 0; of x's dtype, or a number
 *
 * @example
 * heaviside(tensor([-1, 0, 2]), 0.5); // float32 [0, 0.5, 1]
 *
 * @throws {DTypeError} if the dtypes of two tensors differ.
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function heaviside<A extends Operand, B extends Operand>(x: A, values: B): Tensor<ResultOf<A, B>>;
export function heaviside(...given: unknown[]): Tensor {
  const { x, values } = heavisideParameters(given);
  if (Tensor.isTensor(x) && Tensor.isTensor(values) && x.dtype !== values.dtype)
    throw new DTypeError(
      "heaviside",
      "dtypesDiffer",
      `expected two tensors of one dtype, got ${x.dtype} and ${values.dtype}; convert with toDType()`,
    );
  return step(x, values);
}
heaviside.method = "promoted" as const;
const heavisideParameters = parameters("heaviside", {
  x: operand(tensorOrScalar),
  values: operand(tensorOrScalar),
});
