import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ArgumentError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { checkRank } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { anIndex, type IndexDType } from "./indices.ts";
import { oneHotCpu } from "./one_hot.cpu.ts";
import { oneHotMetal } from "./one_hot.metal.ts";
import { oneHotReference } from "./one_hot.reference.ts";

const oneHotPrimitive = definePrimitive({
  name: "oneHot",
  family: "indexing",
  implementations: { metal: oneHotMetal, cpu: oneHotCpu, reference: oneHotReference },
});

/** Options of {@link oneHot}. */
export interface OneHotOptions {
  /**
   * Size of the new axis. Default: one more than the largest index, which reads the indices and waits for the device.
   */
  numClasses?: number | undefined;
}

/**
 * One-hot encodes indices: appends an axis that is 1 at the index and 0 elsewhere, as int64.
 *
 * @returns [...index's shape, numClasses]
 *
 * @example
 * oneHot(tensor([0n, 2n]), 3); // [[1, 0, 0], [0, 0, 1]]
 *
 * @throws {ShapeError} `indexOutOfRange` if an index is negative or too large (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools.
 * @throws {ArgumentError} if `numClasses` is not a whole number of at least 1, or is omitted for an empty tensor.
 */
export function oneHot(index: Tensor<IndexDType>, ...options: Given<OneHotOptions, ["numClasses"]>): Tensor<"int64">;
export function oneHot(...values: unknown[]): Tensor<"int64"> {
  const { index, numClasses } = oneHotParameters(values);
  const classes = numClasses === undefined || numClasses === -1 ? classesOf(index) : numClasses; // PyTorch's default
  if (!Number.isSafeInteger(classes) || classes < 1)
    throw new ArgumentError(
      "oneHot",
      "invalidCount",
      `expected numClasses to be a whole number of at least 1, got ${classes}`,
    );
  const shape = [...index.shape, classes];
  checkRank("oneHot", shape);
  return execute(oneHotPrimitive, [index], shape, "int64", undefined);
}
oneHot.method = "int64" as const;
const oneHotParameters = parameters("oneHot", { index: operand(anIndex), numClasses: optional(someNumber) });

/** One more than the largest index, and at least 1, so that negative indices are reported as such. */
function classesOf(index: Tensor<IndexDType>): number {
  if (index.size === 0)
    throw new ArgumentError("oneHot", "noClasses", `${index.describe()} has no largest index; pass numClasses`);
  let largest = 0;
  for (const value of index.dataSync()) largest = Math.max(largest, Number(value));
  return largest + 1;
}
