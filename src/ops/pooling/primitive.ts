/** Parameters of the pooling primitives on every backend. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Windows } from "./windows.ts";

const AXES = 3;
const perAxis = array(whole, AXES);

/** The kernel size that stands for adaptive windows: window p of n is elements ⌊p·input/n⌋ to ⌈(p + 1)·input/n⌉ − 1. */
export const ADAPTIVE = 0;

/**
 * Planes [planes, …input] and results [planes, …output], contiguous. Along an axis, position k of window p is element p
 * · stride + k · dilation − before; positions outside the axis hold no element. See also {@link ADAPTIVE}.
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
  planes: whole,
  input: perAxis,
  output: perAxis,
  kernelSize: perAxis,
  stride: perAxis,
  dilation: perAxis,
  before: perAxis,
};
const cpuFields = { dtype, indexDtype: dtype, ...fields };

export const poolingParameters = struct("Pooling", fields);

/** Without `hasIndices`, the operand `indices` is not accessed. */
export const maxPoolCall = cpuCall("maxPool", { ...cpuFields, hasIndices: flag, offsets: array(whole, 3) }, [
  "x",
  "values",
  "indices",
]);

export const maxPoolGradientCall = cpuCall("maxPoolGradient", { ...cpuFields, offsets: array(whole, 3) }, [
  "gradient",
  "indices",
  "output",
]);

/** Returns the attributes of windows, with leading axes added up to three. */
export function attributesOf(planes: number, windows: Windows): PoolingAttributes {
  const padded = (list: readonly number[], value: number): number[] => [
    ...new Array<number>(AXES - list.length).fill(value),
    ...list,
  ];
  return {
    planes,
    input: padded(windows.input, 1),
    output: padded(windows.output, 1),
    kernelSize: padded(windows.kernel, 1),
    stride: padded(windows.stride, 1),
    dilation: padded(windows.dilation, 1),
    before: padded(windows.padding, 0),
  };
}
