/** The primitives of reductions: `reduce`, and the local derivatives of which their gradients are made. */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, oneOf, real, whole } from "../../backend/fields.ts";
import { loopNest, loopNestOf } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";

/** Reductions with one result. */
export const foldNames = [
  ...(["sum", "mean", "prod", "amax", "amin", "all", "any"] as const),
  ...(["norm0", "norm1", "norm2", "normInf", "normNegInf", "normP", "var", "std", "logsumexp"] as const),
] as const;
export type FoldName = (typeof foldNames)[number];

/** Reductions to a value and its index. */
export const extremumNames = ["max", "min"] as const;
export type ExtremumName = (typeof extremumNames)[number];

/** `integers` are folds of integers that have integers as results; the others compute floats alone. */
export const reductions = enumeration("Reduction", {
  folds: foldNames,
  integers: ["sum", "prod", "amax", "amin", "all", "any"],
  extrema: extremumNames,
});
export type ReductionName = NameOf<typeof reductions>;

export interface ReductionAttributes {
  /** Axes that are reduced, ascending. */
  readonly axes: readonly number[];
  /** p of a norm, correction of a variance; 0 elsewhere. */
  readonly parameter: number;
}

/** `kept` is over the axes of the results, of the input and the results; `reduced` over the elements of one result. */
export const reduceCall = cpuCall(
  "reduce",
  {
    operation: oneOf(reductions),
    ...{ from: dtype, to: dtype },
    ...{ inputOffset: whole, outputOffset: whole, indicesOffset: whole },
    parameter: real,
    ...{ kept: nest(2), reduced: nest(1) },
  },
  ["input", "out", "indices"],
);

export const reductionParameters = struct("ReductionParameters", "reduction/groups.h", {
  ...{ kept: loopNestOf(2), reduced: loopNestOf(1) },
  ...{ count: whole, chunk: whole, chunks: whole },
  parameter: real,
});

/**
 * Functions of an element x and a result y. tie: 1 where x = y, NaN counting as equal. sign: of x. quotient: x / y.
 * power: sign(x) |x|^(p−1) y^(1−p). All are 0 elsewhere, and where they would divide by 0.
 */
export const derivatives = enumeration("ReductionDerivative", ["tie", "sign", "quotient", "power"]);
export type DerivativeName = NameOf<typeof derivatives>;

export interface DerivativeAttributes {
  readonly name: DerivativeName;
  /** p of `power`. */
  readonly parameter: number;
}

/**
 * The offsets of both inputs and the output. The nest is over the output's axes, of both inputs; the output is
 * row-major.
 */
const pairFields = { dtype, offsets: array(whole, 3), nest: nest(2) };

export const derivativeCall = cpuCall(
  "reductionDerivative",
  { operation: oneOf(derivatives), parameter: real, ...pairFields },
  ["x", "y", "out"],
);
export const derivativeParameters = struct("DerivativeParameters", "reduction/derivatives.metal", {
  loop: loopNest,
  parameter: real,
});

export interface SelectAttributes {
  /** The axis along which an index counts. */
  readonly axis: number;
}

/** `size` is that of the axis, `inner` how many elements of the output lie between two of its indices. */
const selectFields = { size: whole, inner: whole };

export const selectCall = cpuCall("selectAt", { ...selectFields, ...pairFields }, ["x", "indices", "out"]);
export const selectParameters = struct("SelectAt", "reduction/derivatives.metal", { loop: loopNest, ...selectFields });
