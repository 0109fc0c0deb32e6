/**
 * Elements selected by a condition. The result's size depends on the elements, so they are counted first, and on metal
 * read on the host.
 */
import { noGrad } from "../../autograd/modes.ts";
import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { broadcastShapes, elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { ne } from "../elementwise/comparison.ts";
import { expand } from "../view/expand.ts";
import { flatten } from "../view/flatten.ts";
import { indexSelect } from "./gather.ts";
import { coordinatesOfSet, hasMasks, selectSet } from "./masks.ts";

/**
 * Returns the coordinates of the nonzero elements, in row-major order. The call waits for the device, since the size of
 * the result depends on the elements.
 *
 * @returns int64 [count, rank]
 *
 * @example
 * nonzero(tensor([[1, 0], [0, 2]])); // int64 [[0, 0], [1, 1]]
 */
export function nonzero(x: Tensor): Tensor<"int64">;
export function nonzero(...values: unknown[]): Tensor<"int64"> {
  const { x: given } = nonzeroParameters(values);
  const x = isComplex(given.dtype) ? noGrad(() => ne(given, 0)) : given;
  if (hasMasks()) return tidy(() => coordinatesOfSet("nonzero", x, x.shape));
  return underName("nonzero", () => {
    const places = placesOf(x);
    return tensor(coordinatesOf(places, x.shape, [...x.shape.keys()]), { shape: [places.length, x.rank] });
  });
}
nonzero.method = "int64" as const;
const nonzeroParameters = parameters("nonzero", { x: operand(aTensor) });

/**
 * @internal Returns the row-major positions of the nonzero elements. 32 bits suffice: a typed array has fewer than 2³²
 * elements.
 */
export function placesOf(x: Tensor): Uint32Array {
  const isSet = tidy(() => noGrad(() => contiguous(x.dtype === "bool" ? x : ne(x, 0)).dataSync())) as Uint8Array;
  let count = 0;
  for (let at = 0; at < isSet.length; at++) count += isSet[at];
  const places = new Uint32Array(count);
  for (let at = 0, next = 0; next < count; at++) {
    places[next] = at; // the next element overwrites this entry unless this element is nonzero
    next += isSet[at];
  }
  return places;
}

/**
 * @internal Returns the coordinates of row-major positions along the given axes: int64 [places, axes]. It writes only
 * the low words, because creating a bigint for each element would dominate the time.
 */
export function coordinatesOf(places: Uint32Array, shape: Shape, axes: readonly number[]): BigInt64Array {
  const coordinates = new BigInt64Array(places.length * axes.length);
  const words = new Uint32Array(coordinates.buffer);
  for (const [column, axis] of axes.entries()) {
    const size = shape[axis];
    const after = elementCount(shape.slice(axis + 1));
    for (let row = 0, to = 2 * column; row < places.length; row++, to += 2 * axes.length)
      words[to] = Math.floor(places[row] / after) % size;
  }
  return coordinates;
}

/** @internal Returns positions as an index into a flattened tensor. */
export function indexOf(places: Uint32Array): Tensor<"int64"> {
  const index = new BigInt64Array(places.length);
  const words = new Uint32Array(index.buffer); // the low words come first, as in `coordinatesOf`
  for (let row = 0; row < places.length; row++) words[2 * row] = places[row];
  return tensor(index);
}

/**
 * Returns the elements where a mask is true, as a vector in row-major order. The call waits for the device, since the
 * size of the result depends on the mask.
 *
 * @param mask bool; `x` and the mask are broadcast together
 *
 * @example
 * maskedSelect(tensor([1, 2, 3]), tensor([true, false, true])); // float32 [1, 3]
 *
 * @throws {ShapeError} if shapes can't be broadcast.
 * @throws {DTypeError} for a mask that is not bool.
 */
export function maskedSelect<D extends DType>(x: Tensor<D>, mask: Tensor<"bool">): Tensor<D>;
export function maskedSelect(...values: unknown[]): Tensor {
  const { x, mask } = maskedSelectParameters(values);
  if (mask.dtype !== "bool")
    throw new DTypeError("maskedSelect", "notAMask", `expected the mask to be bool, got ${mask.describe()}`);
  const shape = broadcastShapes("maskedSelect", x.shape, mask.shape);
  return underName("maskedSelect", () =>
    tidy(() => {
      const [whole, isSet] = [expand(x, shape), expand(mask, shape)];
      if (hasMasks()) return selectSet("maskedSelect", whole, isSet);
      return indexSelect(flatten(whole), indexOf(placesOf(isSet)), { dim: 0 });
    }),
  );
}
maskedSelect.method = "same" as const;
const maskedSelectParameters = parameters("maskedSelect", { x: operand(aTensor), mask: operand(aTensor) });
