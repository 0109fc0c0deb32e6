/** Kronecker products of matrices in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";

const kronCall = cpuCall(
  "kron",
  { dtype, rows: whole, columns: whole, otherRows: whole, otherColumns: whole, offsets: array(whole, 3) },
  ["a", "b", "out"],
);

const matrixShape = ({ shape }: Tensor): readonly [number, number] => [shape.at(-2) ?? 1, shape.at(-1) ?? 1];

const kronCpu: Implementation<undefined, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, b], outputs: [out] }) {
    const [[rows, columns], [otherRows, otherColumns]] = [matrixShape(a), matrixShape(b)];
    const offsets = [a.offset, b.offset, out.offset];
    kronCall(operation, { dtype: a.dtype, rows, columns, otherRows, otherColumns, offsets }, [a, b, out]);
  },
};

const kronPrimitive = definePrimitive({
  name: "kron",
  family: "elementwise",
  implementations: { metal: onlyCpuFuses, cpu: kronCpu, reference: onlyCpuFuses },
});

/** Whether {@link matrixKron} applies: to floats of one dtype with at most two axes, if nothing is recorded. */
export const fusesKron = (a: Tensor, b: Tensor): boolean =>
  a.dtype === b.dtype && a.rank <= 2 && b.rank <= 2 && isFloat(a.dtype) && fusesOnCpu(a, b);

/**
 * Computes a Kronecker product, or the outer product of vectors, whose elements have the same order.
 *
 * @param shape the shape of the result
 */
export function matrixKron(a: Tensor, b: Tensor, shape: readonly number[], operation = "kron"): Tensor {
  const [left, right] = [contiguous(a), contiguous(b)];
  try {
    return execute(kronPrimitive, [left, right], shape, a.dtype, undefined, operation);
  } finally {
    if (left !== a) left.dispose();
    if (right !== b) right.dispose();
  }
}
