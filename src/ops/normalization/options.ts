/** Options of the normalizations and their validation. */

import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import type { Kind } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { shapeList } from "../../tensor/kinds.ts";
import { formatShape, type Shape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Options of `rmsNorm` and `addRmsNorm`. */
export interface RmsNormOptions {
  /**
   * Multiplied with the normalized elements. It has the normalized shape and the dtype of x or float32. Default none.
   */
  weight?: Tensor | undefined;
  /** Added to the mean of squares before the square root; at least 0. Default 1e-6. */
  eps?: number | undefined;
  /** The sizes of the last axes of x, which are normalized together. Default: the size of the last axis. */
  normalizedShape?: Shape | number | undefined;
}

/** Options of `layerNorm` and `addLayerNorm`. */
export interface LayerNormOptions {
  /**
   * Multiplied with the normalized elements. It has the normalized shape and the dtype of x or float32. Default none.
   */
  weight?: Tensor | undefined;
  /**
   * Added last. It has the normalized shape and the dtype of x or float32; if both are given, the dtype of `weight`.
   * Default none.
   */
  bias?: Tensor | undefined;
  /** Added to the variance before the square root; at least 0. Default 1e-5. */
  eps?: number | undefined;
  /** The sizes of the last axes of x, which are normalized together. Default: the size of the last axis. */
  normalizedShape?: Shape | number | undefined;
}

/** The sizes of the last axes; a number stands for one size, as in PyTorch. */
export const normalizedSizes: Kind<Shape> = {
  ...shapeList,
  parse: (value, operation, name) => (typeof value === "number" ? [value] : shapeList.parse(value, operation, name)),
};

/** Checks that x has floats and at least one axis. @throws {DTypeError} @throws {ShapeError} */
export function checkOperand(operation: string, x: Tensor): void {
  x.checkAlive(operation);
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected a tensor of floats, got ${x.describe()}; convert it with toDType(x, "float32")`,
    );
  if (x.rank === 0)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected at least one axis, the one to normalize, got ${x.describe()}`,
    );
}

/** Returns the shape over which x is normalized. @throws {ShapeError} if it is not the sizes of the last axes of x. */
export function checkNormalizedShape(operation: string, x: Tensor, given: Shape | undefined): Shape {
  const sizes = plainList(x.shape);
  const normalizedShape = given ?? sizes.slice(-1);
  const isLast = Array.isArray(normalizedShape) && normalizedShape.length > 0 && normalizedShape.length <= x.rank;
  if (isLast && sameShape(sizes.slice(-normalizedShape.length), normalizedShape)) return normalizedShape;
  const got = Array.isArray(normalizedShape) ? formatShape(normalizedShape) : String(normalizedShape);
  throw new ShapeError(
    operation,
    "shapesDiffer",
    `expected normalizedShape to be the sizes of the last axes (one or more) of ${x.describe()}, got ${got}`,
  );
}

/** Checks that eps is finite and at least 0. @throws {ArgumentError} */
export function checkEps(operation: string, eps: number): number {
  if (Number.isFinite(eps) && eps >= 0) return eps;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected eps to be a finite number of at least 0, got ${String(eps)}`,
  );
}

/** Checks that parameters have the normalized shape and supported dtypes. @throws {ShapeError} @throws {DTypeError} */
export function checkParameters(
  operation: string,
  x: Tensor,
  shape: Shape,
  parameters: Readonly<Record<string, Tensor | undefined>>,
): void {
  if (isEmpty(parameters)) return;
  const given = Object.entries(parameters).flatMap(([name, tensor]) => (tensor ? [{ name, tensor }] : []));
  for (const { name, tensor } of given) {
    tensor.checkAlive(operation);
    if (!sameShape(tensor.shape, shape))
      throw new ShapeError(
        operation,
        "shapesDiffer",
        `expected ${name} to have the shape of the axes of ${x.describe()} to normalize, ${formatShape(shape)}, ` +
          `got ${tensor.describe()}`,
      );
    if (tensor.dtype !== x.dtype && (tensor.dtype !== "float32" || x.dtype === "float64"))
      throw new DTypeError(
        operation,
        "dtypesDiffer",
        `expected ${name} for ${x.describe()} to be ${expectedDType(x)}, got ${tensor.describe()}; ` +
          `cast it with toDType(${name}, dtype)`,
      );
  }
  const [first, second] = given;
  if (first && second && first.tensor.dtype !== second.tensor.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected ${first.name} and ${second.name} to have one dtype, ` +
        `got ${first.tensor.dtype} and ${second.tensor.dtype}`,
    );
}

function isEmpty(parameters: Readonly<Record<string, Tensor | undefined>>): boolean {
  for (const name in parameters) if (parameters[name] !== undefined) return false;
  return true;
}

const expectedDType = ({ dtype }: Tensor): string =>
  dtype === "float16" || dtype === "bfloat16" ? `${dtype} or float32` : dtype;

/** Checks that the residual has the shape and dtype of x. @throws {ShapeError} @throws {DTypeError} */
export function checkResidual(operation: string, x: Tensor, residual: Tensor): void {
  residual.checkAlive(operation);
  const got = `got ${residual.describe()} with ${x.describe()}`;
  if (!sameShape(x.shape, residual.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected the residual to have the shape of x, ${got}; broadcast it with expand(residual, x.shape)`,
    );
  if (x.dtype !== residual.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected the residual to have the dtype of x, ${got}; cast it with toDType(residual, x.dtype)`,
    );
}
