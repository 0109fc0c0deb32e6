/**
 * Operators of com.microsoft (onnxruntime's contrib operators), which exporters and optimizers of transformers write.
 */
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operator, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { microsoftAttentions } from "./microsoft_attention.ts";
import { microsoftFused } from "./microsoft_fused.ts";
import { microsoftQuantization } from "./microsoft_quantized.ts";
import { dynamicQuantizeLstm } from "./recurrent.ts";
import { tokenizer } from "./text.ts";

/** An activation of the sum of the input and an optional bias. */
const biased =
  (compute: (x: Tensor, call: Call) => Tensor): Operator =>
  (call) => {
    const bias = call.optional(1);
    return compute(bias ? ops.add(call.tensor(0), bias) : call.tensor(0), call);
  };

/** The epsilon of a norm. */
const epsilonOf = (call: Call, byDefault: number): number => call.attributes.number("epsilon", byDefault);

/** Normalizes the sum of two inputs and an optional bias; the fourth result is the sum. */
function skipLayerNormalization(call: Call): Results {
  const [gamma, beta, bias] = [call.tensor(2), call.optional(3), call.optional(4)];
  const both = ops.add(call.tensor(0), call.tensor(1));
  const sum = bias ? ops.add(both, bias) : both;
  const norm = ops.layerNorm(sum, { weight: gamma, ...(beta ? { bias: beta } : {}), eps: epsilonOf(call, 1e-12) });
  return new Results(norm, undefined, undefined, sum);
}

/**
 * The sum of the embeddings of tokens, positions and segments, normalized. The second result counts the visible tokens
 * of each row, and the third is the sum.
 */
function embedLayerNormalization(call: Call): Results {
  const [tokens, segments, word, position] = [call.tensor(0), call.optional(1), call.tensor(2), call.tensor(3)];
  const [segment, gamma, beta, mask] = [call.optional(4), call.tensor(5), call.tensor(6), call.optional(7)];
  const given = call.optional(8);
  const [batch, length] = tokens.sizes(2);
  const positions = given ? ops.embedding(given.to("int64"), position) : ops.narrow(position, 0, 0, length);
  const both = ops.add(ops.embedding(tokens.to("int64"), word), positions);
  const sum = segments && segment ? ops.add(both, ops.embedding(segments.to("int64"), segment)) : both;
  const counts = mask ? ops.sum(mask, [1]).to("int32") : ops.zeros([batch], { dtype: "int32" });
  return new Results(ops.layerNorm(sum, { weight: gamma, bias: beta, eps: epsilonOf(call, 1e-12) }), counts, sum);
}

function skipRmsNormalization(call: Call): Results {
  const bias = call.optional(3);
  const both = ops.add(call.tensor(0), call.tensor(1));
  const sum = bias ? ops.add(both, bias) : both;
  return new Results(rmsNormalized(call, sum, call.tensor(2)), undefined, undefined, sum);
}

/** onnxruntime puts this operator into the standard's domain, whose operator is RMSNormalization. */
export const simplifiedLayerNormalization: Operator = (call) => rmsNormalized(call, call.tensor(0), call.tensor(1));

const rmsNormalized = (call: Call, x: Tensor, weight: Tensor): Tensor =>
  ops.rmsNorm(x, { weight, eps: epsilonOf(call, 1e-5) });

function fusedMatMul(call: Call): Tensor {
  const { attributes } = call;
  if (attributes.flag("transBatchA") || attributes.flag("transBatchB"))
    throw new NodeProblem("transposed batches are not supported");
  const turned = (at: number, name: string) =>
    attributes.flag(name) ? ops.transpose(call.tensor(at), -1, -2) : call.tensor(at);
  return ops.mul(ops.matmul(turned(0, "transA"), turned(1, "transB")), attributes.number("alpha", 1));
}

/**
 * A product with weights of 4 or 8 bits [n, blocks, bytes]: each block along k has a scale and a zero point. Zero
 * points are packed as the weights are; the default is half of the range.
 */
function matMulNBits(call: Call): Tensor {
  const { attributes } = call;
  const [k, n, bits] = [attributes.number("K"), attributes.number("N"), attributes.number("bits", 4)];
  const block = attributes.number("block_size");
  if (bits !== 4 && bits !== 8) throw new NodeProblem(`weights of ${bits} bits are not supported`);
  if (call.optional(4)) throw new NodeProblem("an order of groups (g_idx) is not supported");
  const blocks = Math.ceil(k / block);
  const codes = unpacked(call.tensor(1), bits, [n, blocks, block]);
  const scales = ops.reshape(call.tensor(2), [n, blocks, 1]);
  const given = call.optional(3);
  const zeros = given && zeroPoints(given, bits, n, blocks);
  const shifted = ops.sub(codes, zeros ?? 2 ** (bits - 1));
  const weight = ops.reshape(ops.mul(shifted, scales), [n, blocks * block]);
  const x = call.tensor(0);
  const product = ops.matmul(x, ops.transpose(ops.narrow(weight, 1, 0, k).to(x.dtype), 0, 1));
  const bias = call.optional(5);
  return bias ? ops.add(product, bias) : product;
}

/** Codes as float32: the low half of a byte comes first. */
function unpacked(packed: Tensor, bits: number, shape: readonly number[]): Tensor {
  if (bits === 8) return ops.reshape(packed.to("float32"), shape);
  const wide = packed.to("int32");
  const halves = ops.stack([ops.bitwiseAnd(wide, 15), ops.bitwiseRightShift(wide, 4)], { dim: -1 });
  return ops.reshape(halves.to("float32"), shape);
}

/** Zero points are packed by row, or are numbers of the scales' type. */
function zeroPoints(given: Tensor, bits: number, n: number, blocks: number): Tensor {
  if (given.dtype !== "uint8") return ops.reshape(given, [n, blocks, 1]);
  const perByte = 8 / bits;
  const bytes = Math.ceil(blocks / perByte);
  const all = unpacked(ops.reshape(given, [n, bytes]), bits, [n, bytes * perByte]);
  return ops.unsqueeze(ops.narrow(all, 1, 0, blocks), -1);
}

export const microsoft: Operators = {
  ...microsoftAttentions,
  ...microsoftFused,
  ...microsoftQuantization,
  BiasGelu: biased((x) => ops.gelu(x)),
  DynamicQuantizeLSTM: dynamicQuantizeLstm,
  EmbedLayerNormalization: embedLayerNormalization,
  FastGelu: biased((x) => ops.gelu(x, { approximate: "tanh" })),
  FusedMatMul: fusedMatMul,
  Gelu: (call) => ops.gelu(call.tensor(0)),
  MatMulNBits: matMulNBits,
  QuickGelu: (call) => {
    const x = call.tensor(0);
    return ops.mul(x, ops.sigmoid(ops.mul(x, call.attributes.number("alpha", 1.702))));
  },
  SimplifiedLayerNormalization: simplifiedLayerNormalization,
  SkipLayerNormalization: skipLayerNormalization,
  SkipSimplifiedLayerNormalization: skipRmsNormalization,
  Tokenizer: tokenizer,
  TransposeMatMul: fusedMatMul,
};
