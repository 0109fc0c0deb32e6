/**
 * The `vmap` rules by the primitive's name: how one call computes all examples. Each family of primitives has a rule.
 */
import { MAX_RANK } from "../../tensor/shape.ts";
import type { LiftedCall } from "../lifted.ts";
import { folding } from "./folding.ts";
import {
  aligned,
  broadcastTo,
  dense,
  type Operand,
  type Prepared,
  type Result,
  type Rule,
  repeated,
  shifted,
} from "./rule.ts";

/** Aligns operands that broadcast, so that an example's axes remain the last ones. */
const broadcasting: Rule = (operands, [result], attributes) => ({
  inputs: operands.map(({ tensor, isBatched }) => (isBatched ? aligned(tensor, result.shape.length) : tensor)),
  attributes,
});

/** Operations on the last axes, with any number of leading axes. */
const leading: Rule = (operands, _, attributes) => ({ inputs: repeated(operands), attributes });

/** Like `leading`, for primitives that read dense memory. */
const denseLeading: Rule = (operands, _, attributes) => ({ inputs: repeated(operands).map(dense), attributes });

/** Operations along axes: the index of each axis increases by one. */
const alongAxes =
  (...names: readonly string[]): Rule =>
  (operands, _, attributes) => ({ inputs: repeated(operands), attributes: shifted(attributes, names) });

/** Matrix products: batch axes broadcast, so the axis of the examples is an additional batch axis. */
const product: Rule = (operands, [result], attributes) => {
  const { shape } = result;
  const rank = Math.max(shape.length, ...operands.map(({ tensor, isBatched }) => tensor.rank - (isBatched ? 1 : 0)));
  return {
    inputs: operands.map(({ tensor, isBatched }, at) => {
      if (at < 2) return isBatched ? aligned(tensor, rank) : tensor;
      // the added operand has the shape of the result
      return isBatched
        ? tensor
        : broadcastTo(tensor, [operands.find((each) => each.isBatched)!.tensor.shape[0], ...shape]);
    }),
    attributes,
  };
};

/** Fourier transforms: a second operand is a table, which all examples share. */
const fourier: Rule = ([x, ...tables], _, attributes) => {
  if (tables.some(({ isBatched }) => isBatched)) return null;
  return {
    inputs: [dense(x.tensor), ...tables.map(({ tensor }) => tensor)],
    attributes: shifted(attributes, ["axis"]),
  };
};

const table = new Map<string, Rule>(Object.entries(folding));

function rules(rule: Rule, ...names: readonly string[]): void {
  for (const name of names) table.set(name, rule);
}

rules(broadcasting, "copy", "fill", "indexPlaces", "swigluGradient");
rules(alongAxes("axis"), "softmax", "logSoftmax", "softmaxGradient", "logSoftmaxGradient", "selectAt");
rules(alongAxes("axis"), "cumsum", "cumprod", "exclusiveCumprod", "shift", "recurrence", "logcumsumexp");
rules(alongAxes("axis"), "runningExtremum");
rules(alongAxes("dim"), "sort");
rules(alongAxes("axis"), "shiftedRecurrence");
rules(alongAxes("dim"), "orderStatistic");
rules(alongAxes("dim", "axes"), "gather", "scatter", "scatterOthers");
rules(fourier, "fft", "realFft");
rules(product, "matmul", "addmm", "linear");
rules(broadcasting, "reductionDerivative");
rules(leading, "triangle", "oneHot", "lossGradient");
rules(
  denseLeading,
  "cholesky",
  "eig",
  "eigh",
  "geqrf",
  "householderProduct",
  "ldlFactor",
  "ldlSolve",
  "lstsq",
  "luFactor",
);
rules(denseLeading, "fold", "unfold", "luPermutation", "luSolve", "ormqr", "qr", "solve", "solveTriangular", "svd");

/** The rules of primitives without a rule in the table, by their family. */
const ofFamilies: Readonly<Record<string, Rule | undefined>> = {
  elementwise: broadcasting,
  reduction: alongAxes("axes"),
};

/** Returns the call for all examples, or null if it must run once for each. */
export function ruleOf(
  { primitive: { name, family }, attributes }: Pick<LiftedCall, "primitive" | "attributes">,
  operands: readonly Operand[],
  results: readonly Result[],
): Prepared | null {
  const rule = table.get(name) ?? ofFamilies[family];
  // a result may be batched although no operand is: the same values are copied into each example
  if (rule !== broadcasting && !operands.some(({ isBatched }) => isBatched)) return null;
  if (results.some(({ shape }) => shape.length >= MAX_RANK)) return null;
  if (operands.some(({ tensor, isBatched }) => tensor.rank - (isBatched ? 1 : 0) >= MAX_RANK)) return null;
  return rule ? rule(operands, results, (attributes ?? {}) as Readonly<Record<string, unknown>>) : null;
}
