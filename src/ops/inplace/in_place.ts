/** In-place methods, derived from functions that return a new tensor. */
import { needsGradient } from "../../autograd/record.ts";
import { OrchardError, ShapeError } from "../../core/errors.ts";
import { expectTensor } from "../../tensor/kinds.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { checkTarget, storeResult } from "../copy/inplace.ts";
import { computeInPlace } from "../elementwise/define.ts";

/** A function whose first operand is the tensor. */
type Compute = (x: never, ...rest: never) => Tensor;

/**
 * Returns the in-place method of a function. It follows the rules of `add_`: it is not recorded, rejects tensors of a
 * graph, and increments the version of the storage.
 *
 * @param name the method's name, such as `exp_`
 * @param operation the function's name in its errors; default: the method's without the underscore
 *
 * @throws {AutogradError} (the method) `inPlace` if x or an operand requires a gradient, outside `noGrad`.
 * @throws {ShapeError} (the method) if the result does not have x's shape.
 * @throws {DTypeError} (the method) if x's dtype can't hold the result's kind, such as a float result for integers.
 * @throws {ArgumentError} (the method) if elements of x share memory (`expand`).
 */
export function inPlace(
  name: string,
  compute: Compute,
  operation = name.slice(0, -1),
): (x: Tensor, ...rest: readonly unknown[]) => Tensor {
  const call = compute as (x: Tensor, ...rest: readonly unknown[]) => Tensor;
  return (x, ...rest) => {
    expectTensor(name, "x", x);
    checkTarget(name, x, []);
    if (!rest.some(isInGraph) && underMethod(name, operation, () => computeInPlace(compute, x, rest))) return x;
    const result = underMethod(name, operation, () => call(x, ...rest));
    if (result === x) return x;
    // The result is recorded if and only if an operand is recorded.
    checkTarget(name, x, [result]);
    if (!sameShape(result.shape, x.shape))
      throw new ShapeError(
        name,
        "shapesDiffer",
        `the result has the shape ${formatShape(result.shape)}, which does not fit ${x.describe()}; use ${operation}()`,
      );
    return storeResult(name, x, result);
  };
}

const isInGraph = (operand: unknown): boolean => Tensor.isTensor(operand) && needsGradient(operand);

/** Runs the function of a method; errors name the method. */
function underMethod<Result>(name: string, operation: string, body: () => Result): Result {
  try {
    return body();
  } catch (error) {
    if (error instanceof OrchardError && error.operation === operation)
      Object.assign(error, { operation: name, message: error.message.replace(operation, name) });
    throw error;
  }
}
