import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, startOf, writes } from "../../backend/metal/launch.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type MultinomialAttributes, multinomialParameters } from "./primitive.ts";

const SIMD_WIDTH = 32;
const MOST_THREADS = 256;

export const multinomialMetal: MetalImplementation<MultinomialAttributes, [Tensor], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs: [weights], outputs: [output], attributes }) {
    const [rows, categories] = tupleOf(weights.shape, 2);
    const [rowStride, stride] = tupleOf(weights.strides, 2);
    const { samples, replacement } = attributes;
    const simdgroups = Math.ceil(Math.ceil(categories / 4) / SIMD_WIDTH);
    return launch({
      file: "random/multinomial.metal",
      name: `multinomial_${metalTypeOf(weights.dtype)}`,
      operands: [reads(weights), writes(output)],
      parameters: multinomialParameters.bytes({
        ...attributes,
        categories,
        rowStride,
        stride,
        start: startOf(weights),
      }),
      threadgroups: [replacement ? samples : 1, rows],
      threadgroup: [Math.min(simdgroups * SIMD_WIDTH, MOST_THREADS)],
    });
  },
};
