/** Exponentials of small matrices in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, real, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { dense, matricesOf } from "../matrices.ts";
import { degrees, factors8, factors12, factors18, limitsOf } from "./taylor.ts";

/** Larger matrices do not fit into a core's caches, and their products gain from several threads. */
const MOST_ROWS = 64;

const matrixExpCall = cpuCall(
  "matrixExp",
  {
    dtype,
    batch: whole,
    size: whole,
    limits: array(real, degrees.length),
    coefficients8: array(real, factors8.length),
    coefficients12: array(real, factors12.flat().length),
    coefficients18: array(real, factors18.flat().length),
  },
  ["a", "out"],
);

const coefficients = { coefficients8: factors8, coefficients12: factors12.flat(), coefficients18: factors18.flat() };

const matrixExpCpu: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [a], outputs: [out] }) {
    const { batch, rows: size } = matricesOf(a);
    const block = { dtype: a.dtype, batch, size, limits: limitsOf(a.dtype), ...coefficients };
    matrixExpCall(operation, block, [a, out]);
  },
};

const matrixExpPrimitive = definePrimitive({
  name: "matrixExp",
  family: "linalg",
  implementations: { metal: onlyCpuFuses, cpu: matrixExpCpu, reference: onlyCpuFuses },
});

/** Whether {@link smallExponential} applies to square matrices. */
export const isSmall = (a: Tensor): boolean =>
  (a.dtype === "float32" || a.dtype === "float64") && lastElement(a.shape) <= MOST_ROWS && fusesOnCpu(a);

export const smallExponential = (a: Tensor): Tensor =>
  execute(matrixExpPrimitive, [dense(a)], a.shape, a.dtype, undefined, "matrixExp");
