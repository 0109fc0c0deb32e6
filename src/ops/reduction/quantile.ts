/** Quantiles: values interpolated between the sorted elements along an axis. */
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind, choice, either, flag, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, type Kind, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { lerp } from "../elementwise/lerp.ts";
import { logicalNot } from "../elementwise/logic.ts";
import { isnan } from "../elementwise/predicates.ts";
import { ceil, floor, round } from "../elementwise/rounding.ts";
import { where } from "../elementwise/where.ts";
import { detach } from "../gradient/backward.ts";
import { gather } from "../indexing/gather.ts";
import { sort } from "../sorting/sort.ts";
import { flatten } from "../view/flatten.ts";
import { movedim } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { any } from "./logic.ts";
import { fusesQuantile, quantilesAlong } from "./order.cpu.ts";
import type { OrderOptions } from "./order.ts";
import { floatOperand } from "./reduce.ts";
import { sum } from "./sum.ts";

const numbers = either(someNumber, listOf(someNumber, "a list of numbers"));

/** Numbers, or a tensor of floats with at most one axis, which is read on the host. */
const chancesKind: Kind<number | number[]> = {
  expected: "a number, a list of numbers, or a tensor of floats with one axis at most",
  parse(value, operation, name) {
    const x = aTensor.parse(value, operation, name);
    if (x === undefined) return numbers.parse(value, operation, name);
    return x.rank <= 1 && isFloat(x.dtype) && !x.requiresGrad ? (x.toArray() as number | number[]) : undefined;
  },
};

/** How {@link quantile} interpolates between two elements. */
export type QuantileInterpolation = "linear" | "lower" | "higher" | "midpoint" | "nearest";

/** Options of {@link quantile}. */
export interface QuantileOptions extends OrderOptions {
  /** The interpolation between two elements. Default `"linear"`. */
  interpolation?: QuantileInterpolation | undefined;
}

/**
 * Computes the q-th quantiles of all elements or along an axis: the value at position q (n − 1) of the n sorted
 * elements. It is NaN if an element is NaN.
 *
 * @param q a number from 0 to 1, or a list or vector of them, which adds a first axis to the result
 * @returns a scalar, or with `dim` x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * quantile(tensor([0, 1, 2, 3]), 0.5); // float32 1.5
 * quantile(tensor([0, 1, 2, 3]), [0, 0.5, 1]); // float32 [0, 1.5, 3]
 *
 * @throws {DTypeError} if x is not of a float dtype.
 * @throws {ShapeError} for an axis out of range or without elements.
 * @throws {ArgumentError} for a q outside 0 to 1.
 */
export function quantile<D extends DType>(
  x: Tensor<D>,
  q: number | readonly number[] | Tensor,
  ...options: Given<QuantileOptions, ["dim", "keepdim"]>
): Tensor<D>;
export function quantile(...values: unknown[]): Tensor {
  return quantilesOf("quantile", quantileParameters(values), (sorted, found) =>
    where(any(isnan(sorted), { dim: -1, keepdim: true }), Number.NaN, found),
  );
}
quantile.method = "same" as const;
const quantileParameters = parametersOfQuantile("quantile");

/**
 * Computes the quantiles of the elements that are not NaN; see {@link quantile}. It is NaN if all elements are NaN.
 *
 * @returns a scalar, or with `dim` x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * nanquantile(tensor([0, Number.NaN, 1]), 0.5); // float32 0.5
 *
 * @throws {DTypeError} if x is not of a float dtype.
 * @throws {ShapeError} for an axis out of range or without elements.
 * @throws {ArgumentError} for a q outside 0 to 1.
 */
export function nanquantile<D extends DType>(
  x: Tensor<D>,
  q: number | readonly number[] | Tensor,
  ...options: Given<QuantileOptions, ["dim", "keepdim"]>
): Tensor<D>;
export function nanquantile(...values: unknown[]): Tensor {
  return quantilesOf("nanquantile", nanquantileParameters(values), (_, found) => found);
}
nanquantile.method = "same" as const;
const nanquantileParameters = parametersOfQuantile("nanquantile");

function parametersOfQuantile(operation: string) {
  return parameters(operation, {
    x: operand(aTensor),
    q: required(chancesKind),
    dim: optional(axisKind),
    keepdim: optional(flag, false),
    interpolation: named<QuantileInterpolation>(choice("linear", "lower", "higher", "midpoint", "nearest"), "linear"),
  });
}

function quantilesOf(
  operation: string,
  { x, q, dim, keepdim, interpolation }: ReturnType<ReturnType<typeof parametersOfQuantile>>,
  finished: (sorted: Tensor, found: Tensor) => Tensor,
): Tensor {
  const input = floatOperand(operation, x, undefined);
  const axis = dim === undefined ? undefined : normalizeAxis(operation, dim, x.rank);
  const chances = [q].flat();
  for (const chance of chances)
    if (!(chance >= 0 && chance <= 1))
      throw new ArgumentError(operation, "invalidProbability", `expected q to be from 0 to 1, got ${chance}`);
  if (axis === undefined || x.rank === 0 ? x.size === 0 : x.shape[axis] === 0)
    throw new ShapeError(
      operation,
      "emptyReduction",
      `${x.describe()} has no elements along the reduced axes, so ${operation} is undefined; expected at least one`,
    );
  return underName(operation, () =>
    tidy(() => {
      if (fusesQuantile(input)) {
        const skipsNan = operation === "nanquantile";
        const line = axis === undefined ? flatten(input) : input;
        const attributes = { axis: axis ?? 0, chances, interpolation, skipsNan };
        const found = toDType(quantilesAlong(operation, line, attributes), x.dtype);
        const others = keepdim
          ? x.shape.map((size, at) => (axis === undefined || at === axis ? 1 : size))
          : found.shape.slice(1);
        return reshape(found, typeof q === "number" ? others : [chances.length, ...others]);
      }
      const lines = axis === undefined || x.rank === 0 ? flatten(input) : movedim(input, axis, -1);
      const { values: sorted } = sort(lines, { dim: -1 });
      const wide = toDType(sorted, accumulationDType(sorted.dtype));
      const found = finished(detach(wide), between(wide, chances, interpolation));
      const kept = keepdim ? x.shape.map((size, at) => (axis === undefined || at === axis ? 1 : size)) : undefined;
      const first = movedim(toDType(found, x.dtype), -1, 0);
      const shape = kept ?? first.shape.slice(1);
      return reshape(first, typeof q === "number" ? shape : [chances.length, ...shape]);
    }),
  );
}

/**
 * Interpolates sorted lines at the quantiles: […, quantiles]. A position is q (n − 1) for the n elements that are not
 * NaN.
 */
function between(sorted: Tensor, chances: readonly number[], interpolation: QuantileInterpolation): Tensor {
  const numbers = sum(logicalNot(isnan(detach(sorted))), { dim: -1, keepdim: true });
  const last = toDType(clamp(sub(numbers, 1n), { min: 0n }), sorted.dtype);
  const places = mul(last, tensor([...chances], { dtype: sorted.dtype }));
  const at = (positions: Tensor): Tensor => gather(sorted, toDType(positions, "int64"), { dim: -1 });
  if (interpolation === "nearest") return at(round(places));
  const [below, above] = [floor(places), ceil(places)];
  if (interpolation === "lower") return at(below);
  if (interpolation === "higher") return at(above);
  return lerp(at(below), at(above), interpolation === "midpoint" ? 0.5 : sub(places, below));
}
