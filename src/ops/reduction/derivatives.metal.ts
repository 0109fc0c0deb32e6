import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { broadcastLoop } from "../../backend/metal/loop.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  type DerivativeAttributes,
  derivativeParameters,
  derivatives,
  type SelectAttributes,
  selectParameters,
} from "./primitive.ts";

export const derivativeMetal: MetalImplementation<DerivativeAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [x, y], outputs: [output], attributes: { name, parameter } }) {
    const { grid, threadgroup, loop } = broadcastLoop(output, [x, y]);
    return launch({
      file: "reduction/derivatives.metal",
      name: `derivative_${metalTypeOf(x.dtype)}`,
      constants: [derivatives.ordinal(name)],
      operands: [reads(x), reads(y), writes(output)],
      parameters: derivativeParameters.bytes({ loop, parameter }),
      grid,
      threadgroup,
    });
  },
};

export const selectMetal: MetalImplementation<SelectAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [x, indices], outputs: [output], attributes: { axis } }) {
    const { shape } = output;
    const { grid, threadgroup, loop } = broadcastLoop(output, [x, indices]);
    return launch({
      file: "reduction/derivatives.metal",
      name: `select_at_${metalTypeOf(x.dtype)}`,
      constants: [0],
      operands: [reads(x), reads(indices), writes(output)],
      parameters: selectParameters.bytes({
        loop,
        size: shape[axis] ?? 1,
        inner: elementCount(shape.slice(axis + 1)),
      }),
      grid,
      threadgroup,
    });
  },
};
