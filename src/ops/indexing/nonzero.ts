/** Elements by a condition: results whose size the elements decide, which are read for it. */
import { noGrad } from "../../autograd/modes.ts";
import { named as underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { ne } from "../elementwise/comparison.ts";
import { expand } from "../view/expand.ts";
import { flatten } from "../view/flatten.ts";
import { indexSelect } from "./gather.ts";

/**
 * The coordinates of the elements other than 0, in row-major order. The elements are read, which waits for the device.
 *
 * @returns int64 [count, rank]
 *
 * @example
 * nonzero(tensor([[1, 0], [0, 2]])); // int64 [[0, 0], [1, 1]]
 */
export function nonzero(x: Tensor): Tensor<"int64">;
export function nonzero(...values: unknown[]): Tensor<"int64"> {
  const { x } = nonzeroParameters(values);
  return underName("nonzero", () => coordinatesOf(placesOf(x), x.shape));
}
nonzero.method = "int64" as const;
const nonzeroParameters = parameters("nonzero", { x: operand(aTensor) });

/** @internal The row-major places of the elements other than 0. */
export function placesOf(x: Tensor): BigInt64Array {
  const isSet = tidy(() => noGrad(() => contiguous(ne(x, 0)).dataSync()));
  let count = 0;
  for (let at = 0; at < isSet.length; at++) count += Number(isSet[at]);
  const places = new BigInt64Array(count);
  let next = 0;
  for (let at = 0; at < isSet.length; at++) if (isSet[at]) places[next++] = BigInt(at);
  return places;
}

function coordinatesOf(places: BigInt64Array, shape: Shape): Tensor<"int64"> {
  const coordinates = new BigInt64Array(places.length * shape.length);
  for (const [row, place] of places.entries()) {
    let rest = Number(place);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      coordinates[row * shape.length + axis] = BigInt(rest % shape[axis]!);
      rest = Math.floor(rest / shape[axis]!);
    }
  }
  return tensor(coordinates, { shape: [places.length, shape.length] });
}

/**
 * The elements at which a mask is true, in row-major order, in one row. The mask is read, which waits for the device.
 *
 * @param mask bool; both are broadcast
 *
 * @example
 * maskedSelect(tensor([1, 2, 3]), tensor([true, false, true])); // float32 [1, 3]
 *
 * @throws {ShapeError} where shapes can't be broadcast. @throws {DTypeError} for a mask that is not bool.
 */
export function maskedSelect<D extends DType>(x: Tensor<D>, mask: Tensor<"bool">): Tensor<D>;
export function maskedSelect(...values: unknown[]): Tensor {
  const { x, mask } = maskedSelectParameters(values);
  if (mask.dtype !== "bool")
    throw new DTypeError("maskedSelect", "notAMask", `expected the mask to be bool, got ${mask.describe()}`);
  const shape = broadcastShapes("maskedSelect", x.shape, mask.shape);
  return underName("maskedSelect", () =>
    tidy(() => indexSelect(flatten(expand(x, shape)), tensor(placesOf(expand(mask, shape))), { dim: 0 })),
  );
}
maskedSelect.method = "same" as const;
const maskedSelectParameters = parameters("maskedSelect", { x: operand(aTensor), mask: operand(aTensor) });
