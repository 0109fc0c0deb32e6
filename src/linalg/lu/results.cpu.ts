/** Results of an LU factorization in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type RealDType, realDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";

const partsCall = cpuCall("luParts", { dtype, batch: whole, rows: whole, columns: whole, pivot: flag }, [
  "lu",
  "pivots",
  "p",
  "l",
  "u",
]);

interface PartsAttributes {
  readonly pivot: boolean;
}

const partsCpu: Implementation<PartsAttributes, [Tensor, Tensor], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [lu, pivots], outputs: [p, l, u], attributes: { pivot } }) {
    partsCall(operation, { dtype: lu.dtype, ...matricesOf(lu), pivot }, [lu, pivots, p, l, u]);
  },
};

const partsPrimitive = definePrimitive<PartsAttributes>({
  name: "luParts",
  family: "linalg",
  implementations: { metal: onlyCpuFuses, cpu: partsCpu, reference: onlyCpuFuses },
});

/** Returns P, L and U of factors in one matrix; without pivots, P is of shape [0]. */
export function partsOf(lu: Tensor, pivots: Tensor<"int32">, pivot: boolean): { p: Tensor; l: Tensor; u: Tensor } {
  const batch = lu.shape.slice(0, -2);
  const [rows, columns] = tupleOf(lu.shape.slice(-2), 2);
  const [size, { dtype: type }] = [Math.min(rows, columns), lu];
  const specs = [pivot ? [...batch, rows, rows] : [0], [...batch, rows, size], [...batch, size, columns]].map(
    (shape) => ({ shape, dtype: type }),
  );
  const [p, l, u] = tupleOf(executeMany(partsPrimitive, [lu, pivots], specs, { pivot }, "lu"), 3);
  return { p, l, u };
}

const determinantCall = cpuCall("luDeterminant", { dtype, batch: whole, size: whole, isLogarithm: flag }, [
  "lu",
  "pivots",
  "value",
  "logarithm",
]);

const determinantCpu: Implementation<undefined, [Tensor, Tensor], [Tensor, ...Tensor[]]> = {
  run({ operation, inputs: [lu, pivots], outputs: [value, logarithm] }) {
    const { batch, rows: size } = matricesOf(lu);
    const block = { dtype: lu.dtype, batch, size, isLogarithm: logarithm !== undefined };
    determinantCall(operation, block, [lu, pivots, value, logarithm]);
  },
};

const determinantPrimitive = definePrimitive({
  name: "luDeterminant",
  family: "linalg",
  implementations: { metal: onlyCpuFuses, cpu: determinantCpu, reference: onlyCpuFuses },
});

/** Returns the determinants of factorized matrices. */
export const determinantOf = (lu: Tensor, pivots: Tensor<"int32">): Tensor =>
  execute(determinantPrimitive, [lu, pivots], lu.shape.slice(0, -2), lu.dtype, undefined, "det");

/** Returns the signs of the determinants, and the logarithms of their absolute values. */
export function logarithmOf(lu: Tensor, pivots: Tensor<"int32">): { sign: Tensor; logabsdet: Tensor<RealDType> } {
  const spec = { shape: lu.shape.slice(0, -2), dtype: realDType(lu.dtype) };
  const [sign, logabsdet] = executeMany(determinantPrimitive, [lu, pivots], [spec, spec], undefined, "slogdet");
  return { sign, logabsdet };
}
