/** The primitives of poolings: windows of planes, as every backend is given them. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Windows } from "./windows.ts";

const AXES = 3;
const perAxis = array(whole, AXES);

/**
 * Planes [planes, …input] and results [planes, …output], without gaps. Along an axis, place k of window p is element
 * p · stride + k · dilation − before; what lies outside is no element.
 */
export interface PoolingAttributes {
  readonly planes: number;
  readonly input: readonly number[];
  readonly output: readonly number[];
  readonly kernelSize: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly before: readonly number[];
}

const fields = {
  ...{ planes: whole, input: perAxis, output: perAxis, kernelSize: perAxis },
  ...{ stride: perAxis, dilation: perAxis, before: perAxis },
};
const cpuFields = { dtype, indexDtype: dtype, ...fields };

export const poolingParameters = struct("Pooling", "pooling/windows.h", fields);

/** Without indices, what stands for them is not looked at. */
export const maxPoolCall = cpuCall("maxPool", { ...cpuFields, hasIndices: flag, offsets: array(whole, 3) }, [
  ...["x", "values", "indices"],
]);

export const maxPoolGradientCall = cpuCall("maxPoolGradient", { ...cpuFields, offsets: array(whole, 3) }, [
  ...["gradient", "indices", "output"],
]);

/** Fewer axes than three are the last ones of three. */
export function attributesOf(planes: number, windows: Windows): PoolingAttributes {
  const padded = (own: readonly number[], value: number): number[] => [
    ...new Array<number>(AXES - own.length).fill(value),
    ...own,
  ];
  return {
    planes,
    ...{ input: padded(windows.input, 1), output: padded(windows.output, 1), kernelSize: padded(windows.kernel, 1) },
    ...{ stride: padded(windows.stride, 1), dilation: padded(windows.dilation, 1) },
    before: padded(windows.padding, 0),
  };
}
