/**
 * An optimizer step over several parameters (`foreach` in PyTorch): its attributes, its operands, and the arguments of
 * the kernels.
 */
import { cpuRowsCall } from "../backend/cpu/rows.ts";
import { array, dtype, flag, oneOf, real, whole } from "../backend/fields.ts";
import { struct } from "../backend/metal/struct.ts";
import { recordOf } from "../core/records.ts";
import { type Coefficients, coefficientNames, type RuleName, updateRules } from "./rules.ts";

/**
 * The maximum number of parameters per Metal launch. A launch binds at most 31 buffers: three per parameter (before,
 * gradient, after), the state before, the state after and the coefficients. The cpu backend has no such limit.
 */
export const MAX_PARAMETERS = 9;

/** A step of an optimizer over the parameters of a batch. */
export interface UpdateAttributes {
  readonly rule: RuleName;
  /** Whether the last plane of the state holds master weights. */
  readonly hasMaster: boolean;
  /** Whether the first output is the state. */
  readonly hasState: boolean;
  /** Elements from one plane of the state to the next. */
  readonly plane: number;
  /** The offset in a plane and the coefficients of each parameter. */
  readonly members: readonly { readonly start: number; readonly coefficients: Coefficients }[];
}

/** Names the operands of a call. */
export function operandsOf<T>(inputs: readonly T[], outputs: readonly T[], { hasState, members }: UpdateAttributes) {
  const first = hasState ? 1 : 0;
  const count = members.length;
  return {
    stateBefore: hasState ? inputs[0] : undefined,
    stateAfter: hasState ? outputs[0] : undefined,
    before: inputs.slice(first, first + count),
    gradients: inputs.slice(first + count),
    after: outputs.slice(first),
  };
}

/** Pads a list of operands to `count` with a filler. */
export const padded = <T, Filler>(present: readonly T[], count: number, filler: Filler): (T | Filler)[] =>
  Array.from({ length: count }, (_, index) => present[index] ?? filler);

const perCoefficient = <Value>(make: (name: (typeof coefficientNames)[number]) => Value) =>
  recordOf(coefficientNames, (name) => make(name));

const wholes = array(whole, MAX_PARAMETERS);

/**
 * The parameters of the Metal kernel: sizes, and the offset of each parameter in a plane. `firstChunks` is the index of
 * each parameter's first chunk: the chunks of the first parameter come before those of the second, and so on.
 */
export const updateParameters = struct("Update", {
  parameters: whole,
  plane: whole,
  sizes: wholes,
  starts: wholes,
  ...perCoefficient(() => array(real, MAX_PARAMETERS)),
  firstChunks: wholes,
});

/** Returns the values of {@link updateParameters} except `firstChunks`. */
export const fieldsOf = ({ plane, members }: UpdateAttributes, sizes: readonly number[]) => ({
  parameters: members.length,
  plane,
  sizes,
  starts: members.map(({ start }) => start),
  ...perCoefficient((name) => members.map(({ coefficients }) => coefficients[name])),
});

/** Each row of the call updates one parameter. */
export const updateCall = cpuRowsCall(
  "update",
  {
    rule: oneOf(updateRules),
    hasMaster: flag,
    dtype,
    gradientDType: dtype,
    plane: whole,
    size: whole,
    start: whole,
    ...perCoefficient(() => real),
    stateBeforeOffset: whole,
    stateAfterOffset: whole,
    beforeOffset: whole,
    gradientOffset: whole,
    afterOffset: whole,
  },
  ["stateBefore", "stateAfter", "before", "gradient", "after"],
);
