/** Differences of neighbors along an axis, and integrals by trapezoids. */
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { computationDType, type DType, hasGradients, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { ne } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { cat } from "../join/cat.ts";
import { sum } from "../reduction/sum.ts";
import { reshape } from "../view/reshape.ts";
import { axisOf, narrow, select } from "../view/slice.ts";
import { cumsum } from "./cumsum.ts";
import { fusesNeighbors, neighbors } from "./trapezoid.cpu.ts";

/** Options of {@link diff}. */
export interface DiffOptions {
  /** The number of times to take differences. Default 1. */
  n?: number | undefined;
  /** The axis. Default −1, the last. */
  dim?: number | undefined;
  /** Elements to insert before x along the axis; ignored if n is 0, as in PyTorch. */
  prepend?: Tensor | undefined;
  /** Elements to insert after x along the axis; ignored if n is 0. */
  append?: Tensor | undefined;
}

/**
 * Computes the differences of neighbors along an axis, x[i + 1] − x[i], n times. For bools it tests whether neighbors
 * differ.
 *
 * @example
 * diff(tensor([1, 4, 9])); // float32 [3, 5]
 *
 * @throws {ShapeError} for an axis out of range, or if `prepend` or `append` do not match x. @throws {DTypeError} if
 * their dtype differs from x's. @throws {ArgumentError} if n is negative or not an integer.
 */
export function diff<D extends DType>(
  x: Tensor<D>,
  ...options: Given<DiffOptions, ["n", "dim", "prepend", "append"]>
): Tensor<D>;
export function diff(...values: unknown[]): Tensor {
  const { x, n, dim, prepend, append } = diffParameters(values);
  const axis = axisOf("diff", x, dim);
  if (!Number.isInteger(n) || n < 0)
    throw new ArgumentError("diff", "invalidCount", `expected n to be a whole number of at least 0, got ${n}`);
  const parts = [prepend, x, append].filter((part) => part !== undefined);
  for (const part of parts) checkNeighbor(x, part, axis);
  return underName("diff", () =>
    tidy(() => {
      let result = n > 0 && parts.length === 1 ? x : cat(n === 0 ? [x] : parts, axis);
      for (let time = 0; time < n && result.shape[axis] > 0; time++) result = differences(result, axis);
      return result;
    }),
  );
}
diff.method = "same" as const;
const diffParameters = parameters("diff", {
  x: operand(aTensor),
  n: optional(someNumber, 1),
  dim: optional(axisKind, -1),
  prepend: optional(aTensor),
  append: optional(aTensor),
});

function checkNeighbor(x: Tensor, part: Tensor, axis: number): void {
  if (part.dtype !== x.dtype)
    throw new DTypeError("diff", "dtypesDiffer", `expected the dtype of ${x.describe()}, got ${part.describe()}`);
  if (part.rank === x.rank && part.shape.every((size, at) => at === axis || size === x.shape[at])) return;
  throw new ShapeError(
    "diff",
    "shapesDiffer",
    `expected the shape of ${x.describe()} except along axis ${axis}, got ${part.describe()}`,
  );
}

/** The longest rows whose differences one native call computes, each by one thread. */
const MOST_FUSED = 4096;

function differences(x: Tensor, axis: number): Tensor {
  // along other axes, rows of the two views are long; those of long rows are divided among threads
  if (axis === x.rank - 1 && x.shape[axis] <= MOST_FUSED && fusesNeighbors(x, axis))
    return neighbors("diff", x, { axis, distance: 1, function: "differences" });
  const length = x.shape[axis] - 1;
  const [before, after] = [narrow(x, axis, 0, length), narrow(x, axis, 1, length)];
  return x.dtype === "bool" ? ne(after, before) : sub(after, before);
}

/** Options of {@link trapezoid} and {@link cumulativeTrapezoid}. */
export interface TrapezoidOptions {
  /** The distance between neighbors, if `x` is not given. Default 1. */
  dx?: number | undefined;
  /** The axis. Default −1, the last. */
  dim?: number | undefined;
  /** The coordinates of y along the axis. */
  x?: Tensor | undefined;
}

/**
 * Integrates along an axis by the trapezoidal rule: Σ (y[i] + y[i + 1]) / 2 · (x[i + 1] − x[i]).
 *
 * @param y floats or integers; integers become float32
 * @param x the coordinates of y along the axis: a vector, or a shape that broadcasts to y's; by default `dx` apart
 *
 * @example
 * trapezoid(tensor([1, 2, 3])); // float32 4
 * trapezoid(tensor([1, 2, 3]), tensor([0, 2, 4])); // float32 8
 *
 * @throws {DTypeError} for bools. @throws {ShapeError} for an axis out of range, or if shapes do not match.
 */
export function trapezoid<D extends DType>(y: Tensor<D>, options?: TrapezoidOptions): Tensor<FloatOf<D>>;
export function trapezoid<D extends DType>(
  y: Tensor<D>,
  x: Tensor<D>,
  options?: Omit<TrapezoidOptions, "dx" | "x">,
): Tensor<FloatOf<D>>;
export function trapezoid(...values: unknown[]): Tensor {
  return areas("trapezoid", trapezoidParameters(values), "sum");
}
trapezoid.method = "float" as const;
const trapezoidParameters = areaParameters("trapezoid");

/**
 * Computes the cumulative integral along an axis by the trapezoidal rule, from the second element on: see {@link
 * trapezoid}.
 *
 * @param y […, n, …]
 * @returns […, n − 1, …]
 *
 * @example
 * cumulativeTrapezoid(tensor([1, 2, 3])); // float32 [1.5, 4]
 *
 * @throws {DTypeError} for bools. @throws {ShapeError} for an axis out of range, or if shapes do not match.
 */
export function cumulativeTrapezoid<D extends DType>(y: Tensor<D>, options?: TrapezoidOptions): Tensor<FloatOf<D>>;
export function cumulativeTrapezoid<D extends DType>(
  y: Tensor<D>,
  x: Tensor<D>,
  options?: Omit<TrapezoidOptions, "dx" | "x">,
): Tensor<FloatOf<D>>;
export function cumulativeTrapezoid(...values: unknown[]): Tensor {
  return areas("cumulativeTrapezoid", cumulativeParameters(values), "cumsum");
}
cumulativeTrapezoid.method = "float" as const;
const cumulativeParameters = areaParameters("cumulativeTrapezoid");

function areaParameters(operation: string) {
  return parameters(operation, {
    y: operand(aTensor),
    x: optional(aTensor),
    dx: named(someNumber, 1),
    dim: named(axisKind, -1),
  });
}

const combined = {
  sum: (each: Tensor, axis: number) => sum(each, { dim: axis }),
  cumsum: (each: Tensor, axis: number) => cumsum(each, { dim: axis }),
} as const;

/** Computes the areas between neighbors in the accumulation dtype and combines them with `together`. */
function areas(
  operation: string,
  { dx, dim, ...given }: ReturnType<ReturnType<typeof areaParameters>>,
  together: keyof typeof combined,
): Tensor {
  const [y, x] = promoteOperands(operation, given.x ? [given.y, given.x] : [given.y], "numbers");
  const axis = axisOf(operation, y, dim);
  const places = x && (x.rank === 1 ? alongAxis(x, axis, y.rank) : x);
  if (places) broadcastShapes(operation, y.shape, places.shape);
  if (places && (places.rank !== y.rank || places.shape[axis] !== y.shape[axis]))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected a coordinate for each element of ${y.describe()} along axis ${axis}, got ${x?.describe()}`,
    );
  return underName(operation, () =>
    tidy(() => {
      if (!places && fusesNeighbors(y, axis)) {
        const name = together === "cumsum" ? "integrals" : "integral";
        return neighbors(operation, y, { axis, distance: dx, function: name });
      }
      const [values, at] = [y, places].map((each) =>
        each && hasGradients(each.dtype) ? toDType(each, computationDType(each.dtype)) : each,
      );
      const length = Math.max(y.shape[axis] - 1, 0);
      if (together === "sum" && !at && isFloat(y.dtype) && length > 0)
        return toDType(mul(sumOfMeans(values!, axis), dx), y.dtype);
      const [later, earlier] = [Math.min(1, y.shape[axis]), 0].map((first) => narrow(values!, axis, first, length));
      if (!at && isFloat(y.dtype)) {
        const means = mul(add(later, earlier), dx / 2);
        return toDType(combined[together](means, axis), y.dtype);
      }
      // integers wrap around before they become floats, as in PyTorch
      const twice = combined[together](mul(add(later, earlier), at ? differences(at, axis) : dx), axis);
      return toDType(div(twice, 2), hasGradients(y.dtype) ? y.dtype : "float32");
    }),
  );
}

/** Sums the means of neighbors along an axis: the elements between the ends, and half of each end. */
function sumOfMeans(y: Tensor, axis: number): Tensor {
  const last = y.shape[axis] - 1;
  const within = sum(narrow(y, axis, 1, last - 1), { dim: axis });
  return add(within, mul(add(select(y, axis, 0), select(y, axis, last)), 0.5));
}

/** Reshapes a vector to lie along an axis of a tensor of rank `rank`. */
const alongAxis = (vector: Tensor, axis: number, rank: number): Tensor =>
  reshape(
    vector,
    Array.from({ length: rank }, (_, at) => (at === axis ? vector.size : 1)),
  );
