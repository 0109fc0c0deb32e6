import { noGrad } from "../../autograd/modes.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ShapeError } from "../../core/errors.ts";
import { axis as axisKind, flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { arange } from "../creation/arange.ts";
import { sub } from "../elementwise/arithmetic.ts";
import { ne } from "../elementwise/comparison.ts";
import { where } from "../elementwise/where.ts";
import { gather } from "../indexing/gather.ts";
import { cat } from "../join/cat.ts";
import { cummax } from "../scan/running_extrema.ts";
import { indicesOf } from "../sorting/runs.ts";
import { sort } from "../sorting/sort.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { squeeze } from "../view/squeeze.ts";
import { argmax, type ValuesAndIndices } from "./extrema.ts";
import { fusesMode, modePlaces } from "./order.cpu.ts";
import type { OrderOptions } from "./order.ts";

/**
 * Returns the most frequent element along an axis and its last index. If several elements are equally frequent, returns
 * the smallest.
 *
 * @returns values and indices int64, of x's shape without the axis (of size 1 with `keepdim`)
 *
 * @example
 * mode(tensor([3, 1, 3, 2])); // values 3, indices 2
 *
 * @throws {ShapeError} for an axis out of range or without elements.
 */
export function mode<D extends DType>(
  x: Tensor<D>,
  ...options: Given<OrderOptions, ["dim", "keepdim"]>
): ValuesAndIndices<D>;
export function mode(...values: unknown[]): ValuesAndIndices<DType> {
  const { x, dim, keepdim } = modeParameters(values);
  const axis = normalizeAxis("mode", dim, x.rank);
  if (x.rank > 0 && x.shape[axis] === 0)
    throw new ShapeError(
      "mode",
      "emptyReduction",
      `${x.describe()} has no elements along the reduced axes, so mode is undefined; expected at least one`,
    );
  checkElements("mode", [x]);
  return underName("mode", () =>
    tidy(() => {
      const lines = x.rank === 0 ? reshape(x, [1]) : x;
      const places = noGrad(() => placesOfModes(lines, axis));
      const taken = <D extends DType>(tensor: Tensor<D>): Tensor<D> =>
        keepdim && x.rank > 0 ? tensor : squeeze(tensor, { dim: axis });
      return { values: taken(gather(lines, places, { dim: axis })), indices: taken(places) };
    }),
  );
}
mode.method = "declared" as const;
const modeParameters = parameters("mode", {
  x: operand(aTensor),
  dim: optional(axisKind, -1),
  keepdim: optional(flag, false),
});

/** After sorting, equal elements form runs. Returns the last index of the first longest run. */
function placesOfModes(x: Tensor, axis: number): Tensor<"int64"> {
  if (fusesMode(x, axis)) return modePlaces(x, axis);
  const size = x.shape[axis];
  const { values, indices } = sort(x, { dim: axis });
  if (firstBackend() === "cpu") return indicesOf("mode", values, indices, axis);
  const along = x.shape.map((_, at) => (at === axis ? size : 1));
  const places = expand(reshape(arange(0, size, { dtype: "int64" }), along), x.shape);
  const differs = ne(narrow(values, axis, 1, size - 1), narrow(values, axis, 0, size - 1));
  const begins = cat([filled(x.shape.with(axis, 1), "bool", true), differs], axis);
  const starts = cummax(where(begins, places, 0n), axis).values;
  const longest = argmax(sub(places, starts), { dim: axis, keepdim: true });
  return gather(indices, longest, { dim: axis });
}
