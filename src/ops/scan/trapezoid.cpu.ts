/**
 * Functions of neighbors along an axis in one call of the cpu backend, without a gradient: integrals and slopes of
 * equally spaced samples, and differences.
 */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf, real } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { slicesOf } from "../../tensor/slices.ts";
import { Tensor } from "../../tensor/tensor.ts";

export const functions = enumeration("Neighbors", ["integral", "integrals", "differences", "slopes"]);

interface NeighborsAttributes {
  readonly axis: number;
  readonly distance: number;
  readonly function: NameOf<typeof functions>;
}

const neighborsCall = cpuCall("neighbors", { dtype, function: oneOf(functions), distance: real, slices: slices(2) }, [
  "y",
  "out",
]);

const neighborsCpu: Implementation<NeighborsAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [y], outputs: [out], attributes: { axis, ...values } }) {
    // a view with y's shape, of which the call writes the first elements along the axis
    const strides = values.function === "integral" ? out.strides.toSpliced(axis, 0, 0) : out.strides;
    using results = new Tensor(out.storage, out.dtype, y.shape, strides, out.offset);
    neighborsCall(operation, { dtype: y.dtype, ...values, slices: slicesOf([y, results], axis) }, [y, out]);
  },
};

const neighborsPrimitive = definePrimitive<NeighborsAttributes>({
  name: "neighbors",
  family: "scan",
  implementations: { metal: onlyCpuFuses, cpu: neighborsCpu, reference: onlyCpuFuses },
});

/** Whether {@link neighbors} applies: to floats of at least two samples, if nothing is recorded. */
export const fusesNeighbors = (y: Tensor, axis: number): boolean =>
  isFloat(y.dtype) && y.shape[axis] > 1 && fusesOnCpu(y);

/**
 * Computes a function along an axis, which the result of `integral` lacks, that of `slopes` has, and others have with
 * one element less.
 */
export function neighbors(operation: string, y: Tensor, attributes: NeighborsAttributes): Tensor {
  const { axis, function: name } = attributes;
  const length = y.shape[axis] - (name === "slopes" ? 0 : 1);
  const shape = name === "integral" ? y.shape.toSpliced(axis, 1) : y.shape.with(axis, length);
  return execute(neighborsPrimitive, [y], shape, y.dtype, attributes, operation);
}
