/** Linear models and scalers of ai.onnx.ml. */
import { tensor as tensorOf } from "../../../ops/creation/tensor.ts";
import * as ops from "../../../ops/index.ts";
import { isFloat } from "../../../tensor/dtype.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results } from "../../call.ts";
import { NodeProblem } from "../../errors.ts";
import { labelsOf } from "./labels.ts";
import { classLabels, ofBoth, transformed } from "./scores.ts";

/** Returns an input as rows of features. A vector counts as one row. */
export function rowsAt(call: Call, at = 0): Tensor {
  const x = call.tensor(at);
  const rows = x.rank === 1 ? ops.unsqueeze(x, 0) : x;
  return isFloat(rows.dtype) ? rows : rows.to("float32");
}

const vector = (values: readonly number[], like: Tensor): Tensor => tensorOf([...values], { dtype: like.dtype });

/** x · coefficientsᵀ + intercepts, [rows, targets]. */
function product(call: Call, x: Tensor): Tensor {
  const { attributes } = call;
  const coefficients = attributes.numbers("coefficients") ?? [];
  const features = x.shape[1];
  if (features === 0 || coefficients.length % features !== 0)
    throw new NodeProblem(`${coefficients.length} coefficients don't fit ${features} features`);
  const scores = ops.matmul(x, ops.transpose(ops.reshape(vector(coefficients, x), [-1, features]), 0, 1));
  const intercepts = attributes.numbers("intercepts");
  return intercepts && intercepts.length > 0 ? ops.add(scores, vector(intercepts, x)) : scores;
}

function regressor(call: Call): Tensor {
  const x = rowsAt(call);
  return transformed(product(call, x), call.attributes.text("post_transform", "NONE")).to("float32");
}

/** Classifies by the largest score. With one column of scores there are two classes, the second above 0. */
function classifier(call: Call): Results {
  const { attributes } = call;
  const scores = product(call, rowsAt(call));
  const labels = classLabels(attributes) ?? Array.from({ length: scores.shape[1] }, (_, at) => at);
  const transform = attributes.text("post_transform", "NONE");
  const isBinary = scores.shape[1] === 1;
  const places = isBinary ? numbersOf(ops.gt(scores, 0).to("int32")) : numbersOf(ops.argmax(scores, { dim: 1 }));
  const two = labels.length === 2 ? labels : [0, 1];
  const named = places.map((at) => (isBinary ? two : labels)[at]);
  const result = isBinary && labels.length === 2 ? binary(scores, transform) : transformed(scores, transform);
  return new Results(labelsOf(named, [scores.shape[0]]), result.to("float32"));
}

/** Computes the scores of both classes from the second class's score, as onnxruntime does. */
const binary = (score: Tensor, transform: string): Tensor =>
  transform === "LOGISTIC"
    ? transformed(
        ofBoth(score, (x) => ops.neg(x)),
        transform,
      )
    : ofBoth(score, (x) => ops.sub(1, x));

/** (x − offset) · scale */
function scaler(call: Call): Tensor {
  const given = call.tensor(0);
  const x = given.to("float32");
  const { attributes } = call;
  const [offset, scale] = [attributes.numbers("offset") ?? [0], attributes.numbers("scale") ?? [1]];
  return ops.mul(ops.sub(x, vector(offset, x)), vector(scale, x));
}

const norms: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  L1: (x) => ops.sum(ops.abs(x), [-1], true),
  L2: (x) => ops.sqrt(ops.sum(ops.mul(x, x), [-1], true)),
  MAX: (x) => ops.amax(x, [-1], true),
};

/** Divides each row by its norm. Rows with a norm of 0 don't change. */
function normalizer(call: Call): Tensor {
  const x = call.tensor(0).to("float32");
  const name = call.attributes.text("norm", "MAX");
  const norm = Object.hasOwn(norms, name) ? norms[name](x) : undefined;
  if (!norm) throw new NodeProblem(`attribute norm: expected MAX, L1 or L2, got ${name}`);
  return ops.div(x, ops.where(ops.eq(norm, 0), ops.onesLike(norm), norm));
}

/** Replaces a value, or NaN, by a value per column. */
function imputer(call: Call): Tensor {
  const x = call.tensor(0);
  const { attributes } = call;
  const values = attributes.numbers(isFloat(x.dtype) ? "imputed_value_floats" : "imputed_value_int64s") ?? [];
  const replaced = isFloat(x.dtype)
    ? attributes.number("replaced_value_float", 0)
    : attributes.number("replaced_value_int64", 0);
  const row = tensorOf(x.dtype === "int64" ? values.map(BigInt) : [...values], { dtype: x.dtype });
  return ops.where(Number.isNaN(replaced) ? ops.isnan(x) : ops.eq(x, replaced), row, x);
}

function binarizer(call: Call): Tensor {
  const x = call.tensor(0);
  return ops.gt(x, call.attributes.number("threshold", 0)).to(x.dtype);
}

/** Concatenates features, truncating or padding each input to its size in `inputdimensions`. */
function featureVectorizer(call: Call): Tensor {
  const sizes = call.attributes.numbers("inputdimensions");
  const inputs = call.inputs.map((_, at) => {
    const x = rowsAt(call, at).to("float32");
    const rows = ops.reshape(x, [x.shape[0], -1]);
    const size = sizes?.[at] ?? rows.shape[1];
    return size < rows.shape[1] ? ops.narrow(rows, 1, 0, size) : ops.pad(rows, [0, size - rows.shape[1]]);
  });
  return ops.cat(inputs, { dim: 1 });
}

/** Selects along the last axis. The result for a vector is a matrix with one row. */
function arrayFeatureExtractor(call: Call): Tensor {
  const x = call.tensor(0);
  const index = ops.reshape(call.tensor(1).to("int64"), [-1]);
  const columns = ops.indexSelect(x, x.rank - 1, index);
  return x.rank === 1 ? ops.unsqueeze(columns, 0) : columns;
}

export const linearOperators: Operators = {
  ArrayFeatureExtractor: arrayFeatureExtractor,
  Binarizer: binarizer,
  FeatureVectorizer: featureVectorizer,
  Imputer: imputer,
  LinearClassifier: classifier,
  LinearRegressor: regressor,
  Normalizer: normalizer,
  Scaler: scaler,
};
