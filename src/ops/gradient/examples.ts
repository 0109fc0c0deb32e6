/** Operations at the start and end of `vmap`, with their gradients. */
import { record } from "../../autograd/record.ts";
import { type BatchLevel, batched, levelsOf, unbatched } from "../../tensor/batched.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { sum } from "../reduction/sum.ts";
import { expand } from "../view/expand.ts";
import { unsqueeze } from "../view/squeeze.ts";

/** @internal Returns a tensor that shows one example of `x`: the axis with the examples disappears. */
export function enterExamples(x: Tensor, axis: number, level: BatchLevel): Tensor {
  const example = batched(x, axis, level);
  record("vmap", [x], [example], [], ([gradient]) => [leaveExamples(gradient, axis, level)]);
  return example;
}

/** @internal Returns a tensor with all examples along an axis. A tensor that all examples share is repeated. */
export function leaveExamples(example: Tensor, axis: number, level: BatchLevel): Tensor {
  if (!levelsOf(example).includes(level))
    return expand(unsqueeze(example, axis), example.shape.toSpliced(axis, 0, level.size));
  const x = unbatched(example, axis, level);
  record("vmap", [example], [x], [], ([gradient]) => [enterExamples(gradient, axis, level)]);
  return x;
}

/** @internal Sums the gradients of a tensor that all examples share. */
export const addExamples = (gradient: Tensor, level: BatchLevel): Tensor =>
  sum(leaveExamples(gradient, 0, level), { dim: 0 });
