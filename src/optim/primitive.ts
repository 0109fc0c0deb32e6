/**
 * A step of an optimizer over several parameters (`foreach` in PyTorch): its attributes and operands, and what kernels
 * are given.
 */
import { cpuRowsCall } from "../backend/cpu/rows.ts";
import { array, dtype, flag, oneOf, real, whole } from "../backend/fields.ts";
import { struct } from "../backend/metal/struct.ts";
import { type Coefficients, coefficientNames, type RuleName, updateRules } from "./rules.ts";

/**
 * How many parameters a launch of metal updates at most. It binds 31 buffers; a parameter takes three (before,
 * gradient, after) beside the state before, the state after and the numbers. The cpu backend takes any number.
 */
export const MAX_PARAMETERS = 9;

/** A step of an optimizer over the parameters of a batch. */
export interface UpdateAttributes {
  readonly rule: RuleName;
  /** Whether the state's last plane are master weights. */
  readonly hasMaster: boolean;
  /** Whether the first target is the state. */
  readonly hasState: boolean;
  /** Elements from one plane of the state to the next. */
  readonly plane: number;
  /** For each parameter, where it begins in a plane and its numbers. */
  readonly members: readonly { readonly start: number; readonly coefficients: Coefficients }[];
}

/** The operands of a call by what they are. */
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

/** A list of operands with room for more than there are: something stands in for those that are left out. */
export const padded = <T, Filler>(present: readonly T[], count: number, filler: Filler): (T | Filler)[] =>
  Array.from({ length: count }, (_, index) => present[index] ?? filler);

const perCoefficient = <Value>(make: (name: (typeof coefficientNames)[number]) => Value) =>
  Object.fromEntries(coefficientNames.map((name) => [name, make(name)])) as Record<
    (typeof coefficientNames)[number],
    Value
  >;

const wholes = array(whole, MAX_PARAMETERS);

/**
 * What metal's kernel is given: sizes, and where each parameter begins in a plane. `firstChunks`: the chunks of the
 * first parameter come before those of the second, and so on.
 */
export const updateParameters = struct("Update", "optim/update.metal", {
  ...{ parameters: whole, plane: whole, sizes: wholes, starts: wholes },
  ...perCoefficient(() => array(real, MAX_PARAMETERS)),
  firstChunks: wholes,
});

/** The values of {@link updateParameters} but for the chunks. */
export const fieldsOf = ({ plane, members }: UpdateAttributes, sizes: readonly number[]) => ({
  ...{ parameters: members.length, plane, sizes },
  starts: members.map(({ start }) => start),
  ...perCoefficient((name) => members.map(({ coefficients }) => coefficients[name])),
});

/** A row is a parameter. */
export const updateCall = cpuRowsCall(
  "update",
  {
    ...{ rule: oneOf(updateRules), hasMaster: flag, dtype, gradientDType: dtype },
    ...{ plane: whole, size: whole, start: whole },
    ...perCoefficient(() => real),
    ...{ stateBeforeOffset: whole, stateAfterOffset: whole },
    ...{ beforeOffset: whole, gradientOffset: whole, afterOffset: whole },
  },
  ["stateBefore", "stateAfter", "before", "gradient", "after"],
);
