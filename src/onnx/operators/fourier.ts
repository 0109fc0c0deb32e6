/** Fourier transforms, as products with the matrix of the transform: exact, and quadratic in the length. */
import { lastElement } from "../../core/collections.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operators } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { axisOf, listOf } from "./axes.ts";

/** The transform's matrix: cosines and sines of 2πkn / length. */
function matrix(rows: number, columns: number, length: number, sign: 1 | -1, x: Tensor): readonly [Tensor, Tensor] {
  const angles = listOf(rows * columns, (at) => {
    const [k, n] = [at % columns, Math.floor(at / columns)];
    return (2 * Math.PI * ((k * n) % length)) / length;
  });
  const make = (values: number[]) => tensor(values, { dtype: "float64", shape: [rows, columns] }).to(x.dtype);
  return [make(angles.map(Math.cos)), make(angles.map((angle) => sign * Math.sin(angle)))];
}

/** Truncates an axis, or pads it with zeros. */
function resized(x: Tensor, axis: number, size: number): Tensor {
  const present = x.shape[axis];
  if (present >= size) return ops.narrow(x, axis, 0, size);
  const zeros = ops.zeros(
    x.shape.map((length, at) => (at === axis ? size - present : length)),
    { dtype: x.dtype },
  );
  return ops.cat([x, zeros], { dim: axis });
}

/** Transforms an axis of a tensor whose last axis is the real part, or the real and the imaginary part. */
export function transform(
  given: Tensor,
  axis: number,
  length: number,
  isInverse: boolean,
  isOneSided: boolean,
): Tensor {
  const parts = lastElement(given.shape);
  if (isInverse && isOneSided) return inverseOfHalf(given, axis, length);
  const x = ops.movedim(resized(given, axis, length), axis, -2);
  const columns = isOneSided ? Math.floor(length / 2) + 1 : length;
  const [cos, sin] = matrix(length, columns, length, isInverse ? 1 : -1, x);
  const [re, im] = [ops.select(x, -1, 0), parts > 1 ? ops.select(x, -1, 1) : undefined];
  const real = im ? ops.sub(ops.matmul(re, cos), ops.matmul(im, sin)) : ops.matmul(re, cos);
  const imaginary = im ? ops.add(ops.matmul(re, sin), ops.matmul(im, cos)) : ops.matmul(re, sin);
  const y = ops.stack([real, imaginary], { dim: -1 });
  return ops.movedim(isInverse ? ops.div(y, length) : y, -2, axis);
}

/**
 * Returns the real signal whose one-sided transform is given. Each part counts twice, except the first one, and the
 * last one of an even length.
 */
function inverseOfHalf(given: Tensor, axis: number, length: number): Tensor {
  const half = Math.floor(length / 2) + 1;
  const x = ops.movedim(resized(given, axis, half), axis, -2);
  const [cos, sin] = matrix(half, length, length, 1, x);
  const counts = Array.from({ length: half }, (_, k) => (k === 0 || 2 * k === length ? 1 : 2));
  const weights = tensor(counts, { dtype: "float64", shape: [half] }).to(x.dtype);
  const weighted = (at: number) => ops.mul(ops.select(x, -1, at), weights);
  const y = ops.sub(ops.matmul(weighted(0), cos), ops.matmul(weighted(1), sin));
  return ops.movedim(ops.unsqueeze(ops.div(y, length), -1), -2, axis);
}

function dft(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = axisOf(call.number(2) ?? call.attributes.number("axis", call.opset < 20 ? 1 : -2), x.rank);
  const [isInverse, isOneSided] = [call.attributes.flag("inverse"), call.attributes.flag("onesided")];
  const natural = isInverse && isOneSided ? 2 * (x.shape[axis] - 1) : x.shape[axis];
  return transform(x, axis, call.number(1) ?? natural, isInverse, isOneSided);
}

/** Transforms of windows that begin `frame_step` apart. */
function stft(call: Call): Tensor {
  const given = call.tensor(0);
  const step = call.number(1)!;
  const window = call.optional(2);
  const length = call.number(3) ?? window?.shape[0];
  if (length === undefined) throw new NodeProblem("expected a window or the length of frames");
  const x = given.rank === 2 ? ops.unsqueeze(given, -1) : given;
  const frames = ops.slidingWindows(x, 1, window?.shape[0] ?? length, step);
  const ordered = ops.transpose(frames, 2, 3);
  const weighted = window ? ops.mul(ordered, ops.unsqueeze(window, -1)) : ordered;
  return transform(weighted, 2, length, false, call.attributes.flag("onesided", true));
}

export const fourier: Operators = { DFT: dft, STFT: stft };
