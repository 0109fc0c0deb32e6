/** Elements replaced at row-major positions, or where a mask is true. */
import { noGrad } from "../../autograd/modes.ts";
import { capturing } from "../../backend/capture.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { sub } from "../elementwise/arithmetic.ts";
import { maximum } from "../elementwise/extrema.ts";
import { where } from "../elementwise/where.ts";
import { cumsum } from "../scan/cumsum.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { select } from "../view/slice.ts";
import { gatherAlong, scatterAddAlong } from "./adjoint.ts";
import { anIndex, type IndexDType } from "./indices.ts";
import { hasMasks, scatterSet, selectionOf } from "./masks.ts";
import { fromTheFront, signed } from "./places.ts";
import { scatterAlong } from "./scatter.ts";
import { checkSourceDType } from "./scatter_add.ts";

/** Options of {@link put}. */
export interface PutOptions {
  /** Whether to add the elements to those of x instead of replacing them. Default false. */
  accumulate?: boolean | undefined;
}

/**
 * Returns a copy of `x` with elements replaced at row-major positions: `result.flatten()[index[i]] = source[i]`.
 * Negative indices count from the end. If several indices are equal, the last one wins; with `accumulate` all are
 * added.
 *
 * @param source of x's dtype, with as many elements as the index
 *
 * @example
 * put(tensor([[1, 2], [3, 4]]), tensor([3n, 0n]), tensor([8, 9])); // float32 [[9, 2], [3, 8]]
 *
 * @throws {ShapeError} if counts differ, and `indexOutOfRange` (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools, or a source of a different dtype.
 */
export function put<D extends DType>(
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  ...options: Given<PutOptions, ["accumulate"]>
): Tensor<D>;
export function put(...values: unknown[]): Tensor {
  const { x, index, source, accumulate } = putParameters(values);
  checkSourceDType("put", x, source);
  if (index.size !== source.size)
    throw new ShapeError(
      "put",
      "shapesDiffer",
      `expected as many elements in source as in index, got ${source.describe()} and ${index.describe()}`,
    );
  checkElements("put", [x, index]);
  return underName("put", () =>
    tidy(() => {
      const along = accumulate ? scatterAddAlong : scatterAlong;
      const flat = <D extends DType>(each: Tensor<D>): Tensor<D> => (each.rank === 1 ? each : flatten(each));
      const wraps = firstBackend() === "cpu" && capturing() === undefined;
      const places = wraps ? flat(index) : fromTheFront("put", flat(index), x.size);
      const result = along("put", flat(x), places, flat(source), 0, wraps ? { wraps } : signed);
      return x.rank === 1 ? result : reshape(result, x.shape);
    }),
  );
}
put.method = "same" as const;
const putParameters = parameters("put", {
  x: operand(aTensor),
  index: required(anIndex),
  source: required(aTensor),
  accumulate: optional(flag, false),
});

/**
 * Returns a copy of `x` with the elements of `source`, in order, where a mask is true. The call waits for the device,
 * to count the true elements.
 *
 * @param mask bool; `x` and the mask are broadcast together
 * @param source of x's dtype, with at least as many elements as the mask has true ones
 *
 * @example
 * maskedScatter(tensor([1, 2, 3]), tensor([true, false, true]), tensor([8, 9])); // float32 [8, 2, 9]
 *
 * @throws {ShapeError} if shapes can't be broadcast, or the source has too few elements.
 * @throws {DTypeError} for a mask that is not bool, or a source of a different dtype.
 */
export function maskedScatter<D extends DType>(x: Tensor<D>, mask: Tensor<"bool">, source: Tensor<D>): Tensor<D>;
export function maskedScatter(...values: unknown[]): Tensor {
  const { x, mask, source } = maskedScatterParameters(values);
  checkSourceDType("maskedScatter", x, source);
  if (mask.dtype !== "bool")
    throw new DTypeError("maskedScatter", "notAMask", `expected the mask to be bool, got ${mask.describe()}`);
  const shape = broadcastShapes("maskedScatter", x.shape, mask.shape);
  checkElements("maskedScatter", [x, mask]);
  return underName("maskedScatter", () =>
    tidy(() => {
      const [whole, isSet] = [x, mask].map((each) => (sameShape(each.shape, shape) ? each : expand(each, shape)));
      if (hasMasks()) {
        const selection = selectionOf("maskedScatter", isSet);
        checkEnough(selection.count, source);
        return scatterSet("maskedScatter", whole, isSet, source, selection);
      }
      const counts = noGrad(() => cumsum(flatten(isSet), 0));
      const count = counts.size === 0 ? 0 : Number(select(counts, 0, -1).item());
      checkEnough(count, source);
      if (count === 0) return unchanged(whole, source);
      const places = noGrad(() => maximum(sub(counts, 1n), 0n) as Tensor<"int64">);
      const values = reshape(gatherAlong("maskedScatter", flatten(source), places, 0), shape);
      return toDType(where(isSet, values, whole), x.dtype);
    }),
  );
}
maskedScatter.method = "same" as const;
const maskedScatterParameters = parameters("maskedScatter", {
  x: operand(aTensor),
  mask: operand(aTensor),
  source: operand(aTensor),
});

function checkEnough(count: number, source: Tensor): void {
  if (count <= source.size) return;
  throw new ShapeError(
    "maskedScatter",
    "tooFewElements",
    `expected at least ${count} elements in source, one for each true in the mask, got ${source.describe()}`,
  );
}

/** Returns a copy of x that is connected to both inputs in the graph. */
const unchanged = (x: Tensor, source: Tensor): Tensor => {
  const none = filled([0], "int64", 0n);
  return reshape(scatterAddAlong("maskedScatter", flatten(x), none, flatten(source), 0), x.shape);
};
