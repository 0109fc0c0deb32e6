import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { aNumber, axes } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { computationDType, type DType, hasGradients } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { clamp } from "../elementwise/clamp.ts";
import { div } from "../elementwise/division.ts";
import { norm } from "../reduction/norm.ts";

/** Options of {@link normalize}. */
export interface NormalizeOptions {
  /** The order of the norm: any number, ±Infinity included. Default 2. */
  p?: number | undefined;
  /** The axis, or axes, of the vectors. Default 1. */
  dim?: number | readonly number[] | undefined;
  /** Lower bound of the norms. Default 1e-12. */
  eps?: number | undefined;
}

/**
 * Scales vectors along an axis to p-norm 1: x / max(‖x‖ₚ, eps). Zero vectors stay zero.
 *
 * @param x floats
 * @returns of x's shape and dtype
 *
 * @example
 * normalize(tensor([[3, 4], [0, 0]])); // float32 [[0.6, 0.8], [0, 0]]
 *
 * @throws {DTypeError} for integers and bools. @throws {ShapeError} for an axis out of range. @throws {ArgumentError}
 * if p is NaN or eps is negative.
 */
export function normalize<D extends DType>(
  x: Tensor<D>,
  ...options: Given<NormalizeOptions, ["p", "dim", "eps"]>
): Tensor<D>;
export function normalize(...values: unknown[]): Tensor {
  const { x, p, dim, eps } = normalizeParameters(values);
  if (!hasGradients(x.dtype))
    throw new DTypeError(
      "normalize",
      "notAFloat",
      `expected floats, got ${x.describe()}; convert with toDType(x, "float32")`,
    );
  for (const axis of [dim].flat()) normalizeAxis("normalize", axis, x.rank);
  return underName("normalize", () =>
    tidy(() => {
      const wide = toDType(x, computationDType(x.dtype));
      return toDType(div(wide, clamp(norm(wide, { p, dim, keepdim: true }), { min: eps })), x.dtype);
    }),
  );
}
const normalizeParameters = parameters("normalize", {
  x: operand(aTensor),
  p: optional(aNumber({ holds: (p) => !Number.isNaN(p), expected: "a number, ±Infinity included" }), 2),
  dim: optional(axes, 1),
  eps: optional(aNumber(notNegative), 1e-12),
});
