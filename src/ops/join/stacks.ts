/** NumPy's stacking functions, and grids of coordinates. */
import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, severalTensors, tensorsInline } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { fitsAlong, joined as joinedAlong } from "./joined.ts";

/**
 * Returns a view with at least one axis.
 *
 * @example
 * atleast1d(tensor(3)); // [3]
 */
export function atleast1d<D extends DType>(x: Tensor<D>): Tensor<D>;
export function atleast1d(...values: unknown[]): Tensor {
  return withAxes(atleast1dParameters(values).x, 1);
}
atleast1d.method = "same" as const;
const atleast1dParameters = parameters("atleast1d", { x: operand(aTensor) });

/**
 * Returns a view with at least two axes; new axes come first.
 *
 * @example
 * atleast2d(tensor([1, 2])); // [[1, 2]]
 */
export function atleast2d<D extends DType>(x: Tensor<D>): Tensor<D>;
export function atleast2d(...values: unknown[]): Tensor {
  return withAxes(atleast2dParameters(values).x, 2);
}
atleast2d.method = "same" as const;
const atleast2dParameters = parameters("atleast2d", { x: operand(aTensor) });

/**
 * Returns a view with at least three axes, as NumPy does: a vector becomes [1, n, 1], a matrix [m, n, 1].
 *
 * @example
 * atleast3d(tensor([1, 2])); // [[[1], [2]]]
 */
export function atleast3d<D extends DType>(x: Tensor<D>): Tensor<D>;
export function atleast3d(...values: unknown[]): Tensor {
  return withAxes(atleast3dParameters(values).x, 3);
}
atleast3d.method = "same" as const;
const atleast3dParameters = parameters("atleast3d", { x: operand(aTensor) });

function withAxes(x: Tensor, rank: number): Tensor {
  if (x.rank >= rank) return x;
  if (rank === 3) return x.rank === 2 ? unsqueeze(x, -1) : reshape(x, [1, x.size, 1]);
  return reshape(x, [...new Array<number>(rank - x.rank).fill(1), ...x.shape]);
}

/**
 * Joins tensors horizontally: along the second axis, vectors along their only axis.
 *
 * @example
 * hstack([tensor([1, 2]), tensor([3])]); // float32 [1, 2, 3]
 *
 * @throws {ShapeError} if ranks or the other axes differ.
 * @throws {ArgumentError} for an empty list.
 */
export function hstack<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function hstack(...values: unknown[]): Tensor {
  const { tensors } = hstackParameters(values);
  const axis = (tensors[0]?.rank ?? 0) > 1 ? 1 : 0;
  return joined("hstack", tensors, axis, 1);
}
const hstackParameters = parameters("hstack", { tensors: operand(severalTensors) });

/**
 * Joins tensors vertically: along the first axis, vectors as rows.
 *
 * @example
 * vstack([tensor([1, 2]), tensor([3, 4])]); // float32 [[1, 2], [3, 4]]
 *
 * @throws {ShapeError} if ranks or the other axes differ.
 * @throws {ArgumentError} for an empty list.
 */
export function vstack<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function vstack(...values: unknown[]): Tensor {
  return joined("vstack", vstackParameters(values).tensors, 0, 2);
}
const vstackParameters = parameters("vstack", { tensors: operand(severalTensors) });

/**
 * Joins tensors in depth: along the third axis, after {@link atleast3d}.
 *
 * @example
 * dstack([tensor([1, 2]), tensor([3, 4])]); // float32 [[[1, 3], [2, 4]]]
 *
 * @throws {ShapeError} if ranks or the other axes differ.
 * @throws {ArgumentError} for an empty list.
 */
export function dstack<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function dstack(...values: unknown[]): Tensor {
  return joined("dstack", dstackParameters(values).tensors, 2, 3);
}
const dstackParameters = parameters("dstack", { tensors: operand(severalTensors) });

/**
 * Joins columns: vectors as columns, other tensors along the second axis.
 *
 * @example
 * columnStack([tensor([1, 2]), tensor([3, 4])]); // float32 [[1, 3], [2, 4]]
 *
 * @throws {ShapeError} if ranks or the other axes differ.
 * @throws {ArgumentError} for an empty list.
 */
export function columnStack<D extends DType>(tensors: readonly Tensor<D>[]): Tensor<D>;
export function columnStack(...values: unknown[]): Tensor {
  const { tensors } = columnStackParameters(values);
  const columns = tensors.map((each) => (each.rank < 2 ? reshape(each, [each.size, 1]) : each));
  return joined("columnStack", columns, 1, 2);
}
const columnStackParameters = parameters("columnStack", { tensors: operand(severalTensors) });

function joined(operation: string, tensors: readonly Tensor[], axis: number, rank: number): Tensor {
  const parts = tensors.map((each) => withAxes(each, rank));
  const [first] = parts;
  if (!first) throw new ShapeError(operation, "noTensors", "expected at least one tensor, got an empty list");
  for (const part of parts)
    if (!fitsAlong(part, first, axis))
      throw new ShapeError(
        operation,
        "shapesDiffer",
        `expected tensors of equal shape except along axis ${axis}, got ${first.describe()} and ${part.describe()}`,
      );
  return underName(operation, () => joinedAlong("cat", parts, first, axis));
}

/** Options of {@link meshgrid}. */
export interface MeshgridOptions {
  /** `"ij"`: the first vector varies along the first axis. `"xy"`: along the second, as in NumPy. Default `"ij"`. */
  indexing?: "ij" | "xy" | undefined;
}

/**
 * Returns grids of coordinates: for each vector, a view with its elements repeated along the axes of the others.
 *
 * @example
 * meshgrid([tensor([1, 2]), tensor([3, 4])]); // [[1, 1], [2, 2]] and [[3, 4], [3, 4]]
 *
 * @throws {ShapeError} for a tensor with more than one axis.
 * @throws {ArgumentError} for an unknown `indexing`.
 */
export function meshgrid<D extends DType>(
  tensors: readonly Tensor<D>[],
  ...options: Given<MeshgridOptions, ["indexing"]>
): Tensor<D>[];
export function meshgrid(...values: unknown[]): Tensor[] {
  const { tensors, indexing } = meshgridParameters(values);
  for (const each of tensors)
    if (each.rank > 1) throw new ShapeError("meshgrid", "wrongRank", `expected vectors, got ${each.describe()}`);
  const order = tensors.map((_, at) => (indexing === "xy" && at < 2 && tensors.length > 1 ? 1 - at : at));
  const shape = order.map((at) => tensors[at].size);
  return tensors.map((vector, at) => {
    const along = order.map((which) => (which === at ? vector.size : 1));
    return expand(reshape(vector, along), shape);
  });
}
const meshgridParameters = parameters("meshgrid", {
  tensors: operand(tensorsInline),
  indexing: optional(choice("ij", "xy"), "ij"),
});
