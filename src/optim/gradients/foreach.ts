/**
 * Operations on many gradients at once (`foreach` in PyTorch). A model has dozens of small gradients, and a launch for
 * each would cost more than its work. One launch takes up to {@link MAX_GRADIENTS} dense tensors of one dtype.
 */
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { zeros } from "../../ops/creation/full.ts";
import { cat } from "../../ops/join/cat.ts";
import { norm } from "../../ops/reduction/norm.ts";
import { accumulationDType, type DType, isComplex } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { partsOf } from "../slot.ts";
import { chunksOf } from "./chunks.ts";
import { normsCpu } from "./norms.cpu.ts";
import { normsMetal } from "./norms.metal.ts";
import { normsReference } from "./norms.reference.ts";
import { MAX_GRADIENTS } from "./primitive.ts";
import { scaleCpu } from "./scale.cpu.ts";
import { scaleMetal } from "./scale.metal.ts";
import { scaleReference } from "./scale.reference.ts";

/**
 * Inputs: dense gradients of one dtype. Output: √ Σ g² of each chunk of the first gradient, then of the second, and so
 * on, in float32 (float64 for float64 gradients).
 */
export const normsPrimitive = definePrimitive({
  name: "gradientNorms",
  family: "optim",
  implementations: { metal: normsMetal, cpu: normsCpu, reference: normsReference },
});

/**
 * Inputs: a factor, float32 (float64 for float64 gradients), and dense gradients of one dtype. Outputs: their products,
 * each rounded once.
 */
export const scalePrimitive = definePrimitive({
  name: "gradientScale",
  family: "optim",
  implementations: { metal: scaleMetal, cpu: scaleCpu, reference: scaleReference },
});

/**
 * Computes √ Σ g² over all elements of all gradients, in float32 (float64 if any gradient is float64), in a fixed
 * order.
 */
export function euclideanNorm(operation: string, gradients: readonly Tensor[]): Tensor {
  const parts = gradients.map(partsOf);
  const widest = widestDType(parts);
  const norms = batchesOf(parts).map((indices) => {
    const members = indices.map((index) => contiguous(parts[index]));
    const chunks = members.reduce((total, { size }) => total + chunksOf(size), 0);
    const dtype = accumulationDType(members[0].dtype);
    return toDType(execute(normsPrimitive, members, [chunks], dtype, undefined, operation), widest);
  });
  return norms.length === 0 ? zeros([], { dtype: widest }) : norm(norms.length === 1 ? norms[0] : cat(norms));
}

/** Returns new tensors: the gradients times a one-element tensor, without reading it back. */
export function scaled(operation: string, gradients: readonly Tensor[], factor: Tensor): Tensor[] {
  const results: Tensor[] = [];
  const parts = gradients.map((gradient) => partsOf(contiguous(gradient)));
  for (const indices of batchesOf(parts)) {
    const members = indices.map((index) => contiguous(parts[index]));
    const inputs = [toDType(factor, accumulationDType(members[0].dtype)), ...members];
    const products = executeMany(scalePrimitive, inputs, members, undefined, operation);
    for (const [at, index] of indices.entries()) {
      const { dtype, shape } = gradients[index];
      const { storage } = products[at];
      results[index] = isComplex(dtype) ? new Tensor(storage, dtype, shape) : products[at];
    }
  }
  return results;
}

const widestDType = (tensors: readonly Tensor[]): DType =>
  tensors.some(({ dtype }) => dtype === "float64") ? "float64" : "float32";

/** Groups the indices of gradients by dtype, with at most {@link MAX_GRADIENTS} in a batch. */
function batchesOf(gradients: readonly Tensor[]): number[][] {
  const byDType = Map.groupBy(gradients.keys(), (index) => gradients[index].dtype);
  return [...byDType.values()].flatMap((indices) =>
    Array.from({ length: Math.ceil(indices.length / MAX_GRADIENTS) }, (_, index) =>
      indices.slice(index * MAX_GRADIENTS, (index + 1) * MAX_GRADIENTS),
    ),
  );
}
