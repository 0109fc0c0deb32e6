import { record } from "../../autograd/record.ts";
import type { Implementation, Primitive } from "../../backend/backend.ts";
import { execute, executeInto } from "../../backend/dispatch.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";

import type { Tensor } from "../../tensor/tensor.ts";
import { loopNest } from "../elementwise/loop.metal.ts";

const copyReference: Implementation<undefined> = {
  run({ inputs: [input], outputs: [output] }) {
    store(output!, isFloat(input!.dtype) ? toNumbers(input!, output!.shape) : toIntegers(input!, output!.shape));
  },
};

const copyMetal: Implementation<undefined> = {
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output] }) {
    const { grid, threadgroup, parameters } = loopNest(output!, [input!]);
    launch({
      file: "elementwise/copy.metal",
      name: `copy_${metalTypeOf(input!.dtype)}_${metalTypeOf(output!.dtype)}`,
      operands: [reads(input!), writes(output!)],
      parameters,
      grid,
      threadgroup,
    });
  },
};

/** Copies elements from any strides to any strides, converting the dtype; the input is broadcast to the output's shape. */
export const copyPrimitive: Primitive = {
  name: "copy",
  implementations: { metal: copyMetal, cpu: { missing: "not written yet" }, reference: copyReference },
};

/** A copy with memory of its own, row-major. */
export function clone<D extends DType>(x: Tensor<D>): Tensor<D> {
  const output = execute(copyPrimitive, [x], x.shape, x.dtype, undefined);
  record("clone", [x], [output], [], (gradients) => gradients);
  return output;
}

/** The tensor itself where its elements lie row-major without gaps, else a copy that does. */
export function contiguous<D extends DType>(x: Tensor<D>): Tensor<D> {
  return x.isContiguous ? x : clone(x);
}

/** @internal Copies into a view that is there, converting the dtype. Not recorded. */
export function copyInto(target: Tensor, source: Tensor): void {
  executeInto(copyPrimitive, [source], [target], undefined);
}
