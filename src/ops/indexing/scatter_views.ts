import { checkElements, underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { axis as axisKind, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { select, slice } from "../view/slice.ts";
import { checkSourceDType } from "./scatter_add.ts";
import { withView } from "./with_view.ts";

/** Returns a copy of x with a view of it replaced by the source. */
function replaced(operation: string, x: Tensor, source: Tensor, take: (whole: Tensor) => Tensor): Tensor {
  return tidy(() => {
    const view = take(x);
    if (!sameShape(source.shape, view.shape))
      throw new ShapeError(
        operation,
        "shapesDiffer",
        `expected source to have the shape [${view.shape.join(", ")}] of the elements that it replaces, got ` +
          source.describe(),
      );
    checkSourceDType(operation, x, source);
    checkElements(operation, [x]);
    return withView(x, take, source);
  });
}

/**
 * Returns a copy of `x` with one index of an axis replaced by `source`, which has the shape of `select(x, dim, index)`.
 *
 * @param index negative values count from the end
 *
 * @example
 * selectScatter(tensor([[1, 2], [3, 4]]), tensor([8, 9]), 1, 0); // float32 [[8, 2], [9, 4]]
 *
 * @throws {ShapeError} for an axis or an index out of range, or a source of another shape.
 * @throws {DTypeError} for a source of another dtype.
 */
export function selectScatter<D extends DType>(x: Tensor<D>, source: Tensor<D>, dim: number, index: number): Tensor<D>;
export function selectScatter(...values: unknown[]): Tensor {
  const { x, source, dim, index } = selectScatterParameters(values);
  return underName("selectScatter", () => {
    const axis = normalizeAxis("selectScatter", dim, x.rank);
    return replaced("selectScatter", x, source, (whole) => select(whole, axis, index));
  });
}
selectScatter.method = "same" as const;
const selectScatterParameters = parameters("selectScatter", {
  x: operand(aTensor),
  source: operand(aTensor),
  dim: required(axisKind),
  index: required(someNumber),
});

/** Options of {@link sliceScatter}. */
export interface SliceScatterOptions {
  /** The axis. Default 0. */
  dim?: number | undefined;
  /** The first index; negative values count from the end. Default 0. */
  start?: number | undefined;
  /** The index after the last one. Default: the end. */
  end?: number | undefined;
  /** The distance between indices, at least 1. Default 1. */
  step?: number | undefined;
}

/**
 * Returns a copy of `x` with a slice of an axis replaced by `source`, which has the shape of the slice.
 *
 * @example
 * sliceScatter(tensor([1, 2, 3, 4]), tensor([8, 9]), { start: 1, step: 2 }); // float32 [1, 8, 3, 9]
 *
 * @throws {ShapeError} for an axis out of range, or a source of another shape.
 * @throws {DTypeError} for a source of another dtype.
 * @throws {ArgumentError} for a step below 1.
 */
export function sliceScatter<D extends DType>(
  x: Tensor<D>,
  source: Tensor<D>,
  ...options: Given<SliceScatterOptions, ["dim", "start", "end", "step"]>
): Tensor<D>;
export function sliceScatter(...values: unknown[]): Tensor {
  const { x, source, dim, start, end, step } = sliceScatterParameters(values);
  return underName("sliceScatter", () => {
    const axis = normalizeAxis("sliceScatter", dim, x.rank);
    const bounds = { start, ...(end !== undefined && { end }), step };
    return replaced("sliceScatter", x, source, (whole) => slice(whole, axis, bounds));
  });
}
sliceScatter.method = "same" as const;
const sliceScatterParameters = parameters("sliceScatter", {
  x: operand(aTensor),
  source: operand(aTensor),
  dim: optional(axisKind, 0),
  start: optional(someNumber, 0),
  end: optional(someNumber),
  step: optional(someNumber, 1),
});
