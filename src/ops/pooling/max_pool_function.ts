/** Max pooling in one pass, and its gradients. */
import { needsGradient, record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { ge } from "../elementwise/comparison.ts";
import { maximum } from "../elementwise/extrema.ts";
import { where } from "../elementwise/where.ts";
import { gatherAlong } from "../indexing/adjoint.ts";
import { reshape } from "../view/reshape.ts";
import { maxPoolCpu, maxPoolGradientCpu } from "./max_pool.cpu.ts";
import { maxPoolGradientMetal, maxPoolMetal } from "./max_pool.metal.ts";
import { maxPoolGradientReference, maxPoolReference } from "./max_pool.reference.ts";
import { ADAPTIVE, attributesOf, type PoolingAttributes } from "./primitive.ts";
import type { Windows } from "./windows.ts";

/** Input: x. Outputs: values and, if needed, indices: int32 or int64 positions in a plane, −1 for no element. */
const maxPoolPrimitive = definePrimitive<PoolingAttributes>({
  name: "maxPool",
  family: "pooling",
  implementations: { metal: maxPoolMetal, cpu: maxPoolCpu, reference: maxPoolReference },
});

/**
 * Inputs: a gradient of the values, and indices. Output: for each element of x, the sum of the gradients whose index is
 * its position.
 */
const maxPoolGradientPrimitive = definePrimitive<PoolingAttributes>({
  name: "maxPoolGradient",
  family: "pooling",
  implementations: { metal: maxPoolGradientMetal, cpu: maxPoolGradientCpu, reference: maxPoolGradientReference },
});

type Index = "int32" | "int64";

/** Number of positions that int32 can represent. */
const MOST_PLACES = 2 ** 31;

/** Result of {@link largestOfWindows}; indices if they are requested or a gradient needs them. */
interface Largest {
  readonly values: Tensor;
  readonly indices: Tensor<Index> | undefined;
}

/** Computes the largest element of each window. @param isIndexed whether to return indices, as int64 */
export function largestOfWindows(operation: string, x: Tensor, windows: Windows, isIndexed: boolean): Largest {
  const lead = x.shape.slice(0, -windows.input.length);
  const attributes = attributesOf(elementCount(lead), windows);
  const dense = contiguous(x);
  const shape = [...lead, ...windows.output];
  const indexDType: Index = isIndexed || elementCount(windows.input) > MOST_PLACES ? "int64" : "int32";
  const ofIndices = isIndexed || needsGradient(x) ? [{ shape, dtype: indexDType }] : [];
  const specs = [{ shape, dtype: x.dtype }, ...ofIndices] as const;
  const [values, indices] = executeMany(maxPoolPrimitive, [dense], specs, attributes, operation);
  record(operation, [dense], [values], indices ? [indices] : [], ([gradient], [saved]) => [
    scattered(operation, gradient, saved!, { attributes, shape: dense.shape }),
  ]);
  return { values, indices };
}

/** The planes of x. */
interface Planes {
  readonly attributes: PoolingAttributes;
  readonly shape: readonly number[];
}

/** Computes the gradient of x from the gradient of the values. */
function scattered(operation: string, gradient: Tensor, indices: Tensor<Index>, { attributes, shape }: Planes): Tensor {
  const name = `${operation}Gradient`;
  const dense = contiguous(gradient);
  const output = execute(maxPoolGradientPrimitive, [dense, indices], shape, gradient.dtype, attributes, name);
  record(name, [dense], [output], [indices], ([incoming], [saved]) => [taken(operation, incoming, saved, attributes)]);
  return output;
}

/** Gathers the elements at the indices: the adjoint of {@link scattered}. */
function taken(operation: string, x: Tensor, indices: Tensor<Index>, attributes: PoolingAttributes): Tensor {
  const rows = <T extends Tensor>(tensor: T): T => reshape(tensor, [attributes.planes, -1]) as T;
  if (x.size === 0 || indices.size === 0) return reshape(x, indices.shape);
  if (!hasWindowsOfPadding(attributes))
    return reshape(gatherAlong(operation, rows(x), rows(indices), 1), indices.shape);
  const named = maximum(indices, 0n);
  const elements = reshape(gatherAlong(operation, rows(x), rows(named), 1), indices.shape);
  return where(ge(indices, 0), elements, 0);
}

/** Tests whether a window may contain no element, which happens with large dilation on a short axis. */
function hasWindowsOfPadding({ input, output, kernelSize, stride, dilation, before }: PoolingAttributes): boolean {
  return output.some((count, axis) => {
    if (kernelSize[axis] === ADAPTIVE) return false;
    for (let at = 0; at < count; at++) {
      const first = at * stride[axis] - before[axis];
      const inside = first < 0 ? first + Math.ceil(-first / dilation[axis]) * dilation[axis] : first;
      if (inside >= input[axis] || inside > first + (kernelSize[axis] - 1) * dilation[axis]) return true;
    }
    return false;
  });
}
