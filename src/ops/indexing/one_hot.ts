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
  /** Size of the new axis. Default: one more than the largest index, for which the indices are read, blocking. */
  numClasses?: number | undefined;
}

/**
 * For each index a row of zeros with a 1 at the index, int64: a new last axis.
 *
 * @example
 * oneHot(tensor([0n, 2n]), 3); // [[1, 0, 0], [0, 0, 1]]
 *
 * @throws {ShapeError} `indexOutOfRange` for an index that is negative or too large (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools. @throws {ArgumentError} for a number of classes
 * that is not whole or below 1, or none given for an empty tensor.
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

/** One more than the largest index; of negative ones at least 1, so that they are reported as what they are. */
function classesOf(index: Tensor<IndexDType>): number {
  if (index.size === 0)
    throw new ArgumentError("oneHot", "noClasses", `${index.describe()} has no largest index; give numClasses`);
  let largest = 0;
  for (const value of index.dataSync()) largest = Math.max(largest, Number(value));
  return largest + 1;
}
