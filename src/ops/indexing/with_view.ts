/** Replacement of a view. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { clone, copyInto } from "../copy/copy.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";

/** Returns a copy of x with a view of it overwritten by a value of its shape and dtype. */
export function withView(x: Tensor, take: (whole: Tensor) => Tensor, value: Tensor): Tensor {
  const output = noGrad(() => clone(x));
  noGrad(() => {
    const view = take(output);
    if (view.size > 0) copyInto(view, value);
  });
  const { shape, dtype } = value;
  record("setAt", [x, value], [output], [], ([gradient], _saved, needs) => [
    needs[0] ? withView(gradient, take, expand(filled([], dtype, 0), shape)) : null,
    needs[1] ? take(gradient) : null,
  ]);
  return output;
}
