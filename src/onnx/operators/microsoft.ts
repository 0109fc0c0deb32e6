/** Operators of com.microsoft, which exporters and optimizers of transformers write: onnxruntime's contributed ones. */
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operator, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { headsOf, joinHeads, rotated } from "./attention.ts";

/** An activation of the sum of the input and an optional bias. */
const biased =
  (compute: (x: Tensor, call: Call) => Tensor): Operator =>
  (call) => {
    const bias = call.optional(1);
    return compute(bias ? ops.add(call.tensor(0), bias) : call.tensor(0), call);
  };

const epsilonOf = (call: Call, byDefault: number): number => call.attributes.number("epsilon", byDefault);

/** Normalizes the sum of two inputs and an optional bias; the fourth result is the sum. */
function skipLayerNormalization(call: Call): Results {
  const [gamma, beta, bias] = [call.tensor(2), call.optional(3), call.optional(4)];
  const both = ops.add(call.tensor(0), call.tensor(1));
  const sum = bias ? ops.add(both, bias) : both;
  const norm = ops.layerNorm(sum, { weight: gamma, ...(beta ? { bias: beta } : {}), eps: epsilonOf(call, 1e-12) });
  return new Results(norm, undefined, undefined, sum);
}

function skipRmsNormalization(call: Call): Results {
  const bias = call.optional(3);
  const both = ops.add(call.tensor(0), call.tensor(1));
  const sum = bias ? ops.add(both, bias) : both;
  return new Results(rmsNormalized(call, sum, call.tensor(2)), undefined, undefined, sum);
}

/** onnxruntime names it in the standard's domain, where the standard has RMSNormalization. */
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
 * A product with weights of 4 or 8 bits [n, blocks, bytes]: each block along k has a scale and a zero point, which are
 * packed as the weights are and are half of the range without any.
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
  const product = ops.matmul(call.tensor(0), ops.transpose(ops.narrow(weight, 1, 0, k), 0, 1));
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

/** Attention of [batch, heads, length, dim] tensors with an additive bias. */
function attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | undefined, scale: number): Tensor {
  const scores = ops.mul(ops.matmul(q, ops.transpose(k, 2, 3)), scale);
  return ops.matmul(ops.softmax(bias ? ops.add(scores, bias) : scores, { dim: -1 }), v);
}

/** 0 where a key is visible, and −∞ elsewhere. */
function hidden(queries: number, keys: number, isVisible: (query: number, key: number) => boolean): Tensor {
  const values = new Float32Array(queries * keys);
  for (let at = 0; at < values.length; at++)
    if (!isVisible(Math.floor(at / keys), at % keys)) values[at] = Number.NEGATIVE_INFINITY;
  return tensor(values, { shape: [queries, keys] });
}

const scaleOf = (call: Call, dim: number): number => call.attributes.number("scale", 0) || 1 / Math.sqrt(dim);

function multiHeadAttention(call: Call): Results {
  const heads = call.attributes.number("num_heads");
  if (call.tensor(0).rank !== 3 || !call.optional(2))
    throw new NodeProblem("packed queries, keys and values are not supported");
  if (call.optional(4)) throw new NodeProblem("a mask of padded keys is not supported; use attention_bias");
  const bias = call.optional(3);
  const width = call.tensor(0).shape[2]!;
  const part = (at: number) => {
    const x = call.tensor(at);
    const start = at * width;
    return headsOf(bias ? ops.add(x, ops.narrow(bias, 0, start, x.shape[2]!)) : x, heads);
  };
  const q = part(0);
  const joined = (at: number, past: Tensor | undefined) => (past ? ops.cat([past, part(at)], { dim: 2 }) : part(at));
  const [k, v] = [joined(1, call.optional(6)), joined(2, call.optional(7))];
  const [queries, keys] = [q.shape[2]!, k.shape[2]!];
  const isCausal = call.attributes.flag("unidirectional");
  const causal = isCausal ? hidden(queries, keys, (query, key) => key <= query + keys - queries) : undefined;
  const given = call.optional(5);
  const total = given && causal ? ops.add(given, causal) : (given ?? causal);
  return new Results(joinHeads(attend(q, k, v, total, scaleOf(call, q.shape[3]!))), k, v);
}

/** Fewer heads of keys and values than of queries, a cache, rotary positions, and a window. */
function groupQueryAttention(call: Call): Results {
  const { attributes } = call;
  const [heads, kvHeads] = [attributes.number("num_heads"), attributes.number("kv_num_heads")];
  if (!call.optional(1)) throw new NodeProblem("packed queries, keys and values are not supported");
  const total = call.number(6)!;
  const ends = call.numbers(5).map((last) => last + 1);
  if (ends.some((end) => end !== total)) throw new NodeProblem("sequences of different lengths are not supported");
  const [q, fresh, v] = [
    headsOf(call.tensor(0), heads),
    headsOf(call.tensor(1), kvHeads),
    headsOf(call.tensor(2), kvHeads),
  ];
  const past = call.optional(3) ? total - q.shape[2]! : 0;
  const turn = (x: Tensor) => (attributes.flag("do_rotary") ? rotatedFrom(call, x, past) : x);
  const before = (at: number, x: Tensor) => {
    const cache = call.optional(at);
    return cache && past > 0 ? ops.cat([ops.narrow(cache, 2, 0, past), x], { dim: 2 }) : x;
  };
  const [k, values] = [before(3, turn(fresh)), before(4, v)];
  const [queries, keys] = [q.shape[2]!, k.shape[2]!];
  const window = attributes.number("local_window_size", -1);
  const bias = hidden(queries, keys, (query, key) => {
    const distance = query + keys - queries - key;
    return distance >= 0 && (window < 0 || distance < window);
  });
  const spread = (x: Tensor) => (heads === kvHeads ? x : ops.repeatInterleave(x, heads / kvHeads, { dim: 1 }));
  const y = attend(turn(q), spread(k), spread(values), bias, scaleOf(call, q.shape[3]!));
  return new Results(joinHeads(y), k, values);
}

/** Rotates by the rows of the tables from a position on. */
function rotatedFrom(call: Call, x: Tensor, position: number): Tensor {
  const rows = (at: number) => ops.narrow(call.tensor(at), 0, position, x.shape[2]!);
  return rotated(x, rows(7), rows(8), call.attributes.flag("rotary_interleaved"));
}

/** Positions are those of each element, or that of the first. */
function rotaryEmbedding(call: Call): Tensor {
  const given = call.tensor(0);
  const [positions, cos] = [call.tensor(1), call.tensor(2)];
  const heads = call.attributes.number("num_heads", 0) || given.shape.at(-1)! / (2 * cos.shape[1]!);
  const x = headsOf(given, heads);
  const [batch, , length] = x.shape as [number, number, number];
  const all = numbersOf(positions);
  const places = all.length === 1 ? Array.from({ length: batch * length }, (_, at) => all[0]! + (at % length)) : all;
  const indices = tensor(places.map(BigInt), { dtype: "int64", shape: [places.length] });
  const rows = (at: number) =>
    ops.unsqueeze(ops.reshape(ops.indexSelect(call.tensor(at), 0, indices), [batch, length, cos.shape[1]!]), 1);
  const y = rotated(x, rows(2), rows(3), call.attributes.flag("interleaved"));
  return given.rank === 3 ? joinHeads(y) : y;
}

export const microsoft: Operators = {
  BiasGelu: biased((x) => ops.gelu(x)),
  FastGelu: biased((x) => ops.gelu(x, { approximate: "tanh" })),
  FusedMatMul: fusedMatMul,
  Gelu: (call) => ops.gelu(call.tensor(0)),
  GroupQueryAttention: groupQueryAttention,
  MatMulNBits: matMulNBits,
  MultiHeadAttention: multiHeadAttention,
  QuickGelu: (call) => {
    const x = call.tensor(0);
    return ops.mul(x, ops.sigmoid(ops.mul(x, call.attributes.number("alpha", 1.702))));
  },
  RotaryEmbedding: rotaryEmbedding,
  SimplifiedLayerNormalization: simplifiedLayerNormalization,
  SkipLayerNormalization: skipLayerNormalization,
  SkipSimplifiedLayerNormalization: skipRmsNormalization,
};
