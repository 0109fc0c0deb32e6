/**
 * Combines one index per axis into a row-major position: in one pass on cpu, composed of other operations elsewhere.
 */
import { noGrad } from "../../autograd/modes.ts";
import type { Implementation } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ShapeError } from "../../core/errors.ts";
import { broadcastStrides, collapse, elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { ge, lt } from "../elementwise/comparison.ts";
import { logicalAnd } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { expand } from "../view/expand.ts";
import type { IndexDType } from "./indices.ts";
import { indexPlacesCall, MOST_LISTS } from "./primitive.ts";

interface PlacesAttributes {
  /** The operation that the caller called, for errors. */
  readonly operation: string;
  /** The sizes of the indexed axes. */
  readonly sizes: readonly number[];
}

const found = new Float64Array(1);

const placesCpu: Implementation<PlacesAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [places], attributes: { operation, sizes } }) {
    const { shape } = places;
    const strides = inputs.map((index) => broadcastStrides(index.shape, index.strides, shape));
    const filled = <Value>(values: readonly Value[], rest: Value): Value[] => [
      ...values,
      ...new Array<Value>(MOST_LISTS - values.length).fill(rest),
    ];
    const block = {
      dtype: inputs[0].dtype,
      lists: inputs.length,
      sizes: filled(sizes, 0),
      offset: places.offset,
      offsets: filled(
        inputs.map(({ offset }) => offset),
        0,
      ),
      nest: collapse(shape, [...filled(strides, places.strides), places.strides]),
    };
    indexPlacesCall(operation, block, [...filled<Tensor | undefined>(inputs, undefined), places, found]);
    if (found[0] >= 0) throw outOfRange(operation, { inputs, sizes, shape }, found[0]);
  },
};

const placesPrimitive = definePrimitive<PlacesAttributes>({
  name: "indexPlaces",
  family: "indexing",
  implementations: { metal: onlyCpuFuses, cpu: placesCpu, reference: onlyCpuFuses },
});

/**
 * Broadcasts indices to a shape and returns each element's row-major position among axes of these sizes. Negative
 * indices count from the end.
 *
 * @throws {ShapeError} for an index out of range; on backends other than cpu it becomes a position that a later check
 * rejects
 */
export function placesAmong(
  operation: string,
  indices: readonly Tensor<IndexDType>[],
  sizes: Shape,
  shape: Shape,
): Tensor<"int64"> {
  if (firstBackend() === "cpu")
    return execute(placesPrimitive, alike(indices), shape, "int64", { operation, sizes }, operation);
  return expand(composed(indices, sizes), shape);
}

/**
 * Returns the indices of an axis with negative ones counted from its end. @throws {ShapeError} as {@link placesAmong}
 */
export const fromTheFront = (operation: string, index: Tensor<IndexDType>, size: number): Tensor<"int64"> =>
  noGrad(() => placesAmong(operation, [index], [size], index.shape));

/** Checks the range of indices. @throws {ShapeError} for an index that is not in [−size, size) */
export const checkSignedRange = (operation: string, index: Tensor<IndexDType>, size: number): void =>
  noGrad(() => placesAmong(operation, [index], [size], index.shape)).dispose();

/** Tells a check after {@link fromTheFront} how to report the caller's index. */
export const signed = { isSigned: true } as const;

/** Converts the indices to int64 unless all are int32. */
const alike = (indices: readonly Tensor<IndexDType>[]): readonly Tensor[] =>
  indices.every(({ dtype }) => dtype === "int32") ? indices : indices.map((index) => toDType(index, "int64"));

/** If an index is out of range, the result is a position that a later check rejects, such as −1. */
function composed(indices: readonly Tensor<IndexDType>[], sizes: Shape): Tensor<"int64"> {
  let places: Tensor<"int64"> | undefined;
  let isRight: Tensor<"bool"> | undefined;
  for (const [at, index] of indices.entries()) {
    const size = BigInt(sizes[at]);
    const given = toDType(index, "int64");
    const place = where(lt(given, 0n), add(given, size), given);
    if (indices.length === 1) return place; // an index out of range stays out of range
    const inRange = logicalAnd(ge(place, 0n), lt(place, size));
    places = places ? add(mul(places, size), place) : place;
    isRight = isRight ? logicalAnd(isRight, inRange) : inRange;
  }
  return where(isRight!, places!, -1n);
}

/** Returns the error for the first index out of range, with its value read from memory. */
function outOfRange(
  operation: string,
  { inputs, sizes, shape }: { inputs: readonly Tensor[]; sizes: Shape; shape: Shape },
  element: number,
): ShapeError {
  const at = shape.map((size, axis) => Math.floor(element / elementCount(shape.slice(axis + 1))) % size);
  const values = inputs.map((index) => {
    const strides = broadcastStrides(index.shape, index.strides, shape);
    const offset = at.reduce((sum, coordinate, axis) => sum + coordinate * strides[axis], index.offset);
    return Number(index.storage.array(index.dtype)[offset]);
  });
  const wrong = values.findIndex((value, list) => value < -sizes[list] || value >= sizes[list]);
  const [size, value] = [sizes[Math.max(wrong, 0)], wrong < 0 ? "a value that has since changed" : values[wrong]];
  return new ShapeError(
    operation,
    "indexOutOfRange",
    `expected indices of ${-size} to ${size - 1}, got ${value} at [${at.join(", ")}]`,
  );
}
