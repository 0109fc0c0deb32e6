import { underName } from "../../backend/dispatch.ts";
import { ArgumentError } from "../../core/errors.ts";
import { either, nothing } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, integerRange, isComplex, isFloat } from "../../tensor/dtype.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { add, mul } from "./arithmetic.ts";
import { eq, ge, gt, le, lt } from "./comparison.ts";
import { defineTernary, type Ternary, type TernaryGradient } from "./define.ts";
import { logicalAnd, logicalOr } from "./logic.ts";
import { promoteOperands, scalarTensor } from "./operands.ts";
import { where } from "./where.ts";

const clampBetween: Ternary = defineTernary("clamp", {
  reference: {
    float(x, least, most) {
      if (Number.isNaN(least) || Number.isNaN(most)) return Number.NaN;
      const raised = x < least ? least : x; // keeps NaN, and keeps -0 if least is 0
      return raised > most ? most : raised;
    },
    integer(x, least, most) {
      const raised = x > least ? x : least;
      return raised < most ? raised : most;
    },
  },
  gradient: gradientWith([0.5, 0.5]), // the rule for tensor bounds; clampAs() passes other rules
});

/**
 * Returns the gradient rule. Inside the bounds, x gets the gradient; outside, the exceeded bound gets it. If x equals a
 * bound, x gets half if the bound is a tensor (as in `maximum`), nothing if it is a number (as in `relu`), and all if
 * there is no bound.
 */
function gradientWith([ofLeast, ofMost]: readonly [number, number]): TernaryGradient {
  return (g, [x, least, most], needs) => [
    needs[0]
      ? taken(g, [
          [1, () => logicalAnd(gt(x, least), lt(x, most))],
          [ofLeast, () => logicalAnd(eq(x, least), le(x, most))],
          [ofMost, () => logicalAnd(eq(x, most), ge(x, least))],
        ])
      : null,
    needs[1]
      ? taken(g, [
          [1, () => logicalAnd(lt(x, least), lt(least, most))],
          [1 - ofLeast, () => logicalAnd(eq(x, least), lt(least, most))],
        ])
      : null,
    needs[2]
      ? taken(g, [
          [1, () => logicalOr(gt(x, most), gt(least, most))],
          [1 - ofMost, () => logicalAnd(eq(x, most), lt(least, most))],
        ])
      : null,
  ];
}

/** Sums the shares of a gradient, each applied where its condition is true. */
function taken(g: Tensor, parts: readonly (readonly [share: number, condition: () => Tensor<"bool">])[]): Tensor {
  return parts
    .filter(([share]) => share > 0)
    .map(([share, condition]) => where(condition(), share === 1 ? g : mul(g, share), 0))
    .reduce((sum, part) => add(sum, part));
}

/** The bounds of {@link clamp}. */
export interface ClampOptions {
  /** The smallest value: a number, or a tensor that is broadcast. Default: no bound. */
  min?: Tensor | Scalar | null | undefined;
  /** The largest value; it takes precedence if it is below `min`. Default: no bound. */
  max?: Tensor | Scalar | null | undefined;
}

/** Bounds of {@link clamp}, named or positional. */
export type ClampArguments = Given<ClampOptions, ["min", "max"]>;

/**
 * Clamps each element to the bounds, min(max(x, least), most), promoted to a common dtype with them. NaN stays NaN, and
 * a NaN bound gives NaN. If x equals a bound, a tensor bound gets half of the gradient; with a number, the gradient of
 * x is 0.
 *
 * @example
 * clamp(tensor([-2, 0.5, 2]), -1, 1); // float32 [-1, 0.5, 1]
 * clamp(tensor([-2, 0.5, 2]), { max: 1 }); // float32 [-2, 0.5, 1]
 *
 * @throws {ArgumentError} `noBound` if neither bound is given. @throws {DTypeError} for bools.
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function clamp(x: Tensor, ...bounds: ClampArguments): Tensor;
export function clamp(...values: unknown[]): Tensor {
  const { x, min, max } = clampParameters(values);
  return clampAs("clamp", x, { min, max });
}
clamp.method = "declared" as const;
const bound = either(tensorOrScalar, nothing);
const clampParameters = parameters("clamp", { x: operand(aTensor), min: optional(bound), max: optional(bound) });

/** Computes {@link clamp} for another operation, whose name errors have, optionally with another gradient rule. */
export function clampAs(operation: string, x: Tensor, { min, max }: ClampOptions, rule?: TernaryGradient): Tensor {
  const bounds = [min ?? null, max ?? null] as const;
  const given = bounds.filter((bound) => bound !== null);
  if (given.length === 0) throw new ArgumentError(operation, "noBound", "expected min, max or both, got neither");
  const [input, ...others] = promoteOperands(operation, [x, ...given], "numbers");
  const [least, most] = rangeOf(input.dtype).map((bound, at) =>
    bounds[at] === null ? scalarTensor(bound, input.dtype) : others.shift(),
  ) as [Tensor, Tensor];
  const gradient = rule ?? gradientWith([shareOf(bounds[0]), shareOf(bounds[1])]);
  return underName(operation, () => clampBetween([input, least, most], gradient));
}

/** Returns the share of the gradient that x gets if it equals a bound. */
const shareOf = (bound: Tensor | Scalar | null): number => (bound === null ? 1 : bound instanceof Tensor ? 0.5 : 0);

const rangeOf = (dtype: DType): readonly [Scalar, Scalar] =>
  isFloat(dtype) || isComplex(dtype) ? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] : integerRange(dtype);
