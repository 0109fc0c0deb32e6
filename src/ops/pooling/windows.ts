/** Window positions of pooling, derived from a call's arguments for each axis. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { alongAxes, checkOperands, type PerAxis, spanOf } from "../convolution/geometry.ts";

/** Sizes and positions of windows, by axis. */
export interface Windows {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly padding: readonly number[];
  readonly dilation: readonly number[];
  readonly input: readonly number[];
  readonly output: readonly number[];
  /** Elements that the last window extends beyond the end padding. */
  readonly beyond: readonly number[];
}

interface WindowOptions {
  readonly kernelSize: PerAxis;
  readonly stride: PerAxis | undefined;
  readonly padding: PerAxis;
  readonly dilation?: PerAxis;
  readonly ceilMode: boolean;
}

/** @internal Checks the rank and dtype of a pooling's input. */
export function checkAxes(
  operation: string,
  x: Tensor,
  rank: number,
  taken: { readonly takesIntegers?: boolean } = {},
): void {
  checkOperands(operation, [x], taken);
  if (x.rank !== rank + 1 && x.rank !== rank + 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected ${rank + 2} axes, or ${rank + 1} without a batch, got ${x.describe()}`,
    );
}

/** Returns the windows of a call. @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError} */
export function windowsOf(operation: string, x: Tensor, given: WindowOptions, rank: number): Windows {
  checkAxes(operation, x, rank, { takesIntegers: true });
  const kernel = alongAxes(operation, "kernelSize", given.kernelSize, rank, 1);
  const stride = isAbsent(given.stride) ? kernel : alongAxes(operation, "stride", given.stride, rank, 1);
  const padding = alongAxes(operation, "padding", given.padding, rank, 0);
  const dilation = alongAxes(operation, "dilation", given.dilation ?? 1, rank, 1);
  const input = x.shape.slice(-rank);
  const output = input.map((size, axis) => {
    if (2 * padding[axis] > kernel[axis])
      throw new ArgumentError(
        operation,
        "invalidPadding",
        `expected padding of at most half a window of ${kernel[axis]}, got ${padding[axis]}`,
      );
    const span = spanOf(kernel[axis], dilation[axis]);
    const steps = (size + 2 * padding[axis] - span) / stride[axis];
    const most = (given.ceilMode ? Math.ceil(steps) : Math.floor(steps)) + 1;
    // the last window must start inside x or the padding before it
    const count = given.ceilMode && (most - 1) * stride[axis] >= size + padding[axis] ? most - 1 : most;
    if (count < 1)
      throw new ShapeError(
        operation,
        "kernelTooLarge",
        `expected a window of at most ${size + 2 * padding[axis]} elements, got ${span}`,
      );
    return count;
  });
  const beyond = input.map((size, axis) => {
    const end = (output[axis] - 1) * stride[axis] + spanOf(kernel[axis], dilation[axis]);
    return Math.max(end - size - 2 * padding[axis], 0);
  });
  return { kernel, stride, padding, dilation, input, output, beyond };
}

/** Tests whether no stride is given; an empty list counts as none, as in PyTorch. */
const isAbsent = (stride: PerAxis | undefined): stride is undefined | readonly [] =>
  stride === undefined || (typeof stride !== "number" && stride.length === 0);
