import { operand, parameters } from "../../core/parameters.ts";
import { tensorsInline } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { expand } from "./expand.ts";
import { viewOf } from "./view.ts";

/**
 * Broadcasts tensors to their common shape. Returns views.
 *
 * @param tensors in a list or one by one
 *
 * @example
 * broadcastTensors([tensor([1, 2]), tensor([[3], [4]])])[0].shape; // [2, 2]
 *
 * @throws {ShapeError} if shapes can't be broadcast together.
 */
export function broadcastTensors(...tensors: [tensors: readonly Tensor[]] | Tensor[]): Tensor[];
export function broadcastTensors(...values: unknown[]): Tensor[] {
  const { tensors } = broadcastTensorsParameters(values);
  const shape = broadcastShapes("broadcastTensors", ...tensors.map((each) => each.shape));
  return tensors.map((each) => {
    const view = expand(each, shape);
    return view === each
      ? viewOf("broadcastTensors", each, shape, each.strides, each.offset, ([gradient]) => [gradient])
      : view;
  });
}
const broadcastTensorsParameters = parameters("broadcastTensors", { tensors: operand(tensorsInline) });
