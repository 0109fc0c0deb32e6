/** Cumulative maximum, minimum and log-sum-exp along an axis. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { checkElements, executeMany, underName } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { firstBackend } from "../../backend/registry.ts";
import { type Along, axis as axisKind } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { computationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor, expectNumbers } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { arange } from "../creation/arange.ts";
import { ge, le } from "../elementwise/comparison.ts";
import { logaddexp } from "../elementwise/logaddexp.ts";
import { logicalAnd, logicalNot, logicalOr } from "../elementwise/logic.ts";
import { isnan } from "../elementwise/predicates.ts";
import { where } from "../elementwise/where.ts";
import { gather } from "../indexing/gather.ts";
import { scatterAdd } from "../indexing/scatter_add.ts";
import { cat } from "../join/cat.ts";
import type { ValuesAndIndices } from "../reduction/extrema.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { runningExtremumPrimitive } from "./extremum_primitive.ts";
import { runningLogarithms } from "./logcumsumexp.cpu.ts";

/** Options of {@link cummax}, {@link cummin} and {@link logcumsumexp}. */
export interface RunningOptions {
  /** The axis; negative counts from the end. */
  dim: number;
}

/**
 * Computes the cumulative maximum along an axis, and its index; of equal elements, the last. From a NaN on, results are
 * NaN. The gradient flows to the element at the index.
 *
 * @returns values and indices int64, both of x's shape
 *
 * @example
 * cummax(tensor([1, 3, 2, 3]), 0); // values [1, 3, 3, 3], indices [0, 1, 1, 3]
 *
 * @throws {ShapeError} for an axis out of range. @throws {DTypeError} for bools.
 */
export function cummax<D extends DType>(x: Tensor<D>, ...options: Along<RunningOptions>): ValuesAndIndices<D>;
export function cummax(...values: unknown[]): ValuesAndIndices<DType> {
  return runningExtremum("cummax", cummaxParameters(values), false);
}
cummax.method = "declared" as const;
const cummaxParameters = runningParameters("cummax");

/**
 * Computes the cumulative minimum along an axis, and its index: see {@link cummax}.
 *
 * @returns values and indices int64, both of x's shape
 *
 * @example
 * cummin(tensor([3, 1, 2, 1]), 0); // values [3, 1, 1, 1], indices [0, 1, 1, 3]
 *
 * @throws {ShapeError} for an axis out of range. @throws {DTypeError} for bools.
 */
export function cummin<D extends DType>(x: Tensor<D>, ...options: Along<RunningOptions>): ValuesAndIndices<D>;
export function cummin(...values: unknown[]): ValuesAndIndices<DType> {
  return runningExtremum("cummin", cumminParameters(values), true);
}
cummin.method = "declared" as const;
const cumminParameters = runningParameters("cummin");

function runningParameters(operation: string) {
  return parameters(operation, { x: operand(aTensor), dim: required(axisKind) });
}

function runningExtremum(
  operation: string,
  { x, dim }: ReturnType<ReturnType<typeof runningParameters>>,
  isMinimum: boolean,
): ValuesAndIndices<DType> {
  const axis = normalizeAxis(operation, dim, x.rank);
  expectNumbers(operation, x);
  checkElements(operation, [x]);
  const lines = x.rank === 0 ? reshape(x, [1]) : x;
  const { values, indices } =
    firstBackend() === "cpu"
      ? fusedExtremum(operation, lines, axis, isMinimum)
      : composedExtremum(operation, lines, axis, isMinimum);
  return x.rank > 0 ? { values, indices } : { values: reshape(values, []), indices: reshape(indices, []) };
}

function fusedExtremum(operation: string, x: Tensor, axis: number, isMinimum: boolean): ValuesAndIndices<DType> {
  const { shape, dtype } = x;
  const [values, indices] = executeMany(
    runningExtremumPrimitive,
    [x],
    [
      { shape, dtype },
      { shape, dtype: "int64" },
    ],
    { axis, isMinimum },
    operation,
  );
  record(operation, [x], [values], [indices], ([gradient], [saved]) => [
    scatterAdd(filled(shape, gradient.dtype, 0), saved, gradient, { dim: axis }),
  ]);
  return { values, indices };
}

/** Composes a running extremum of other operations. */
function composedExtremum(operation: string, x: Tensor, axis: number, isMinimum: boolean): ValuesAndIndices<DType> {
  return underName(operation, () =>
    tidy(() => {
      const indices = noGrad(() => placesOfExtrema(x, axis, isMinimum ? le : ge));
      return { values: gather(x, indices, { dim: axis }), indices };
    }),
  );
}

/**
 * Scans by doubling: after step s, each position has the extremum of the 2ˢ elements up to it (W. D. Hillis and G. L.
 * Steele, "Data Parallel Algorithms", 1986).
 */
function placesOfExtrema(x: Tensor, axis: number, isBetter: (a: Tensor, b: Tensor) => Tensor): Tensor<"int64"> {
  const size = x.shape[axis];
  const along = x.shape.map((_, at) => (at === axis ? size : 1));
  let best = x;
  let places = expand(reshape(arange(0, size, { dtype: "int64" }), along), x.shape);
  for (let step = 1; step < size; step *= 2) {
    const part = <D extends DType>(tensor: Tensor<D>, start: number) => narrow(tensor, axis, start, size - step);
    const [later, earlier] = [part(best, step), part(best, 0)];
    const stays = isFloat(x.dtype)
      ? logicalOr(isnan(later), logicalAnd(isBetter(later, earlier), logicalNot(isnan(earlier))))
      : isBetter(later, earlier);
    const joined = <D extends DType>(tensor: Tensor<D>): Tensor<D> =>
      cat([narrow(tensor, axis, 0, step), where(stays, part(tensor, step), part(tensor, 0)) as Tensor<D>], axis);
    [best, places] = [joined(best), joined(places)];
  }
  return places;
}

/**
 * Computes the cumulative log Σ exp(x) along an axis, without overflow.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * logcumsumexp(tensor([0, 0, 0]), 0); // float32 [0, 0.69314718, 1.0986123]
 *
 * @throws {ShapeError} for an axis out of range. @throws {DTypeError} for integers and bools.
 */
export function logcumsumexp<D extends DType>(x: Tensor<D>, ...options: Along<RunningOptions>): Tensor<D>;
export function logcumsumexp(...values: unknown[]): Tensor {
  const { x, dim } = logcumsumexpParameters(values);
  const input = floatOperand("logcumsumexp", x, undefined, true);
  const axis = normalizeAxis("logcumsumexp", dim, x.rank);
  return underName("logcumsumexp", () =>
    tidy(() => {
      if (x.rank > 0 && isFloat(x.dtype) && fusesOnCpu(x)) return runningLogarithms(x, axis);
      const size = x.shape[axis] ?? 1;
      let result: Tensor = toDType(input, computationDType(x.dtype));
      for (let step = 1; step < size; step *= 2) {
        const part = (start: number): Tensor => narrow(result, axis, start, size - step);
        result = cat([narrow(result, axis, 0, step), logaddexp(part(step), part(0))], axis);
      }
      return toDType(result, x.dtype);
    }),
  );
}
logcumsumexp.method = "same" as const;
const logcumsumexpParameters = runningParameters("logcumsumexp");
