/** Operators of com.microsoft on integers with a scale and a zero point. */
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Call, type Operator, type Operators, type Results } from "../call.ts";
import { axisOf } from "./axes.ts";
import { ofJoint } from "./microsoft_attention.ts";
import { dequantized, integerProduct, quantizeDynamically, rounded } from "./quantized.ts";
import { averagePool } from "./windows.ts";

/** Returns input `at` dequantized to float32. Its scale and zero point are the next two inputs. */
const floatAt = (call: Call, at: number): Tensor =>
  dequantized(call.tensor(at), call.tensor(at + 1), call.optional(at + 2));

/** Quantizes a result with the scale in input `at` and the zero point in the next input. */
const roundedAt = (call: Call, y: Tensor, at: number): Tensor => rounded(y, call.tensor(at), call.optional(at + 1));

/** One input and its scale and zero point, then those of the result. */
const ofOne =
  (compute: (x: Tensor, call: Call) => Tensor): Operator =>
  (call) =>
    roundedAt(call, compute(floatAt(call, 0), call), 3);

/** Two inputs, then the scale and the zero point of the result. */
const ofTwo =
  (compute: (a: Tensor, b: Tensor) => Tensor): Operator =>
  (call) =>
    roundedAt(call, compute(floatAt(call, 0), floatAt(call, 3)), 6);

function globalAveragePool(x: Tensor, call: Call): Tensor {
  const isLast = call.attributes.flag("channels_last");
  const axes = x.shape.map((_, axis) => axis).filter((axis) => (isLast ? axis > 0 && axis < x.rank - 1 : axis > 1));
  return ops.mean(x, axes, true);
}

/** Before operator set 13, a softmax is over all axes from its axis on. */
function softmax(x: Tensor, call: Call): Tensor {
  const axis = axisOf(call.attributes.number("axis", -1), x.rank);
  if (call.attributes.number("opset", 13) >= 13) return ops.softmax(x, { dim: axis });
  const rows = x.shape.slice(0, axis);
  return ops.reshape(ops.softmax(ops.reshape(x, [...rows, -1]), { dim: -1 }), x.shape);
}

function concat(call: Call): Tensor {
  const inputs = Array.from({ length: (call.inputs.length - 2) / 3 }, (_, at) => floatAt(call, 2 + 3 * at));
  const dim = axisOf(call.attributes.number("axis"), inputs[0].rank);
  return roundedAt(call, ops.cat(inputs, { dim }), 0);
}

/** A product of integers, scaled by a vector for the columns or one number, with an optional bias. */
function scaledProduct(sums: Tensor, scale: Tensor, bias: Tensor | undefined): Tensor {
  const scaled = ops.mul(sums.to("float32"), scale);
  return bias ? ops.add(scaled, bias) : scaled;
}

/** Inputs: a, b, the scales of a and b, their zero points, and a bias. */
function matMulIntegerToFloat(call: Call): Tensor {
  const sums = integerProduct(call.tensor(0), call.tensor(1), call.optional(4), call.optional(5));
  return scaledProduct(sums, ops.mul(call.tensor(2), call.tensor(3)), call.optional(6));
}

/** Quantizes a as DynamicQuantizeLinear does. Inputs: a, b, the scale and zero point of b, and a bias. */
function dynamicQuantizeMatMul(call: Call): Tensor {
  const [a, scale, zero] = quantizeDynamically(call).values as [Tensor, Tensor, Tensor];
  const sums = integerProduct(a, call.tensor(1), zero, call.optional(3));
  return scaledProduct(sums, ops.mul(scale, call.tensor(2)), call.optional(4));
}

/** Inputs: a and b with scales and zero points, c of integers, and the scale and zero point of the result. */
function gemm(call: Call): Tensor {
  const { attributes } = call;
  const turned = (at: number, name: string) =>
    attributes.flag(name) ? ops.transpose(call.tensor(at), 0, 1) : call.tensor(at);
  const sums = integerProduct(turned(0, "transA"), turned(3, "transB"), call.optional(2), call.optional(5));
  const c = call.optional(6);
  const total = c ? ops.add(sums, c.to(sums.dtype)) : sums;
  const scale = ops.mul(ops.mul(call.tensor(1), call.tensor(4)), attributes.number("alpha", 1));
  const y = scaledProduct(total, scale, undefined);
  return call.optional(7) ? roundedAt(call, y, 7) : y;
}

/** Inputs: x, weights, bias, the scales of x and weights, a mask, the zero points of x and weights, and past keys. */
function attention(call: Call): Results {
  const sums = integerProduct(call.tensor(0), call.tensor(1), call.optional(6), call.optional(7));
  const joint = scaledProduct(sums, ops.mul(call.tensor(3), call.tensor(4)), call.tensor(2));
  return ofJoint(call, joint, { mask: call.optional(5), past: call.optional(8) });
}

/** Returns the same call with other inputs. */
const withInputs = (call: Call, ...inputs: readonly Tensor[]): Call => new Call(inputs, call.attributes, call);

export const microsoftQuantization: Operators = {
  DynamicQuantizeMatMul: dynamicQuantizeMatMul,
  MatMulIntegerToFloat: matMulIntegerToFloat,
  QAttention: attention,
  QGemm: gemm,
  QLinearAdd: ofTwo((a, b) => ops.add(a, b)),
  QLinearAveragePool: ofOne((x, call) => averagePool(withInputs(call, x))),
  QLinearConcat: concat,
  QLinearGlobalAveragePool: ofOne(globalAveragePool),
  QLinearLeakyRelu: ofOne((x, call) => ops.leakyRelu(x, call.attributes.number("alpha", 0.01))),
  QLinearMul: ofTwo((a, b) => ops.mul(a, b)),
  QLinearSigmoid: ofOne((x) => ops.sigmoid(x)),
  QLinearSoftmax: ofOne(softmax),
};
