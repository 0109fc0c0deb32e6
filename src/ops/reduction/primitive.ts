/** The primitives of reductions: `reduce`, and the local derivatives from which gradients are computed. */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, oneOf, real, whole } from "../../backend/fields.ts";
import { loopNest, loopNestOf } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import { type FoldName, folds } from "./folds.ts";

/** Reductions with one result. */
export const foldNames = Object.keys(folds) as readonly FoldName[];

/** Reductions to a value and its index. */
export const extremumNames = ["max", "min"] as const;
export type ExtremumName = (typeof extremumNames)[number];

/** `integers` lists the folds that return integers for integers; the others accept floats only. */
export const reductions = enumeration("Reduction", {
  folds: foldNames,
  integers: foldNames.filter((name) => "integer" in folds[name]),
  extrema: extremumNames,
});
export type ReductionName = NameOf<typeof reductions>;

export interface ReductionAttributes {
  /** The reduced axes, ascending. */
  readonly axes: readonly number[];
  /** p of a norm, correction of a variance, otherwise 0. */
  readonly parameter: number;
}

/**
 * `kept` is the loop over results, with strides of the input and the results. `reduced` is the loop over the elements
 * of one result.
 */
export const reduceCall = cpuCall(
  "reduce",
  {
    operation: oneOf(reductions),
    from: dtype,
    to: dtype,
    inputOffset: whole,
    outputOffset: whole,
    indicesOffset: whole,
    parameter: real,
    kept: nest(2),
    reduced: nest(1),
  },
  ["input", "out", "indices"],
);

/**
 * `kept` loops over the results, with the input and the results as operands; `reduced` over the elements of one result.
 * `count` is the number of elements or states per result, `chunk` that of a threadgroup.
 */
export const reductionParameters = struct("ReductionParameters", {
  kept: loopNestOf(2),
  reduced: loopNestOf(1),
  count: whole,
  chunk: whole,
  chunks: whole,
  parameter: real,
});

/**
 * Functions of an element x and a result y. tie: 1 where x = y, NaN counting as equal, else 0. sign: sign(x). quotient:
 * x / y. power: sign(x) |x|^(p−1) y^(1−p). A division by 0 gives 0.
 */
export const derivatives = enumeration("ReductionDerivative", ["tie", "sign", "quotient", "power"]);
export type DerivativeName = NameOf<typeof derivatives>;

export interface DerivativeAttributes {
  readonly name: DerivativeName;
  /** p of `power`. */
  readonly parameter: number;
}

/**
 * The offsets of both inputs and the output. The nest loops over the output's axes with the strides of both inputs. The
 * output is row-major.
 */
const pairFields = { dtype, offsets: array(whole, 3), nest: nest(2) };

export const derivativeCall = cpuCall(
  "reductionDerivative",
  { operation: oneOf(derivatives), parameter: real, ...pairFields },
  ["x", "y", "out"],
);
export const derivativeParameters = struct("DerivativeParameters", {
  loop: loopNest,
  parameter: real,
});

export interface SelectAttributes {
  /** The axis that indices refer to. */
  readonly axis: number;
}

/** `size` is the size of the axis, `inner` its stride in the row-major output. */
const selectFields = { size: whole, inner: whole };

export const selectCall = cpuCall("selectAt", { ...selectFields, ...pairFields }, ["x", "indices", "out"]);
export const selectParameters = struct("SelectAt", { loop: loopNest, ...selectFields });
