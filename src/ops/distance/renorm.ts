import { underName } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber, axis as axisKind } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { computationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { gt } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { where } from "../elementwise/where.ts";
import { norm } from "../reduction/norm.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { axisOf } from "../view/slice.ts";
import { renormed } from "./renorm.cpu.ts";

/** Added to the norms by which slices are divided, as in PyTorch. */
const EPS = 1e-7;

/**
 * Scales down the slices along an axis whose p-norm exceeds `maxnorm`, so that their norm is `maxnorm`.
 *
 * @param x floats, with at least two axes
 * @param p the order of the norm, above 0
 * @param dim the axis along which slices are taken
 * @param maxnorm the largest norm allowed
 *
 * @example
 * renorm(tensor([[3, 4], [0.3, 0.4]]), 2, 0, 1); // float32 [[0.6, 0.8], [0.3, 0.4]]
 *
 * @throws {ShapeError} for an axis out of range, or fewer than two axes. @throws {DTypeError} for integers and bools.
 * @throws {ArgumentError} if p is not above 0, or maxnorm is negative.
 */
export function renorm<D extends DType>(x: Tensor<D>, p: number, dim: number, maxnorm: number): Tensor<D>;
export function renorm(...values: unknown[]): Tensor {
  const { x, p, dim, maxnorm } = renormParameters(values);
  const input = floatOperand("renorm", x, undefined, true);
  const axis = axisOf("renorm", x, dim);
  if (x.rank < 2) throw new ShapeError("renorm", "wrongRank", `expected at least two axes, got ${x.describe()}`);
  const others = x.shape.map((_, other) => other).filter((other) => other !== axis);
  return underName("renorm", () =>
    tidy(() => {
      if (isFloat(x.dtype) && fusesOnCpu(x)) return renormed(x, { axis, order: p, largest: maxnorm, eps: EPS });
      const wide = toDType(input, computationDType(x.dtype));
      const norms = norm(wide, { p, dim: others, keepdim: true });
      const factors = where(gt(norms, maxnorm), div(maxnorm, add(norms, EPS)), 1);
      return toDType(mul(wide, factors), x.dtype);
    }),
  );
}
renorm.method = "same" as const;
const renormParameters = parameters("renorm", {
  x: operand(aTensor),
  p: required(aNumber({ holds: (p) => p > 0, expected: "a number above 0" })),
  dim: required(axisKind),
  maxnorm: required(aNumber(notNegative)),
});
