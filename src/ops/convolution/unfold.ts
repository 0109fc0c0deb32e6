/** Windows of images as columns (im2col), and their adjoint. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { execute, underName } from "../../backend/dispatch.ts";
import { hasOnlyCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ShapeError } from "../../core/errors.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { computationDType, type DType, isComplex, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { add_ } from "../copy/inplace.ts";
import { pad } from "../join/pad.ts";
import { filled } from "../view/embed.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, select, slice } from "../view/slice.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";
import { viewOf } from "../view/view.ts";
import { alongAxes, checkOperands, outputSize, type PerAxis, perAxis, spanOf } from "./geometry.ts";
import { foldCall, unfoldCall } from "./primitive.ts";

/** Options of {@link unfold} and {@link fold}. */
export interface UnfoldOptions {
  /** Distance between elements of a window, for both axes or for each. Default 1. */
  dilation?: PerAxis | undefined;
  /** The number of zeros before and after x. Default 0. */
  padding?: PerAxis | undefined;
  /** Distance between windows. Default 1. */
  stride?: PerAxis | undefined;
}

type UnfoldArguments = Given<UnfoldOptions, ["dilation", "padding", "stride"]>;
const windowOptions = {
  dilation: optional(perAxis, 1),
  padding: optional(perAxis, 0),
  stride: optional(perAxis, 1),
} as const;

/**
 * Returns the sliding windows of an image as columns (im2col), in row-major order of their positions. {@link fold} is
 * the adjoint.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param kernelSize the size of windows, for both axes or for each
 * @returns [batch, channels · rows · columns, windows]
 *
 * @example
 * unfold(tensor([[[1, 2, 3], [4, 5, 6]]]), [2, 2]); // float32 [[1, 2], [2, 3], [4, 5], [5, 6]]
 *
 * @throws {ShapeError} if x has the wrong rank, or a window is larger than the padded x.
 * @throws {DTypeError} if x is not of a float dtype.
 * @throws {ArgumentError} for sizes below 1.
 */
export function unfold<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: UnfoldArguments): Tensor<D>;
export function unfold(...values: unknown[]): Tensor {
  const { x, ...given } = unfoldParameters(values);
  x.checkAlive("unfold");
  if (x.rank !== 3 && x.rank !== 4)
    throw new ShapeError(
      "unfold",
      "wrongRank",
      `expected x to be [batch, channels, height, width] or [channels, height, width], got ${x.describe()}`,
    );
  const windows = windowsOf("unfold", x.shape.slice(-2), given);
  return underName("unfold", () =>
    tidy(() => {
      const [places, count] = [windows.kernel, windows.output].map(elementCount) as [number, number];
      const lead = x.shape.slice(0, -3);
      if (fusesUnfold(x)) return unfolded("unfold", x, windows, [...lead, x.shape.at(-3)! * places, count]);
      const batch = x.rank === 4 ? x : unsqueeze(x, 0);
      const [rows, columns] = tupleOf(windows.padding, 2);
      const whole = rows + columns > 0 ? pad(batch, [columns, columns, rows, rows]) : batch;
      const result = reshape(windowsIn(whole, windows), [batch.shape[0], batch.shape[1] * places, count]);
      return x.rank === 4 ? result : squeeze(result, { dim: 0 });
    }),
  );
}
const unfoldParameters = parameters("unfold", {
  x: operand(aTensor),
  kernelSize: required(perAxis),
  ...windowOptions,
});

/**
 * Computes images from the columns of their windows (col2im). Overlapping elements are added. It is the adjoint of
 * {@link unfold}.
 *
 * @param x [batch, channels · rows · columns, windows], or without a batch
 * @param outputSize the size of the images, for both axes or for each
 * @param kernelSize the size of windows, for both axes or for each
 * @returns [batch, channels, height, width]
 *
 * @example
 * fold(ones([4, 2]), [2, 3], [2, 2]); // float32 [[[1, 2, 1], [1, 2, 1]]]
 *
 * @throws {ShapeError} if x has the wrong rank, or its number of columns is not the number of windows.
 * @throws {DTypeError} if x is not of a float dtype.
 * @throws {ArgumentError} for sizes below 1.
 */
export function fold<D extends DType>(
  x: Tensor<D>,
  outputSize: PerAxis,
  kernelSize: PerAxis,
  ...options: UnfoldArguments
): Tensor<D>;
export function fold(...values: unknown[]): Tensor {
  const { x, outputSize: size, ...given } = foldParameters(values);
  checkOperands("fold", [x]);
  const sizes = tupleOf(alongAxes("fold", "outputSize", size, 2, 1), 2);
  const windows = windowsOf("fold", sizes, given);
  const [[rows, columns], [height, width]] = [windows.kernel, windows.output] as [[number, number], [number, number]];
  if (x.rank !== 2 && x.rank !== 3)
    throw new ShapeError(
      "fold",
      "wrongRank",
      `expected x to be [batch, channels · ${rows * columns}, windows], or without a batch, got ${x.describe()}`,
    );
  const [elements, count] = tupleOf(x.shape.slice(-2), 2);
  if (elements % (rows * columns) !== 0 || count !== height * width)
    throw new ShapeError(
      "fold",
      "shapesDiffer",
      `expected x to have a multiple of ${rows * columns} rows and ${height * width} columns, one for each window, ` +
        `got ${x.describe()}`,
    );
  return underName("fold", () =>
    tidy(() => {
      const channels = elements / (rows * columns);
      if (fusesUnfold(x) && isFloat(x.dtype))
        return folded("fold", x, windows, [...x.shape.slice(0, -2), channels, ...sizes]);
      const batch = x.rank === 3 ? x.shape[0] : 1;
      const [above, before] = tupleOf(windows.padding, 2);
      const outer = [batch, channels, sizes[0] + 2 * above, sizes[1] + 2 * before];
      const placed = reshape(x, [batch, channels, rows, columns, height, width]);
      const whole = addedWindows(placed, outer, windows);
      const inner = narrow(narrow(whole, 2, above, sizes[0]), 3, before, sizes[1]);
      return x.rank === 3 ? inner : squeeze(inner, { dim: 0 });
    }),
  );
}
const foldParameters = parameters("fold", {
  x: operand(aTensor),
  outputSize: required(perAxis),
  kernelSize: required(perAxis),
  ...windowOptions,
});

/** The geometry of windows along two axes. */
export interface Windows {
  readonly kernel: readonly number[];
  readonly dilation: readonly number[];
  readonly padding: readonly number[];
  readonly stride: readonly number[];
  readonly output: readonly number[];
}

function windowsOf(
  operation: string,
  sizes: Shape,
  given: { kernelSize: PerAxis; dilation: PerAxis; padding: PerAxis; stride: PerAxis },
): Windows {
  const kernel = alongAxes(operation, "kernelSize", given.kernelSize, 2, 1);
  const dilation = alongAxes(operation, "dilation", given.dilation, 2, 1);
  const padding = alongAxes(operation, "padding", given.padding, 2, 0);
  const stride = alongAxes(operation, "stride", given.stride, 2, 1);
  const output = sizes.map((size, axis) =>
    outputSize(operation, {
      size,
      span: spanOf(kernel[axis], dilation[axis]),
      stride: stride[axis],
      padding: 2 * padding[axis],
    }),
  );
  return { kernel, dilation, padding, stride, output };
}

/** Returns the windows of a padded x: a view [batch, channels, …kernel, …output]. */
function windowsIn(x: Tensor, windows: Windows): Tensor {
  const [batch, channel, row, column] = tupleOf(x.strides, 4);
  const { kernel, dilation, stride, output } = windows;
  const { shape } = x;
  return viewOf(
    "unfold",
    x,
    [shape[0], shape[1], ...kernel, ...output],
    [batch, channel, row * dilation[0], column * dilation[1], row * stride[0], column * stride[1]],
    x.offset,
    ([gradient]) => [addedWindows(gradient, shape, windows)],
  );
}

/** Returns the fields of calls with images […, height, width], in the order of the operands. */
function blockOf(images: Tensor, { kernel, padding, ...windows }: Windows, operands: readonly Tensor[]) {
  const input = images.shape.slice(-2);
  const planes = images.size / (input[0] * input[1]);
  const offsets = operands.map(({ offset }) => offset);
  return { ...windows, dtype: images.dtype, planes, input, kernelSize: kernel, before: padding, offsets };
}

const foldCpu: Implementation<Windows> = {
  run({ operation, inputs: [x], outputs: [images], attributes }) {
    foldCall(operation, blockOf(images, attributes, [x, images]), [x, images]);
  },
};

const unfoldCpu: Implementation<Windows> = {
  run({ operation, inputs: [x], outputs: [result], attributes }) {
    unfoldCall(operation, blockOf(x, attributes, [x, result]), [x, result]);
  },
};

const onCpu = <Operation>(cpu: Operation) => ({ metal: onlyCpuFuses, cpu, reference: onlyCpuFuses });
const foldPrimitive = definePrimitive<Windows>({
  name: "fold",
  family: "convolution",
  implementations: onCpu(foldCpu),
});
const unfoldPrimitive = definePrimitive<Windows>({
  name: "unfold",
  family: "convolution",
  implementations: onCpu(unfoldCpu),
});

/** Whether {@link unfolded} applies, and {@link folded} for floats or windows that divide images. */
export const fusesUnfold = (x: Tensor): boolean => hasOnlyCpu(x) && !isComplex(x.dtype) && x.size > 0;

/** Copies the windows of images […, height, width] to a tensor of a shape that holds […, …kernel, …output]. */
export function unfolded(operation: string, x: Tensor, windows: Windows, shape: Shape): Tensor {
  const { shape: images } = x;
  const result = execute(unfoldPrimitive, [contiguous(x)], shape, x.dtype, windows, operation);
  record(operation, [x], [result], [], ([gradient]) => [folded(operation, gradient, windows, images)]);
  return result;
}

/** Adds windows, of a shape that holds […, …kernel, …output], to images of a shape […, height, width]. */
export function folded(operation: string, x: Tensor, windows: Windows, shape: Shape): Tensor {
  const { shape: places } = x;
  const result = execute(foldPrimitive, [contiguous(x)], shape, x.dtype, windows, operation);
  record(operation, [x], [result], [], ([gradient]) => [unfolded(operation, gradient, windows, places)]);
  return result;
}

/** Computes the adjoint: for each position in a window, adds the elements of all windows to a view. */
function addedWindows(x: Tensor, shape: Shape, windows: Windows): Tensor {
  const { kernel, dilation, stride, output } = windows;
  const result = tidy(() =>
    noGrad(() => {
      if (firstBackend() === "cpu" && isFloat(x.dtype))
        return execute(foldPrimitive, [contiguous(x)], shape, x.dtype, { ...windows, padding: [0, 0] }, "fold");
      const wide = computationDType(x.dtype);
      const total = filled(shape, wide, 0, "fold");
      for (let row = 0; row < kernel[0]; row++)
        for (let column = 0; column < kernel[1]; column++) {
          const under = [row, column].reduce((view, at, axis) => {
            const start = at * dilation[axis];
            const end = start + (output[axis] - 1) * stride[axis] + 1;
            return slice(view, { dim: axis + 2, start, end, step: stride[axis] });
          }, total);
          add_(under, toDType(select(select(x, 2, row), 2, column), wide));
        }
      return toDType(total, x.dtype);
    }),
  );
  record("fold", [x], [result], [], ([gradient]) => [windowsIn(gradient, windows)]);
  return result;
}
