/** Grids of affine maps as one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";

interface AffineAttributes {
  readonly sizes: readonly number[];
  readonly alignsCorners: boolean;
}

const affineCall = cpuCall(
  "affineGrid",
  { dtype, alignsCorners: flag, axes: whole, batch: whole, size: array(whole, 3), offsets: array(whole, 2) },
  ["theta", "result"],
);

const affineCpu: Implementation<AffineAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [theta], outputs: [result], attributes: { sizes, alignsCorners } }) {
    const axes = sizes.length;
    const size = axes === 2 ? [1, ...sizes] : sizes;
    const offsets = [theta.offset, result.offset];
    const block = { dtype: theta.dtype, alignsCorners, axes, batch: theta.shape[0], size, offsets };
    affineCall(operation, block, [theta, result]);
  },
};

const affinePrimitive = definePrimitive<AffineAttributes>({
  name: "affineGrid",
  family: "pooling",
  implementations: { metal: onlyCpuFuses, cpu: affineCpu, reference: onlyCpuFuses },
});

/** Computes the positions of all elements of images or volumes of the given sizes: [batch, …sizes, axes]. */
export function affinePositions(theta: Tensor, sizes: readonly number[], alignsCorners: boolean): Tensor {
  const wide = accumulationDType(theta.dtype);
  const shape = [theta.shape[0], ...sizes, sizes.length];
  const inputs = [contiguous(toDType(theta, wide))];
  return toDType(execute(affinePrimitive, inputs, shape, wide, { sizes, alignsCorners }, "affineGrid"), theta.dtype);
}
