/** Elementwise operators. */
import * as ops from "../../ops/index.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operator, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";

const unary =
  (compute: (x: Tensor) => Tensor): Operator =>
  (call) =>
    compute(call.tensor(0));

const binary =
  (compute: (a: Tensor, b: Tensor) => Tensor): Operator =>
  (call) =>
    compute(call.tensor(0), call.tensor(1));

/** Reduces any number of inputs from left to right. */
const folded =
  (compute: (a: Tensor, b: Tensor) => Tensor): Operator =>
  (call) =>
    call.inputs.map((_, at) => call.tensor(at)).reduce(compute);

const number = (call: Call, name: string, byDefault?: number): number => call.attributes.number(name, byDefault);

/** Integers divide toward zero, as in C. */
const divide = (a: Tensor, b: Tensor): Tensor =>
  isFloat(a.dtype) ? ops.div(a, b) : ops.div(a, b, { roundingMode: "trunc" });

/** The result has the base's dtype, regardless of the exponent's. */
const power = (a: Tensor, b: Tensor): Tensor => {
  const floating = isFloat(a.dtype) || !isFloat(b.dtype) ? ops.pow(a, b.to(a.dtype)) : ops.pow(a.to(b.dtype), b);
  return floating.to(a.dtype);
};

function isInfinite(call: Call): Tensor {
  const x = call.tensor(0);
  const [negative, positive] = ["detect_negative", "detect_positive"].map((name) => call.attributes.flag(name, true));
  if (negative && positive) return ops.isinf(x);
  if (positive) return ops.isposinf(x);
  return negative ? ops.isneginf(x) : ops.zeros(x.shape, { dtype: "bool" });
}

function clip(call: Call): Tensor {
  const x = call.tensor(0);
  const bound = (at: number, name: string): Tensor | number | null =>
    call.optional(at) ?? (call.opset < 11 && call.attributes.has(name) ? number(call, name) : null);
  const [min, max] = [bound(1, "min"), bound(2, "max")];
  if (min === null && max === null) return ops.clone(x);
  return ops.clamp(x, { ...(min === null ? {} : { min }), ...(max === null ? {} : { max }) }).to(x.dtype);
}

/** y = x + bias below −lambd, x − bias above lambd, and 0 between. */
function shrink(call: Call): Tensor {
  const x = call.tensor(0);
  const [bias, lambda] = [number(call, "bias", 0), number(call, "lambd", 0.5)];
  const zero = ops.zerosLike(x);
  const below = ops.where(ops.lt(x, -lambda), ops.add(x, bias), zero);
  return ops.where(ops.gt(x, lambda), ops.sub(x, bias), below).to(x.dtype);
}

function hardSigmoid(call: Call): Tensor {
  const [alpha, beta] = [number(call, "alpha", 0.2), number(call, "beta", 0.5)];
  return ops.clamp(ops.add(ops.mul(call.tensor(0), alpha), beta), { min: 0, max: 1 });
}

function selu(call: Call): Tensor {
  const [alpha, gamma] = [number(call, "alpha", 1.6732631921768188), number(call, "gamma", 1.0507010221481323)];
  return ops.mul(ops.elu(call.tensor(0), { alpha }), gamma);
}

/** The slope broadcasts to x from the right, as in NumPy. */
function prelu(call: Call): Tensor {
  const [x, slope] = [call.tensor(0), call.tensor(1)];
  return ops.where(ops.lt(x, 0), ops.mul(x, slope), x);
}

function shift(call: Call): Tensor {
  const [x, by] = [call.tensor(0), call.tensor(1)];
  const direction = call.attributes.text("direction");
  if (direction !== "LEFT" && direction !== "RIGHT")
    throw new NodeProblem(`attribute direction: expected LEFT or RIGHT, got ${direction}`);
  return direction === "LEFT" ? ops.bitwiseLeftShift(x, by) : ops.bitwiseRightShift(x, by);
}

const modulo = (call: Call): Tensor => {
  const [a, b] = [call.tensor(0), call.tensor(1)];
  return call.attributes.flag("fmod") ? ops.fmod(a, b) : ops.remainder(a, b);
};

const mean: Operator = (call) => ops.div(sum(call) as Tensor, call.inputs.length);
const sum = folded((a, b) => ops.add(a, b));

export const elementwise: Operators = {
  Abs: unary(ops.abs),
  Acos: unary(ops.acos),
  Acosh: unary(ops.acosh),
  Add: binary(ops.add),
  And: binary(ops.logicalAnd),
  Asin: unary(ops.asin),
  Asinh: unary(ops.asinh),
  Atan: unary(ops.atan),
  Atanh: unary(ops.atanh),
  BitShift: shift,
  BitwiseAnd: binary(ops.bitwiseAnd),
  BitwiseNot: unary(ops.bitwiseNot),
  BitwiseOr: binary(ops.bitwiseOr),
  BitwiseXor: binary(ops.bitwiseXor),
  Ceil: unary(ops.ceil),
  Celu: (call) => ops.celu(call.tensor(0), { alpha: number(call, "alpha", 1) }),
  Clip: clip,
  Cos: unary(ops.cos),
  Cosh: unary(ops.cosh),
  Div: binary(divide),
  Elu: (call) => ops.elu(call.tensor(0), { alpha: number(call, "alpha", 1) }),
  Equal: binary(ops.eq),
  Erf: unary(ops.erf),
  Exp: unary(ops.exp),
  Floor: unary(ops.floor),
  Gelu: (call) =>
    ops.gelu(call.tensor(0), { approximate: call.attributes.text("approximate", "none") as "none" | "tanh" }),
  Greater: binary(ops.gt),
  GreaterOrEqual: binary(ops.ge),
  HardSigmoid: hardSigmoid,
  HardSwish: unary((x) => ops.mul(x, ops.clamp(ops.add(ops.div(x, 6), 0.5), { min: 0, max: 1 }))),
  Identity: (call) => call.inputs[0],
  IsInf: isInfinite,
  IsNaN: unary(ops.isnan),
  LeakyRelu: (call) => ops.leakyRelu(call.tensor(0), { negativeSlope: number(call, "alpha", 0.01) }),
  Less: binary(ops.lt),
  LessOrEqual: binary(ops.le),
  Log: unary(ops.log),
  Max: folded((a, b) => ops.maximum(a, b)),
  Mean: mean,
  Min: folded((a, b) => ops.minimum(a, b)),
  Mish: unary(ops.mish),
  Mod: modulo,
  Mul: binary(ops.mul),
  Neg: unary(ops.neg),
  Not: unary(ops.logicalNot),
  Or: binary(ops.logicalOr),
  PRelu: prelu,
  Pow: binary(power),
  Reciprocal: unary(ops.reciprocal),
  Relu: unary(ops.relu),
  Round: unary((x) => ops.round(x)),
  Selu: selu,
  Shrink: shrink,
  Sigmoid: unary(ops.sigmoid),
  Sign: unary(ops.sign),
  Sin: unary(ops.sin),
  Sinh: unary(ops.sinh),
  Softplus: unary((x) => ops.softplus(x)),
  Softsign: unary(ops.softsign),
  Sqrt: unary(ops.sqrt),
  Sub: binary(ops.sub),
  Sum: sum,
  Swish: (call) => {
    const x = call.tensor(0);
    return ops.mul(x, ops.sigmoid(ops.mul(x, number(call, "alpha", 1))));
  },
  Tan: unary(ops.tan),
  Tanh: unary(ops.tanh),
  ThresholdedRelu: (call) => {
    const x = call.tensor(0);
    return ops.where(ops.gt(x, number(call, "alpha", 1)), x, ops.zerosLike(x));
  },
  Where: (call) => ops.where(call.tensor(0), call.tensor(1), call.tensor(2)),
  Xor: binary(ops.logicalXor),
};

/**
 * Dropout outside of training returns its input; in training it draws. The mask is true for elements that are kept.
 * Before version 12 it is all false, as in onnxruntime.
 */
export const dropout: Operator = (call) => {
  const x = call.tensor(0);
  const training = call.optional(2);
  const isTraining = training !== undefined && call.number(2) !== 0;
  const ratio = call.number(1) ?? number(call, "ratio", 0.5);
  const mask = isTraining && ratio > 0 ? ops.ge(ops.rand(x.shape), ratio) : ops.full(x.shape, call.opset >= 12);
  const y = isTraining && ratio > 0 ? ops.where(mask, ops.div(x, 1 - ratio), ops.zerosLike(x)) : x;
  return new Results(y, mask);
};
