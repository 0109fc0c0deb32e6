/** Shapes of convolutions: parses the arguments of a call for each axis. */
import { checkElements } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { choice, either, listOf, someNumber } from "../../core/kinds.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** One number for all axes, or one for each. */
export type PerAxis = number | readonly number[];

/** One number for all axes, or one for each. */
export const perAxis = either(someNumber, listOf(someNumber, "a list of numbers"));
/** {@link perAxis}, or `"same"`, which keeps the shape, or `"valid"`, which means no padding. */
export const paddingKind = either(choice("same", "valid"), perAxis);

/** A convolution: x [batch, channels, …] with a weight [outputs, channels / groups, …]. */
export interface Geometry {
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  /** Zeros before and after, along each axis. */
  readonly padding: readonly (readonly [before: number, after: number])[];
  readonly groups: number;
  /** Sizes of the kernel, from the weight. */
  readonly kernel: Shape;
  /** Sizes of x, without batch and channels. */
  readonly input: Shape;
  /** Sizes of the result, without batch and channels. */
  readonly output: Shape;
}

/**
 * Returns the numbers for `rank` axes.
 * @throws {ArgumentError} if one is below `least`, or there are too few or too many
 */
export function alongAxes(operation: string, name: string, value: PerAxis, rank: number, least: number): number[] {
  const given = typeof value === "number" ? [value] : [...value];
  const list = given.length === 1 ? new Array<number>(rank).fill(given[0]) : given; // repeated, as in PyTorch
  const whole = least === 1 ? "whole numbers of at least 1" : "whole numbers of at least 0";
  if (list.length !== rank)
    throw new ArgumentError(
      operation,
      "lengthsDiffer",
      `expected ${name} to be a number, or one for each of ${rank} axes, got ${list.length}`,
    );
  for (const each of list)
    if (!Number.isSafeInteger(each) || each < least || each > MOST)
      throw new ArgumentError(operation, "invalidSize", `expected ${name} to be ${whole}, got ${each}`);
  return list;
}

/** An upper bound, far above any tensor's size. A larger value would overflow the sizes computed from it. */
const MOST = 2 ** 31;

/** Returns the number of elements that a dilated kernel spans along an axis. */
export const spanOf = (kernel: number, dilation: number): number => dilation * (kernel - 1) + 1;

/**
 * Checks the dtypes and sizes of operands. @throws {DTypeError} if dtypes differ, or are bool, or integers without
 * `takesIntegers`.
 * @throws {ShapeError} for too many elements
 */
export function checkOperands(
  operation: string,
  operands: readonly Tensor[],
  { takesIntegers = false }: { readonly takesIntegers?: boolean } = {},
): void {
  const [first] = operands;
  for (const operand of operands) {
    operand.checkAlive(operation);
    const isNumber = isFloat(operand.dtype) || (takesIntegers && operand.dtype !== "bool");
    if (!isNumber || operand.dtype !== first.dtype)
      throw new DTypeError(
        operation,
        "dtypesDiffer",
        `expected ${takesIntegers ? "floats or integers" : "floats"} of one dtype, got ` +
          operands.map((each) => each.describe()).join(" and "),
      );
  }
  checkElements(operation, operands);
}

/** Checks a bias. @throws {ShapeError} for a bias that is not a vector with one element per output */
export function checkBias(operation: string, bias: Tensor | undefined, outputs: number): void {
  if (bias && (bias.rank !== 1 || bias.size !== outputs))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected bias to be a vector of ${outputs} elements, one for each output, got ${bias.describe()}`,
    );
}

/** Checks the ranks of x and the weight. @throws {ShapeError} if x or the weight has the wrong rank */
export function checkRanks(operation: string, x: Tensor, weight: Tensor, rank: number): void {
  const axes = ["length", "height, width", "depth, height, width"][rank - 1];
  if (x.rank !== rank + 2 && x.rank !== rank + 1)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected x to be [batch, channels, ${axes}] or [channels, ${axes}], got ${x.describe()}`,
    );
  if (weight.rank !== rank + 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected a weight with ${rank + 2} axes, the last for ${axes}, got ${weight.describe()}`,
    );
}

/**
 * Checks the number of groups. @throws {ArgumentError} for an invalid number of groups.
 * @throws {ShapeError} if groups do not divide channels or outputs
 */
export function checkGroups(operation: string, groups: number, channels: number, outputs: number): void {
  if (!Number.isSafeInteger(groups) || groups < 1)
    throw new ArgumentError(
      operation,
      "invalidGroups",
      `expected groups to be a whole number of at least 1, got ${groups}`,
    );
  if (channels % groups !== 0 || outputs % groups !== 0)
    throw new ShapeError(
      operation,
      "unevenGroups",
      `expected ${groups} groups to divide ${channels} channels and ${outputs} outputs`,
    );
}

/** Returns the size of a result along an axis. @throws {ShapeError} if the kernel is larger than the padded x */
export function outputSize(
  operation: string,
  { size, span, stride, padding }: { size: number; span: number; stride: number; padding: number },
): number {
  const room = size + padding - span;
  if (room < 0)
    throw new ShapeError(
      operation,
      "kernelTooLarge",
      `expected at least ${span} elements for the kernel, got ${size} and ${padding} zeros of padding`,
    );
  return Math.floor(room / stride) + 1;
}

/** Returns the dtype of sums. Integers use float64, which is exact up to 2^53. */
export const wideDType = (dtype: DType): DType => (isFloat(dtype) ? accumulationDType(dtype) : "float64");
