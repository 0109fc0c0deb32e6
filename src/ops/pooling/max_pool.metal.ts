/** Max pooling on metal: one thread for each window; in the gradient, one for each element of x. */
import type { MetalImplementation, OperationCall } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { elementGrid } from "../../backend/metal/loop.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type PoolingAttributes, poolingParameters } from "./primitive.ts";

const FILE = "pooling/max_pool.metal";
/** Bound on positions along an axis and elements of a plane, which kernels count in 32 bits. */
const MOST = 2 ** 31;

export const maxPoolMetal: MetalImplementation<PoolingAttributes, [Tensor]> = {
  unsupported,
  run({ inputs: [x], outputs, attributes }) {
    const [values, indices = values] = outputs as [Tensor, Tensor?];
    const indexed = indices.dtype === "int64" ? "long" : "int";
    if (values.size === 0) return null;
    return launch({
      file: FILE,
      name: `max_pool_${metalTypeOf(values.dtype)}_${indexed}`,
      constants: [outputs.length - 1],
      operands: [reads(x), writes(values), writes(indices)],
      parameters: poolingParameters.bytes(attributes),
      ...elementGrid(values.size),
    });
  },
};

export const maxPoolGradientMetal: MetalImplementation<PoolingAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported,
  run({ inputs: [gradient, indices], outputs: [output], attributes }) {
    if (output.size === 0) return null;
    return launch({
      file: FILE,
      name: `max_pool_gradient_${metalTypeOf(output.dtype)}_${metalTypeOf(indices.dtype)}`,
      constants: [1],
      operands: [reads(gradient), reads(indices), writes(output)],
      parameters: poolingParameters.bytes(attributes),
      ...elementGrid(output.size),
    });
  },
};

function unsupported(call: Pick<OperationCall<PoolingAttributes>, "inputs" | "attributes">): string | undefined {
  const { input, output, kernelSize, stride, dilation, before } = call.attributes;
  const furthest = [0, 1, 2].map(
    (axis) => output[axis] * stride[axis] + kernelSize[axis] * dilation[axis] + before[axis] + input[axis],
  );
  const products = [0, 1, 2].map((axis) => (kernelSize[axis] > 0 ? 0 : (input[axis] + 1) * (output[axis] + 1)));
  const sizes = [input, output].map((shape) => shape.reduce((product, size) => product * size, 1));
  if (Math.max(...sizes, ...furthest, ...products) >= MOST) return `window positions reach ${MOST}`;
  return noFloat64(call);
}
