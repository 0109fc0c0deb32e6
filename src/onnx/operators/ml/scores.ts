/** Transforms the scores of models from scikit-learn, and reads their class labels. */
import * as ops from "../../../ops/index.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Attributes } from "../../attributes.ts";
import { NodeProblem } from "../../errors.ts";
import type { Label } from "./labels.ts";

/** The constant of Winitzki's approximation of the inverse error function, which onnxruntime uses. */
const WINITZKI = 0.147;

/** √2 · erf⁻¹(2x − 1), approximately. */
function probit(x: Tensor): Tensor {
  const y = ops.sub(ops.mul(x, 2), 1);
  const log = ops.log(ops.mul(ops.sub(1, y), ops.add(1, y)));
  const half = ops.add(ops.mul(log, 0.5), 2 / (Math.PI * WINITZKI));
  const root = ops.sqrt(ops.sub(ops.sqrt(ops.sub(ops.mul(half, half), ops.div(log, WINITZKI))), half));
  return ops.mul(ops.mul(ops.sign(y), root), Math.SQRT2);
}

/** Computes a softmax over nonzero elements. Zeros stay 0. */
function softmaxZero(x: Tensor): Tensor {
  const isUsed = ops.gt(ops.abs(x), 1e-7);
  const powers = ops.exp(ops.sub(x, ops.amax(x, [-1], true)));
  const kept = ops.where(isUsed, powers, ops.zerosLike(x));
  return ops.div(kept, ops.sum(kept, [-1], true));
}

const transforms: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  LOGISTIC: (x) => ops.sigmoid(x),
  NONE: (x) => x,
  PROBIT: probit,
  SOFTMAX: (x) => ops.softmax(x, { dim: -1 }),
  SOFTMAX_ZERO: softmaxZero,
};

/** The names of transforms, indexed by their numbers in TreeEnsemble. */
export const transformNames = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"] as const;

/** Applies the named transform. @param scores [rows, classes] */
export function transformed(scores: Tensor, name: string): Tensor {
  const transform = Object.hasOwn(transforms, name) ? transforms[name] : undefined;
  if (!transform) throw new NodeProblem(`attribute post_transform: ${name} is not supported`);
  return transform(scores);
}

/** Joins the first class's score, which `compute` derives, with the second class's: [rows, 2]. */
export const ofBoth = (score: Tensor, compute: (x: Tensor) => Tensor): Tensor =>
  ops.cat([compute(score), score], { dim: 1 });

/** Returns the labels of a classifier; undefined if it has none. */
export const classLabels = (attributes: Attributes): readonly Label[] | undefined => {
  const labels: readonly Label[] | undefined =
    attributes.texts("classlabels_strings") ??
    attributes.numbers("classlabels_int64s") ??
    attributes.numbers("classlabels_ints");
  return labels && labels.length > 0 ? labels : undefined;
};
