/** The primitive of triangle indices: one call on cpu. On other backends, it is composed of other operations. */
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { triangleIndicesCall } from "./primitive.ts";

export interface TriangleIndicesAttributes {
  readonly lower: boolean;
  readonly rows: number;
  readonly columns: number;
  readonly diagonal: number;
}

const triangleIndicesCpu: Implementation<TriangleIndicesAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, outputs: [output], attributes }) {
    triangleIndicesCall(operation, { ...attributes, count: output.shape[1] }, [output]);
  },
};

/** Output: int64 [2, count], contiguous: the rows, then the columns of the triangle's elements. */
export const triangleIndicesPrimitive = definePrimitive<TriangleIndicesAttributes>({
  name: "triangleIndices",
  family: "indexing",
  implementations: { metal: onlyCpuFuses, cpu: triangleIndicesCpu, reference: onlyCpuFuses },
});

/** Whether the primitive can compute the indices. Recorded graphs contain the composed operations instead. */
export const hasTriangleIndicesKernel = (): boolean => firstBackend() === "cpu" && capturing() === undefined;

/** Returns the number of elements in a triangle. */
export function triangleSize({ lower, rows, columns, diagonal }: TriangleIndicesAttributes): number {
  // row i has min(max(i + first, 0), columns) elements left of the edge
  const first = diagonal + (lower ? 1 : 0);
  const begin = Math.min(Math.max(-first, 0), rows); // rows before `begin` have no elements,
  const end = Math.min(Math.max(columns - first, begin), rows); // and rows from `end` on have all
  const growing = ((end - begin) * (begin + end - 1 + 2 * first)) / 2;
  const left = growing + (rows - end) * columns;
  return lower ? left : rows * columns - left;
}
