/** Support vector machines from libsvm and liblinear, as exported from scikit-learn. */
import { tensor as tensorOf } from "../../../ops/creation/tensor.ts";
import * as ops from "../../../ops/index.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results } from "../../call.ts";
import { NodeProblem } from "../../errors.ts";
import { labelsOf } from "./labels.ts";
import { rowsAt } from "./linear.ts";
import { classLabels, ofBoth, transformed } from "./scores.ts";

const matrixOf = (values: readonly number[], columns: number): Tensor => {
  if (columns <= 0 || values.length % columns !== 0)
    throw new NodeProblem(`${values.length} numbers don't fill rows of ${columns}`);
  return tensorOf([...values], { shape: [values.length / columns, columns], dtype: "float32" });
};

/** Computes the kernel of each row with each support vector: [rows, vectors]. */
function kernels(call: Call, x: Tensor, vectors: Tensor, name: string): Tensor {
  const [gamma = 0, coefficient = 0, degree = 0] = call.attributes.numbers("kernel_params") ?? [];
  if (name === "RBF") {
    const difference = ops.sub(ops.unsqueeze(x, 1), ops.unsqueeze(vectors, 0));
    return ops.exp(ops.mul(ops.sum(ops.mul(difference, difference), [2]), -gamma));
  }
  const product = ops.matmul(x, ops.transpose(vectors, 0, 1));
  if (name === "LINEAR") return product;
  const shifted = ops.add(ops.mul(product, gamma), coefficient);
  if (name === "POLY") return ops.pow(shifted, degree);
  if (name === "SIGMOID") return ops.tanh(shifted);
  throw new NodeProblem(`attribute kernel_type: ${name} is not supported`);
}

/** Computes the regression. With `one_class`, the result is 1 inside and −1 outside. */
function regressor(call: Call): Tensor {
  const { attributes } = call;
  const x = rowsAt(call).to("float32");
  const coefficients = attributes.numbers("coefficients") ?? [];
  const count = attributes.number("n_supports", 0);
  const vectors = attributes.numbers("support_vectors") ?? [];
  const similar =
    count > 0
      ? kernels(call, x, matrixOf(vectors, vectors.length / count), attributes.text("kernel_type", "LINEAR"))
      : x;
  const sum = ops.matmul(similar, ops.transpose(matrixOf(coefficients, coefficients.length), 0, 1));
  const score = ops.add(sum, attributes.numbers("rho")?.[0] ?? 0);
  if (!attributes.flag("one_class")) return transformed(score, attributes.text("post_transform", "NONE"));
  return ops.where(ops.gt(score, 0), ops.onesLike(score), ops.neg(ops.onesLike(score)));
}

/** Computes the score of each pair of classes, and the votes for each class. */
function pairs(similar: readonly number[], counts: readonly number[], coefficients: Tensor, rho: readonly number[]) {
  const rows = numbersOf(coefficients);
  const width = coefficients.shape[1];
  const starts = counts.map((_, at) => counts.slice(0, at).reduce((sum, count) => sum + count, 0));
  const votes = new Array<number>(counts.length).fill(0);
  const scores: number[] = [];
  const part = (row: number, kind: number) => {
    let sum = 0;
    for (let at = starts[kind]; at < starts[kind] + counts[kind]; at++) sum += rows[row * width + at] * similar[at];
    return sum;
  };
  for (let i = 0; i < counts.length; i++)
    for (let j = i + 1; j < counts.length; j++) {
      const score = (rho[scores.length] ?? 0) + part(j - 1, i) + part(i, j);
      scores.push(score);
      votes[score > 0 ? i : j]++;
    }
  return { scores, votes };
}

/**
 * Computes class probabilities from pairwise probabilities, with libsvm's iterations and limits.
 *
 * Source: T.-F. Wu, C.-J. Lin, R. Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling",
 * 2004, second method.
 */
function coupled(r: readonly (readonly number[])[]): number[] {
  const k = r.length;
  const q = r.map((row, t) =>
    row.map((value, j) =>
      t === j ? r.reduce((sum, other, at) => sum + (at === t ? 0 : other[t] ** 2), 0) : -r[j][t] * value,
    ),
  );
  const p = new Array<number>(k).fill(1 / k);
  for (let round = 0; round < Math.max(100, k); round++) {
    const qp = q.map((row) => row.reduce((sum, value, at) => sum + value * p[at], 0));
    let total = qp.reduce((sum, value, at) => sum + value * p[at], 0);
    if (qp.every((value) => Math.abs(value - total) < 0.005 / k)) break;
    for (let t = 0; t < k; t++) {
      const step = (total - qp[t]) / q[t][t];
      p[t] += step;
      total = (total + step * (step * q[t][t] + 2 * qp[t])) / (1 + step) ** 2;
      for (let at = 0; at < k; at++) {
        qp[at] = (qp[at] + step * q[t][at]) / (1 + step);
        p[at] /= 1 + step;
      }
    }
  }
  return p;
}

/** libsvm clamps pairwise probabilities to [1e−7, 1 − 1e−7]. */
const LEAST = 1e-7;

function probabilities(call: Call, scores: readonly number[], classes: number): number[] {
  const [a, b] = [call.attributes.numbers("prob_a") ?? [], call.attributes.numbers("prob_b") ?? []];
  const r = Array.from({ length: classes }, () => new Array<number>(classes).fill(0));
  let at = 0;
  for (let i = 0; i < classes; i++)
    for (let j = i + 1; j < classes; j++, at++) {
      const value = 1 / (1 + Math.exp(scores[at] * (a[at] ?? 0) + (b[at] ?? 0)));
      r[i][j] = Math.min(Math.max(value, LEAST), 1 - LEAST);
      r[j][i] = 1 - r[i][j];
    }
  return coupled(r);
}

const indexOfMost = (values: readonly number[]): number => values.indexOf(Math.max(...values));

function classifier(call: Call): Results {
  const { attributes } = call;
  const x = rowsAt(call).to("float32");
  const labels = classLabels(attributes) ?? [0];
  const counts = attributes.numbers("vectors_per_class") ?? [];
  const coefficients = attributes.numbers("coefficients") ?? [];
  const rho = attributes.numbers("rho") ?? [];
  const transform = attributes.text("post_transform", "NONE");
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return linear(call, x);
  const vectors = attributes.numbers("support_vectors") ?? [];
  const table = kernels(call, x, matrixOf(vectors, vectors.length / total), attributes.text("kernel_type", "LINEAR"));
  const all = numbersOf(table);
  const weights = matrixOf(coefficients, total);
  const rows = Array.from({ length: x.shape[0] }, (_, row) =>
    pairs(all.slice(row * total, (row + 1) * total), counts, weights, rho),
  );
  const hasProbabilities = (attributes.numbers("prob_a") ?? []).length > 0;
  const scores = hasProbabilities
    ? rows.map((row) => probabilities(call, row.scores, counts.length))
    : rows.map((row) => row.scores);
  const named = rows.map(({ votes }) => labels[indexOfMost(votes)] ?? labels[0]);
  const width = scores[0]?.length ?? 0;
  const result = tensorOf(Float32Array.from(scores.flat()), { shape: [scores.length, width], dtype: "float32" });
  const isSingle = width === 1 && labels.length === 2;
  const both = isSingle ? ofBoth(result, (score) => ops.neg(score)) : result;
  return new Results(labelsOf(named, [named.length]), transformed(both, transform));
}

/** Classifies without support vectors: the coefficients are one row per class. */
function linear(call: Call, x: Tensor): Results {
  const { attributes } = call;
  const labels = classLabels(attributes) ?? [0];
  const coefficients = attributes.numbers("coefficients") ?? [];
  const weights = matrixOf(coefficients, coefficients.length / labels.length);
  const product = ops.matmul(x, ops.transpose(weights, 0, 1));
  const scores = ops.add(product, attributes.numbers("rho")?.[0] ?? 0);
  const named = numbersOf(ops.argmax(scores, { dim: 1 })).map((at) => labels[at]);
  return new Results(labelsOf(named, [named.length]), transformed(scores, attributes.text("post_transform", "NONE")));
}

export const vectorOperators: Operators = { SVMClassifier: classifier, SVMRegressor: regressor };
