/** The passes of a covariance matrix beside its product, each in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { dtype, flag, real, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { transpose } from "../view/permute.ts";
import { plainMatmul as matmul } from "./plain_matmul.ts";

const centerCall = cpuCall("centerRows", { dtype, rows: whole, columns: whole, offset: whole }, ["x", "out"]);

const centerCpu: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out] }) {
    const [rows, columns] = x.shape;
    centerCall(operation, { dtype: x.dtype, rows, columns, offset: x.offset }, [x, out]);
  },
};

const centerPrimitive = definePrimitive({
  name: "centerRows",
  family: "matmul",
  implementations: { metal: onlyCpuFuses, cpu: centerCpu, reference: onlyCpuFuses },
});

interface FinishAttributes {
  readonly divisor: number;
  readonly isCorrelation: boolean;
}

const finishCall = cpuCall(
  "finishCovariance",
  { dtype, size: whole, offset: whole, divisor: real, isCorrelation: flag },
  ["x", "out"],
);

const finishCpu: Implementation<FinishAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out], attributes }) {
    finishCall(operation, { dtype: x.dtype, size: x.shape[0], offset: x.offset, ...attributes }, [x, out]);
  },
};

const finishPrimitive = definePrimitive<FinishAttributes>({
  name: "finishCovariance",
  family: "matmul",
  implementations: { metal: onlyCpuFuses, cpu: finishCpu, reference: onlyCpuFuses },
});

/** Whether {@link rowCovariances} applies to rows in a compute dtype. */
export const fusesCovariance = (rows: Tensor): boolean =>
  (rows.dtype === "float32" || rows.dtype === "float64") && fusesOnCpu(rows);

/** Returns the covariances of rows, or their correlations, for which the divisor does not matter. */
export function rowCovariances(operation: string, rows: Tensor, attributes: FinishAttributes): Tensor {
  const centered = execute(centerPrimitive, [contiguous(rows)], rows.shape, rows.dtype, undefined, operation);
  const products = contiguous(matmul(centered, transpose(centered, 0, 1)));
  return execute(finishPrimitive, [products], products.shape, rows.dtype, attributes, operation);
}
