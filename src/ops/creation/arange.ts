import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type DType, integerRange, isFloat, isInteger } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, create, creationOptions } from "./create.ts";
import { rangePrimitive, wholeRangePrimitive } from "./range.ts";
import type { DTypeOfValue } from "./tensor.ts";

type Bound = number | bigint;
type Typed<D extends DType> = CreationOptions<D> & { dtype: D };
type Untyped = CreationOptions<never>;

/**
 * Returns the numbers from `start` to `end` (exclusive) in steps of `step`: start + i · step, computed in float64
 * (integers exactly) and rounded once to the dtype. There are ⌈(end − start) / step⌉ of them.
 *
 * @param start default 0
 * @param step default 1; not 0; negative to go down
 * @param options `dtype`: default float32, or int64 if an argument is a bigint
 * @returns [⌈(end − start) / step⌉]
 *
 * @example
 * arange(4); // float32 [0, 1, 2, 3]
 * arange(4n); // int64 [0, 1, 2, 3]
 * arange(1, 2, 0.25); // float32 [1, 1.25, 1.5, 1.75]
 * arange(5, 0, -2, { dtype: "int32" }); // int32 [5, 3, 1]
 *
 * @throws {ArgumentError} for a step of 0, a step away from the end, NaN or infinity.
 * @throws {DTypeError} if an integer dtype can't hold the numbers.
 * @throws {ShapeError} for too many numbers.
 */
export function arange<D extends DType>(end: Bound, options: Typed<D>): Tensor<D>;
export function arange<D extends DType>(start: Bound, end: Bound, options: Typed<D>): Tensor<D>;
export function arange<D extends DType>(start: Bound, end: Bound, step: Bound, options: Typed<D>): Tensor<D>;
export function arange<B extends Bound>(end: B, options?: Untyped): Tensor<DTypeOfValue<B>>;
export function arange<A extends Bound, B extends Bound>(
  start: A,
  end: B,
  options?: Untyped,
): Tensor<DTypeOfValue<A | B>>;
export function arange<A extends Bound, B extends Bound, C extends Bound>(
  start: A,
  end: B,
  step: C,
  options?: Untyped,
): Tensor<DTypeOfValue<A | B | C>>;
export function arange(...values: unknown[]): Tensor {
  const { bounds, dtype = dtypeOf(bounds), ...options } = arangeParameters(values);
  const [start, end] = bounds.length === 1 ? [0, bounds[0]] : [bounds[0], bounds[1]];
  const step = bounds[2] ?? 1;
  for (const [name, value] of Object.entries({ start, end, step })) checkFinite(name, value);
  checkCreation("arange", [], dtype, options);
  return isFloat(dtype)
    ? floatRange(Number(start), Number(end), Number(step), dtype, options)
    : wholeRange(start, end, step, dtype, options);
}

const dtypeOf = (bounds: readonly Bound[]): DType =>
  bounds.some((bound) => typeof bound === "bigint") ? "int64" : "float32";

const isBound = (value: unknown): value is Bound => typeof value === "number" || typeof value === "bigint";

const arangeParameters = parameters("arange", {
  bounds: operand<readonly Bound[]>({
    expected: "end, start and end, or start, end and step, as numbers or bigints",
    starts: isBound,
    parse: (value) =>
      Array.isArray(value) && value.length <= 3 && value.every(isBound) && value.length > 0 ? value : undefined,
    error: [ArgumentError, "invalidBound"],
  }),
  ...creationOptions,
});

function floatRange(start: number, end: number, step: number, dtype: DType, options: CreationOptions): Tensor {
  checkDirection(step, end - start);
  const count = checkCount(Math.ceil((end - start) / step));
  return create("arange", rangePrimitive, [count], dtype, { dtype, start, step, end, forward: count }, options);
}

function wholeRange(from: Bound, to: Bound, by: Bound, dtype: DType, options: CreationOptions): Tensor {
  const [start, end, step] = tupleOf(
    ([from, to, by] as const).map((value) => whole(value, dtype)),
    3,
  );
  const span = end - start;
  checkDirection(Number(step), Number(span));
  const toward = step > 0n ? 1n : -1n;
  const count = checkCount(Number((span + step - toward) / step));
  if (count > 0) for (const value of [start, start + BigInt(count - 1) * step]) checkHeld(value, dtype);
  return create("arange", wholeRangePrimitive, [count], dtype, { start, step, remainder: 0n, divisor: 1n }, options);
}

function checkFinite(name: string, value: Bound): void {
  if (typeof value === "bigint" || Number.isFinite(value)) return;
  throw new ArgumentError("arange", "notFinite", `expected ${name} to be a finite number, got ${value}`);
}

function checkDirection(step: number, span: number): void {
  if (step === 0) throw new ArgumentError("arange", "zeroStep", "expected a step other than 0, got 0");
  if (span * step < 0)
    throw new ArgumentError(
      "arange",
      "stepAway",
      `a step of ${step} leads away from the end, which is ${span} from the start; change the sign of the step`,
    );
}

function checkCount(count: number): number {
  if (Number.isSafeInteger(count)) return count;
  throw new ShapeError(
    "arange",
    "invalidShape",
    `expected a range whose length a tensor can have, got ${count} numbers`,
  );
}

function whole(value: Bound, dtype: DType): bigint {
  if (typeof value === "bigint" || Number.isInteger(value)) return BigInt(value);
  throw new DTypeError(
    "arange",
    "doesNotFit",
    `expected whole numbers for start, end and step of ${dtype}, got ${value}; pass { dtype: "float32" }`,
  );
}

function checkHeld(value: bigint, dtype: DType): void {
  if (!isInteger(dtype)) throw new DTypeError("arange", "unsupportedDType", `expected a numeric dtype, got ${dtype}`);
  const [least, most] = integerRange(dtype);
  if (value >= least && value <= most) return;
  throw new DTypeError("arange", "doesNotFit", `expected numbers from ${least} to ${most} for ${dtype}, got ${value}`);
}
