import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { emptyFor } from "../../backend/allocation.ts";
import { execute } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { axes as axesKind, either, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { copyInto } from "../copy/copy.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { hasPadKernel, padPrimitive } from "./pad.cpu.ts";

/** Options of {@link roll}. */
export interface RollOptions {
  /** The axes, one for each shift. Default: x is flattened, rolled and reshaped. */
  dims?: number | readonly number[];
}

/**
 * Returns a copy with elements shifted along axes; elements that leave at one end enter at the other. Each element is
 * copied once.
 *
 * @param shifts the number of elements to shift by; negative values shift toward the front. Several shifts of one axis
 * are added
 *
 * @example
 * roll(tensor([1, 2, 3, 4]), 1); // [4, 1, 2, 3]
 *
 * @throws {ShapeError} for an axis out of range, or if there is not one shift for each axis.
 * @throws {ArgumentError} for an empty list of shifts, or a fractional shift.
 */
export function roll<D extends DType>(
  x: Tensor<D>,
  shifts: number | readonly number[],
  ...options: Given<RollOptions, ["dims"]>
): Tensor<D>;
export function roll(...values: unknown[]): Tensor {
  const { x, shifts, dims } = rollParameters(values);
  const given = [shifts].flat();
  if (given.length === 0) throw new ArgumentError("roll", "invalidShift", "expected at least one shift, got []");
  for (const shift of given)
    if (!Number.isSafeInteger(shift))
      throw new ArgumentError("roll", "invalidShift", `expected a shift to be a whole number, got ${shift}`);
  if (dims === undefined && given.length === 1) return reshape(rolled(flatten(x), [given[0]]), x.shape);
  const axes = [dims ?? []].flat().map((dim) => normalizeAxis("roll", dim, x.rank, "dims"));
  if (axes.length !== given.length)
    throw new ShapeError(
      "roll",
      "lengthsDiffer",
      `expected one shift for each of ${axes.length} dims, got ${given.length} shifts`,
    );
  return rolled(
    x,
    x.shape.map((_, axis) => given.reduce((sum, shift, at) => sum + (axes[at] === axis ? shift : 0), 0)),
  );
}
roll.method = "same" as const;
const rollParameters = parameters("roll", {
  x: operand(aTensor),
  shifts: required(either(someNumber, listOf(someNumber, "a list of numbers"))),
  dims: optional(axesKind),
});

/** Rolls each axis by its shift. */
function rolled<D extends DType>(x: Tensor<D>, shifts: readonly number[]): Tensor<D> {
  const output = x.size > 0 && goesAtOnce(x, shifts) && hasPadKernel(x) ? inOnePass(x, shifts) : inBlocks(x, shifts);
  const back = shifts.map((shift) => -shift);
  record("roll", [x], [output], [], ([gradient]) => [rolled(gradient, back)]);
  return output;
}

/** Many shorter rows are copied faster in blocks, one for each part of a row. */
const [SHORT, MANY] = [32, 1 << 14];

/** Whether rows, from the last axis that is rolled on, are long or few. */
function goesAtOnce({ shape, size }: Tensor, shifts: readonly number[]): boolean {
  const last = shifts.findLastIndex((shift, axis) => modulo(shift, shape[axis]) !== 0);
  return size <= MANY || elementCount(shape.slice(Math.max(last, 0))) >= SHORT;
}

/** Rolling an axis is circular padding before it that removes as many elements after it. */
function inOnePass<D extends DType>(x: Tensor<D>, shifts: readonly number[]): Tensor<D> {
  const before = x.shape.map((size, axis) => modulo(shifts[axis], size));
  const after = before.map((shift) => 0 - shift);
  return execute(padPrimitive, [x], x.shape, x.dtype, { mode: "circular", before, after }, "roll");
}

function inBlocks<D extends DType>(x: Tensor<D>, shifts: readonly number[]): Tensor<D> {
  const output = emptyFor([x], x.shape, x.dtype, "roll");
  tidy(() => noGrad(() => copyRolled(output, x, shifts, 0)));
  return output;
}

/** Copies the block that shifts and the block that wraps around, axis by axis. */
function copyRolled(target: Tensor, source: Tensor, shifts: readonly number[], axis: number): void {
  if (source.size === 0) return;
  if (axis === source.rank) {
    copyInto(target, source);
    return;
  }
  const size = source.shape[axis];
  const shift = modulo(shifts[axis], size);
  for (const [from, to, length] of [
    [0, shift, size - shift],
    [size - shift, 0, shift],
  ] as const)
    if (length > 0) copyRolled(narrow(target, axis, to, length), narrow(source, axis, from, length), shifts, axis + 1);
}

const modulo = (value: number, size: number): number => ((value % size) + size) % size;
