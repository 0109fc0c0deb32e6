/**
 * Operations on many gradients at once (`foreach` in PyTorch): a model has dozens of small ones, and a launch for each
 * would cost more than its work. One launch takes up to {@link MAX_GRADIENTS} dense tensors of a dtype.
 */
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { zeros } from "../../ops/creation/full.ts";
import { cat } from "../../ops/join/cat.ts";
import { norm } from "../../ops/reduction/norm.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { chunksOf } from "./chunks.ts";
import { normsCpu } from "./norms.cpu.ts";
import { normsMetal } from "./norms.metal.ts";
import { normsReference } from "./norms.reference.ts";
import { MAX_GRADIENTS } from "./primitive.ts";
import { scaleCpu } from "./scale.cpu.ts";
import { scaleMetal } from "./scale.metal.ts";
import { scaleReference } from "./scale.reference.ts";

/**
 * Inputs: dense gradients of a dtype. Output: √ Σ g² of each chunk of the first, then of the second, and so on;
 * float32, float64 of float64.
 */
export const normsPrimitive = definePrimitive({
  name: "gradientNorms",
  family: "optim",
  implementations: { metal: normsMetal, cpu: normsCpu, reference: normsReference },
});

/**
 * Inputs: a factor, float32 (float64 of float64), and dense gradients of a dtype. Outputs: their products, each rounded
 * once.
 */
export const scalePrimitive = definePrimitive({
  name: "gradientScale",
  family: "optim",
  implementations: { metal: scaleMetal, cpu: scaleCpu, reference: scaleReference },
});

/** √ Σ g² over all elements of all gradients, in float32 (float64 where one of them is), in a fixed order. */
export function euclideanNorm(operation: string, gradients: readonly Tensor[]): Tensor {
  const widest = widestDType(gradients);
  const norms = batchesOf(gradients).map((indices) => {
    const members = indices.map((index) => contiguous(gradients[index]!));
    const chunks = members.reduce((total, { size }) => total + chunksOf(size), 0);
    const dtype = accumulationDType(members[0]!.dtype);
    return toDType(execute(normsPrimitive, members, [chunks], dtype, undefined, operation), widest);
  });
  return norms.length === 0 ? zeros([], { dtype: widest }) : norm(norms.length === 1 ? norms[0]! : cat(norms));
}

/** New tensors: the gradients times a factor of one element that lies on the device. */
export function scaled(operation: string, gradients: readonly Tensor[], factor: Tensor): Tensor[] {
  const results: Tensor[] = [];
  for (const indices of batchesOf(gradients)) {
    const members = indices.map((index) => contiguous(gradients[index]!));
    const inputs = [toDType(factor, accumulationDType(members[0]!.dtype)), ...members];
    const products = executeMany(scalePrimitive, inputs, members, undefined, operation);
    for (const [at, index] of indices.entries()) results[index] = products[at]!;
  }
  return results;
}

const widestDType = (tensors: readonly Tensor[]): DType =>
  tensors.some(({ dtype }) => dtype === "float64") ? "float64" : "float32";

/** Which gradients go together: of one dtype, as many as a launch has room for. */
function batchesOf(gradients: readonly Tensor[]): number[][] {
  const byDType = Map.groupBy(gradients.keys(), (index) => gradients[index]!.dtype);
  return [...byDType.values()].flatMap((indices) =>
    Array.from({ length: Math.ceil(indices.length / MAX_GRADIENTS) }, (_, index) =>
      indices.slice(index * MAX_GRADIENTS, (index + 1) * MAX_GRADIENTS),
    ),
  );
}
