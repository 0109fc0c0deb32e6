/**
 * Operations on many gradients at once: a model has dozens of small ones, and a launch for each would cost more than its work. One launch takes up to
 * fourteen dense tensors of a dtype.
 */
import type { Primitive } from "../../backend/backend.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { zeros } from "../../ops/creation/full.ts";
import { sqrt } from "../../ops/elementwise/power.ts";
import { cat } from "../../ops/join/cat.ts";
import { sum } from "../../ops/reduction/sum.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { scaleCpu } from "./scale.cpu.ts";
import { scaleMetal } from "./scale.metal.ts";
import { scaleReference } from "./scale.reference.ts";
import { squaresCpu } from "./squares.cpu.ts";
import { squaresMetal } from "./squares.metal.ts";
import { squaresReference } from "./squares.reference.ts";
import { chunksOf, MOST_GRADIENTS } from "./table.ts";

/** Inputs: dense gradients of a dtype. Output: Σ g² of each {@link CHUNK} of the first, then of the second, and so on; float32, float64 of float64. */
export const squaresPrimitive: Primitive = {
  name: "gradientSquares",
  implementations: { metal: squaresMetal, cpu: squaresCpu, reference: squaresReference },
};

/** Inputs: a factor, float32 (float64 of float64), and dense gradients of a dtype. Outputs: their products, each rounded once. */
export const scalePrimitive: Primitive = {
  name: "gradientScale",
  implementations: { metal: scaleMetal, cpu: scaleCpu, reference: scaleReference },
};

/** √ Σ g² over all elements of all gradients, in float32 (float64 where one of them is), in a fixed order. */
export function euclideanNorm(operation: string, gradients: readonly Tensor[]): Tensor {
  const wide = widest(gradients);
  const sums = batchesOf(gradients).map((places) => {
    const members = places.map((place) => contiguous(gradients[place]!));
    const chunks = members.reduce((total, { size }) => total + chunksOf(size), 0);
    const own = wideOf(members[0]!);
    return toDType(execute(squaresPrimitive, members, [chunks], own, undefined, operation), wide);
  });
  return sums.length === 0 ? zeros([], { dtype: wide }) : sqrt(sum(sums.length === 1 ? sums[0]! : cat(sums)));
}

/** New tensors: the gradients times a factor of one element that lies on the device. */
export function scaled(operation: string, gradients: readonly Tensor[], factor: Tensor): Tensor[] {
  const results: Tensor[] = [];
  for (const places of batchesOf(gradients)) {
    const members = places.map((place) => contiguous(gradients[place]!));
    const inputs = [toDType(factor, wideOf(members[0]!)), ...members];
    const products = executeMany(scalePrimitive, inputs, members, undefined, operation);
    for (const [index, place] of places.entries()) results[place] = products[index]!;
  }
  return results;
}

const wideOf = ({ dtype }: Tensor): DType => (dtype === "float64" ? "float64" : "float32");
const widest = (tensors: readonly Tensor[]): DType =>
  tensors.some(({ dtype }) => dtype === "float64") ? "float64" : "float32";

/** Which gradients go together: of one dtype, as many as a launch has room for. */
function batchesOf(gradients: readonly Tensor[]): number[][] {
  const byDType = Map.groupBy(gradients.keys(), (place) => gradients[place]!.dtype);
  return [...byDType.values()].flatMap((places) =>
    Array.from({ length: Math.ceil(places.length / MOST_GRADIENTS) }, (_, index) =>
      places.slice(index * MOST_GRADIENTS, (index + 1) * MOST_GRADIENTS),
    ),
  );
}
