/** Shapes of convolutions: what the arguments of a call mean along each axis. */
import { checkElements } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { choice, either, listOf, someNumber } from "../../core/kinds.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** A number for every axis, or one for each. */
export type PerAxis = number | readonly number[];

/** A number for every axis, or one for each. */
export const perAxis = either(someNumber, listOf(someNumber, "a list of numbers"));
/** The same, or a word for it: as much as keeps the shape, or nothing. */
export const paddingKind = either(choice("same", "valid"), perAxis);

/** A convolution: x [batch, channels, …] with a weight [outputs, channels / groups, …]. */
export interface Geometry {
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  /** Zeros before and after, along each axis. */
  readonly padding: readonly (readonly [before: number, after: number])[];
  readonly groups: number;
  /** Of the weight. */
  readonly kernel: Shape;
  /** Of x, without batch and channels. */
  readonly input: Shape;
  /** Of the result, without batch and channels. */
  readonly output: Shape;
}

/** The numbers along `rank` axes. @throws {ArgumentError} where one is below `least`, or there are too few */
export function alongAxes(operation: string, name: string, value: PerAxis, rank: number, least: number): number[] {
  const given = typeof value === "number" ? [value] : [...value];
  const list = given.length === 1 ? new Array<number>(rank).fill(given[0]!) : given; // PyTorch repeats lists of one too
  const whole = least === 1 ? "whole numbers of at least 1" : "whole numbers of at least 0";
  if (list.length !== rank)
    throw new ArgumentError(
      operation,
      "lengthsDiffer",
      `expected ${name} to be a number, or one for each of ${rank} axes, got ${list.length}`,
    );
  for (const own of list)
    if (!Number.isSafeInteger(own) || own < least || own > MOST)
      throw new ArgumentError(operation, "invalidSize", `expected ${name} to be ${whole}, got ${own}`);
  return list;
}

/** Far more than any tensor has; a mistake beyond it would overflow what is computed from it. */
const MOST = 2 ** 31;

/** The span of a kernel's elements along an axis. */
export const spanOf = (kernel: number, dilation: number): number => dilation * (kernel - 1) + 1;

/**
 * @throws {DTypeError} where operands are not of one dtype, or are bools, or integers that are not taken. @throws
 * {ShapeError} for too many elements
 */
export function checkOperands(
  operation: string,
  operands: readonly Tensor[],
  { takesIntegers = false }: { readonly takesIntegers?: boolean } = {},
): void {
  const [first] = operands;
  for (const own of operands) {
    own.checkAlive(operation);
    const isNumber = isFloat(own.dtype) || (takesIntegers && own.dtype !== "bool");
    if (!isNumber || own.dtype !== first!.dtype)
      throw new DTypeError(
        operation,
        "dtypesDiffer",
        `expected ${takesIntegers ? "floats or integers" : "floats"} of one dtype, got ` +
          operands.map((each) => each.describe()).join(" and "),
      );
  }
  checkElements(operation, operands);
}

/** @throws {ShapeError} for a bias that is no vector of the outputs */
export function checkBias(operation: string, bias: Tensor | undefined, outputs: number): void {
  if (bias && (bias.rank !== 1 || bias.size !== outputs))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected bias to be a vector of ${outputs} elements, one for each output, got ${bias.describe()}`,
    );
}

/** @throws {ShapeError} where x has neither a batch nor is without one, or the weight has another rank */
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

/** @throws {ArgumentError} @throws {ShapeError} where channels do not come out even */
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

/** The size of a result along an axis. @throws {ShapeError} where nothing is left */
export function outputSize(
  operation: string,
  { size, span, stride, padding }: { size: number; span: number; stride: number; padding: number },
): number {
  const room = size + padding - span;
  if (room < 0)
    throw new ShapeError(
      operation,
      "kernelTooLarge",
      `expected at least ${span} elements for the kernel, got ${size} and ${padding} of padding`,
    );
  return Math.floor(room / stride) + 1;
}

/** Of what integers are computed: float64 holds them exactly up to 2^53. */
export const wideDType = (dtype: DType): DType => (isFloat(dtype) ? accumulationDType(dtype) : "float64");
