/**
 * The primitives of indexing: `gather`, `scatter`, `triangle` and `oneHot`, and the checks of indices and offsets that
 * precede some of them.
 */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";

/** Attributes of `gather` and `scatterOthers`. */
export interface IndexAttributes {
  /** The operation that the caller called, for errors. */
  readonly operation: string;
  /** The indexed axis. */
  readonly dim: number;
  /** See `IndexRange`. */
  readonly axes?: readonly number[];
  readonly isSigned?: boolean;
  /** For `gather` and `scatter` on cpu and reference: whether negative indices count from the end. */
  readonly wraps?: boolean;
}

/** How elements scattered to one place are combined: their sum, product, largest, smallest, or the last one. */
export const scatterings = enumeration("Scattering", ["sum", "prod", "amax", "amin", "last"]);
export type Scattering = NameOf<typeof scatterings>;

/** Attributes of `scatter`: how elements are combined, and whether the indexed elements of x are included. */
export interface ScatterAttributes extends IndexAttributes {
  readonly way: Scattering;
  readonly includesSelf: boolean;
}

/** Attributes of `scatterOthers`. */
export interface ScatterOthersAttributes extends IndexAttributes {
  readonly includesSelf: boolean;
}

/** Attributes of `triangle`: which elements of a matrix are kept. */
export interface TriangleAttributes {
  /** If true, keeps column ≤ row + diagonal; otherwise column ≥ row + diagonal. */
  readonly lower: boolean;
  readonly diagonal: number;
}

/** `stride` is the stride of x along the axis; in the loop, that axis of x has stride 0. */
export const gatherParameters = struct("Gather", {
  loop: loopNest,
  size: whole,
  stride: whole,
});
export const gatherCall = cpuCall(
  "gather",
  { dtype, indexDtype: dtype, offsets: array(whole, 3), size: whole, stride: whole, wraps: flag, nest: nest(3) },
  ["x", "index", "output"],
);

export const scatterParameters = struct("Scatter", {
  loop: loopNest,
  inner: whole,
  size: whole,
  length: whole,
  sourceStride: whole,
  keyStride: whole,
  outputStride: whole,
});

const scatterFields = {
  dtype,
  indexDtype: dtype,
  offsets: array(whole, 4),
  length: whole,
  size: whole,
  strides: array(whole, 4),
  slices: nest(4),
};

export const scatterCall = cpuCall(
  "scatter",
  { ...scatterFields, way: oneOf(scatterings), includesSelf: flag, wraps: flag },
  ["x", "index", "source", "output"],
);

/** The strides and the nest are for x, index, source and output. The output has the source's layout. */
export const scatterOthersCall = cpuCall("scatterOthers", { ...scatterFields, includesSelf: flag }, [
  "x",
  "index",
  "source",
  "output",
]);

const triangleFields = { lower: flag, diagonal: whole };

export const triangleParameters = struct("Triangle", { loop: loopNest, ...triangleFields });
export const triangleCall = cpuCall(
  "triangle",
  { dtype, offsets: array(whole, 2), ...triangleFields, columns: whole, stride: whole, rows: nest(1) },
  ["x", "output"],
);

/** `count` is the number of elements in the triangle. */
export const triangleIndicesCall = cpuCall(
  "triangleIndices",
  { lower: flag, rows: whole, columns: whole, diagonal: whole, count: whole },
  ["output"],
);

export const oneHotParameters = struct("OneHot", { loop: loopNest, classes: whole });
export const oneHotCall = cpuCall("oneHot", { dtype, offsets: array(whole, 2), classes: whole, nest: nest(1) }, [
  "index",
  "output",
]);

const rangeFields = { size: whole, except: whole };

export const rangeParameters = struct("IndexRange", { loop: loopNest, ...rangeFields });

/** `found` is the position of the first index out of range, or −1. */
export const findOutOfRangeCall = cpuCall("findOutOfRange", { dtype, offset: whole, ...rangeFields, nest: nest(1) }, [
  "index",
  "found",
]);

/** The maximum number of index tensors in a call of `indexPlaces`: one for each axis. */
export const MOST_LISTS = 8;

/** `found` is the position of the first element with an index out of range, or −1. */
export const indexPlacesCall = cpuCall(
  "indexPlaces",
  {
    dtype,
    lists: whole,
    sizes: array(whole, MOST_LISTS),
    offsets: array(whole, MOST_LISTS),
    offset: whole,
    nest: nest(MOST_LISTS + 1),
  },
  [...Array.from({ length: MOST_LISTS }, (_, at) => `index${at}`), "places", "found"],
);

/** `found` is the position of the first offset that is less than its predecessor or more than `size`, or −1. */
export const findDescentCall = cpuCall("findDescent", { dtype, offset: whole, count: whole, size: whole }, [
  "offsets",
  "found",
]);
