import { needsGradient, record } from "../../autograd/record.ts";
import { emptyFor } from "../../backend/allocation.ts";
import { checkElements, execute, underName } from "../../backend/dispatch.ts";
import type { NameOf } from "../../backend/enumeration.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { firstBackend } from "../../backend/registry.ts";
import { lastElement } from "../../core/collections.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { choice, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aScalar, aTensor } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { checkShape, elementCount, formatShape, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { copyInto, copyOf } from "../copy/copy.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { expand } from "../view/expand.ts";
import { narrow } from "../view/slice.ts";
import { cat } from "./cat.ts";
import { flip } from "./flip.ts";
import { hasPadKernel, type PadAttributes, padGradientPrimitive, padModes, padPrimitive } from "./pad.cpu.ts";

/** Options of {@link pad}. */
export interface PadOptions {
  /** The value of new elements in mode `"constant"`. Default 0. */
  value?: Scalar | undefined;
  /**
   * The source of new elements: `"constant"` uses the value, `"reflect"` mirrors x without repeating the border,
   * `"replicate"` repeats the border, `"circular"` wraps around to the other end. Default `"constant"`.
   */
  mode?: PadMode;
}

/** The source of the elements that {@link pad} adds. */
export type PadMode = NameOf<typeof padModes>;

/**
 * Returns a copy with elements added at both ends of the last axes.
 *
 * @param padding the number of elements before and after the last axis, then the one before it, and so on; a negative
 * number crops
 *
 * @example
 * pad(tensor([[1, 2]]), [1, 0, 0, 1], { value: 9 }); // [[9, 1, 2], [9, 9, 9]]
 *
 * @throws {ShapeError} for an odd count, more pairs than axes, or cropping more than the axis has.
 * @throws {DTypeError} for a value that `x`'s dtype can't hold.
 * @throws {ArgumentError} for an unknown mode, a value with a mode other than `"constant"`, or more padding than there
 * are elements to reflect or repeat.
 */
export function pad<D extends DType>(
  x: Tensor<D>,
  padding: readonly number[],
  ...options: Given<PadOptions, ["mode", "value"]>
): Tensor<D>;
export function pad(...values: unknown[]): Tensor {
  const { x, padding, mode, ...given } = padParameters(values);
  const value = given.value ?? 0;
  const { before, after } = paddingOf(x, padding);
  if (mode !== "constant" && given.value !== undefined)
    throw new ArgumentError("pad", "unusedValue", `expected no value in mode "${mode}", got ${given.value}`);
  if (mode !== "constant") return repeatedBorder(x, before, after, mode);
  const filling = scalarTensor(value, x.dtype, "pad");
  const cropped = crop(x, before, after);
  const added = (sizes: readonly number[]) => sizes.map((size) => Math.max(size, 0));
  return padded(cropped, added(before), added(after), filling);
}
pad.method = "same" as const;
const padParameters = parameters("pad", {
  x: operand(aTensor),
  padding: required(listOf(someNumber, "a list of numbers")),
  mode: optional(choice(...padModes.names), "constant"),
  value: optional(aScalar),
});

type Border = Exclude<PadMode, "constant">;

/** Pads along each axis with elements of x. */
function repeatedBorder(x: Tensor, before: readonly number[], after: readonly number[], mode: Border): Tensor {
  checkElements("pad", [x]);
  return underName("pad", () =>
    tidy(() => {
      const cropped = crop(x, before, after);
      const added = (sizes: Sizes): Sizes => sizes.map((size) => Math.max(size, 0));
      const [leads, tails] = [added(before), added(after)];
      for (let axis = 0; axis < x.rank; axis++) checkBorder(cropped.shape[axis], leads[axis], tails[axis], mode);
      if (hasPadKernel(x)) return inOnePass(cropped, { mode, before: leads, after: tails });
      if (isWrittenInPlace(x)) return bordered(cropped, leads, tails, mode);
      const result = cropped.shape.reduce(
        (partial, _size, axis) => borderAlong(partial, axis, leads[axis], tails[axis], mode),
        cropped,
      );
      return result === cropped ? copyOf("pad", result) : result;
    }),
  );
}

type Sizes = readonly number[];

const paddedSizes = ({ shape }: Tensor, before: Sizes, after: Sizes): number[] =>
  plainList(shape).map((size, axis) => before[axis] + size + after[axis]);

/** Pads in one call. The gradient of padding with copies is the sum over the copies, and vice versa. */
function inOnePass(x: Tensor, attributes: PadAttributes): Tensor {
  const shape = checkShape("pad", paddedSizes(x, attributes.before, attributes.after));
  const output = execute(padPrimitive, [x], shape, x.dtype, attributes);
  record("pad", [x], [output], [], ([gradient]) => [withoutCopies(gradient, attributes)]);
  return output;
}

function withoutCopies(gradient: Tensor, attributes: PadAttributes): Tensor {
  const { before, after } = attributes;
  const shape = gradient.shape.map((size, axis) => size - before[axis] - after[axis]);
  const output = execute(padGradientPrimitive, [gradient], shape, gradient.dtype, attributes);
  record("padGradient", [gradient], [output], [], ([second]) => [inOnePass(second, attributes)]);
  return output;
}

/**
 * Whether borders are copied from the result itself. A device can't do this: it may have to repeat a copy after the
 * copied elements have changed.
 */
const isWrittenInPlace = (x: Tensor): boolean =>
  firstBackend() !== "metal" && !needsGradient(x) && !isComplex(x.dtype) && liftingOf([x], undefined) === undefined;

/** Copies x into the result, then its borders along each axis, from the last axis to the first. */
function bordered(x: Tensor, leads: Sizes, tails: Sizes, mode: Border): Tensor {
  const sizes = x.shape;
  const output = emptyFor([x], checkShape("pad", paddedSizes(x, leads, tails)), x.dtype, "pad");
  if (x.size === 0) return output;
  /** The part of the result that is complete along the axes from `end` on. */
  const within = (end: number): Tensor =>
    sizes.slice(0, end).reduce<Tensor>((view, size, axis) => narrow(view, axis, leads[axis], size), output);
  copyInto(within(sizes.length), x);
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    const [lead, size, tail] = [leads[axis], sizes[axis], tails[axis]];
    if (lead === 0 && tail === 0) continue;
    const whole = within(axis);
    const [before, after] = sidesOf(narrow(whole, axis, lead, size), axis, lead, tail, mode);
    if (lead > 0) copyInto(narrow(whole, axis, 0, lead), before);
    if (tail > 0) copyInto(narrow(whole, axis, lead + size, tail), after);
  }
  return output;
}

/** Returns views of x with the elements before and after it along an axis. */
function sidesOf(x: Tensor, axis: number, lead: number, tail: number, mode: Border): [Tensor, Tensor] {
  const size = x.shape[axis];
  const part = (start: number, count: number): Tensor => narrow(x, axis, start, count);
  const end = (start: number, count: number): Tensor => expand(part(start, 1), x.shape.with(axis, count));
  if (mode === "replicate") return [end(0, lead), end(size - 1, tail)];
  if (mode === "circular") return [part(size - lead, lead), part(0, tail)];
  return [reversed(part(Math.min(1, size - 1), lead), axis), reversed(part(size - 1 - tail, tail), axis)];
}

/** A view with an axis reversed. Only copies accept its negative stride. */
function reversed({ storage, dtype, shape, strides, offset }: Tensor, axis: number): Tensor {
  const last = Math.max(shape[axis] - 1, 0) * strides[axis];
  return new Tensor(storage, dtype, shape, strides.with(axis, -strides[axis]), offset + last);
}

function checkBorder(size: number, lead: number, tail: number, mode: Border): void {
  if (lead === 0 && tail === 0) return;
  const most = { reflect: Math.max(size - 1, 0), circular: size, replicate: size === 0 ? 0 : Infinity }[mode];
  if (Math.max(lead, tail) > most)
    throw new ArgumentError(
      "pad",
      "invalidPadding",
      `expected padding of at most ${most} for mode "${mode}" of an axis of ${size} elements, got ` +
        Math.max(lead, tail),
    );
}

function borderAlong(x: Tensor, axis: number, lead: number, tail: number, mode: Border): Tensor {
  if (lead === 0 && tail === 0) return x;
  const size = x.shape[axis];
  const part = (start: number, count: number): Tensor => narrow(x, axis, start, count);
  const sides = {
    reflect: () => [flip(part(1, lead), axis), flip(part(size - 1 - tail, tail), axis)],
    circular: () => [part(size - lead, lead), part(0, tail)],
    replicate: () => [
      expand(part(0, 1), checkShape("pad", x.shape.with(axis, lead))),
      expand(part(size - 1, 1), checkShape("pad", x.shape.with(axis, tail))),
    ],
  }[mode]();
  return cat([sides[0], x, sides[1]], axis);
}

/** Returns the padding of every axis. */
function paddingOf(x: Tensor, padding: readonly number[]): { before: number[]; after: number[] } {
  const wrong = padding.length % 2 !== 0 || padding.length / 2 > x.rank || !padding.every(Number.isSafeInteger);
  if (wrong)
    throw new ShapeError(
      "pad",
      "invalidPadding",
      `expected two whole numbers for each of at most ${x.rank} axes of ${x.describe()}, got ${formatShape(padding)}`,
    );
  const sizes = plainList(x.shape);
  const side = (which: 0 | 1) => sizes.map((_, axis) => padding[2 * (sizes.length - 1 - axis) + which] ?? 0);
  const [before, after] = [side(0), side(1)];
  const left = sizes.map((size, axis) => size + Math.min(before[axis], 0) + Math.min(after[axis], 0));
  if (left.some((size) => size < 0))
    throw new ShapeError(
      "pad",
      "invalidPadding",
      `padding ${formatShape(padding)} crops more than ${x.describe()} has: ${formatShape(left)} would be left`,
    );
  return { before, after };
}

function crop<D extends DType>(x: Tensor<D>, before: readonly number[], after: readonly number[]): Tensor<D> {
  let result = x;
  const sizes = plainList(x.shape);
  for (let axis = 0; axis < sizes.length; axis++) {
    const size = sizes[axis];
    if (before[axis] >= 0 && after[axis] >= 0) continue;
    const first = Math.min(Math.max(-before[axis], 0), size);
    const last = Math.max(size - Math.max(-after[axis], 0), first);
    result = narrow(result, axis, first, last - first);
  }
  return result;
}

const narrowed = (view: Tensor, axis: number, start: number, size: number): Tensor =>
  size === view.shape[axis] ? view : narrow(view, axis, start, size);

function padded<D extends DType>(
  x: Tensor<D>,
  before: readonly number[],
  after: readonly number[],
  filling: Tensor,
): Tensor<D> {
  if ([...before, ...after].every((size) => size === 0)) return copyOf("pad", x);
  const shape = checkShape("pad", paddedSizes(x, before, after));
  const inputShape = x.shape;
  const inside = (whole: Tensor) =>
    inputShape.reduce((view, size, axis) => narrowed(view, axis, before[axis], size), whole);
  const output =
    elementCount(shape) <= FEW && hasPadKernel(x)
      ? execute(padPrimitive, [x, filling], shape, x.dtype, { mode: "constant", before, after }, "pad")
      : filledAround(x, shape, before, filling);
  record("pad", [x], [output], [], ([gradient]) => [inside(gradient)]);
  return output;
}

/** Fills the result or its border, and copies x into it. */
function filledAround<D extends DType>(x: Tensor<D>, shape: Shape, before: Sizes, filling: Tensor): Tensor<D> {
  const output = emptyFor([x], shape, x.dtype, "pad");
  const inputShape = x.shape;
  tidy(() => {
    if (isFilledWhole(output, inputShape)) copyInto(output, filling);
    else writeBorder(output, inputShape, before, filling);
    if (x.size === 0) return;
    copyInto(
      inputShape.reduce<Tensor>((view, size, axis) => narrowed(view, axis, before[axis], size), output),
      x,
    );
  });
  return output;
}

/** Up to this many elements, filling the whole result takes less time than the calls for the parts of its border. */
const FEW = 1 << 14;

/** Up to this length of the last axis, filling the whole result takes less time than many short parts of rows. */
const SHORT = 256;

/** Whether the processor fills the whole result before the inside. A GPU writes each element once. */
function isFilledWhole({ shape, size, storage }: Tensor, inside: readonly number[]): boolean {
  if (storage.memory.device !== "host") return false;
  return size <= FEW || (lastElement(shape) <= SHORT && shape.at(-1) !== inside.at(-1));
}

/** Fills two slabs for each axis. Later slabs exclude the ones that are already filled. */
function writeBorder(output: Tensor, inside: readonly number[], before: readonly number[], filling: Tensor): void {
  const fill = (slab: Tensor) => slab.size > 0 && copyInto(slab, filling);
  let remainder = output;
  for (const [axis, size] of inside.entries()) {
    if (size === output.shape[axis]) continue;
    const end = before[axis] + size;
    fill(narrow(remainder, axis, 0, before[axis]));
    fill(narrow(remainder, axis, end, remainder.shape[axis] - end));
    remainder = narrow(remainder, axis, before[axis], size);
  }
}
