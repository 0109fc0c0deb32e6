import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatConstants, weightBuffers, weightsStruct } from "../metal.ts";
import { quantWeights, type WeightAttributes } from "../primitive.ts";

const VALUES = 4; // values per thread
const THREADS = 256;

export const dequantizeMetal: MetalImplementation<WeightAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes }) {
    const { rows, columns } = attributes;
    const width = Math.ceil(columns / VALUES);
    const across = Math.min(width, THREADS);
    return launch({
      file: "quant/dequantize.metal",
      name: `dequantize_${metalTypeOf(output.dtype)}`,
      constants: formatConstants(attributes, inputs),
      operands: [...weightBuffers(inputs), writes(output)],
      parameters: quantWeights.bytes(weightsStruct(attributes)),
      grid: [width, rows],
      threadgroup: [across, Math.min(rows, Math.floor(THREADS / across))],
    });
  },
};
