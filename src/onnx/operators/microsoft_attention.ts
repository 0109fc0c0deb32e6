/** The attention operators of com.microsoft. */
import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { headsOf, joinHeads, rotated } from "./attention.ts";

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

/** Queries, keys and values [batch, heads, length, dim], and a bias that is added to the scores. */
interface Parts {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly bias: Tensor | undefined;
}

/** Attention with an optional causal order and an optional mask. */
function attended(call: Call, { q, k, v, bias }: Parts, mask: Tensor | undefined): Tensor {
  const [queries, keys] = [q.shape[2], k.shape[2]];
  const isCausal = call.attributes.flag("unidirectional");
  const causal = isCausal ? hidden(queries, keys, (query, key) => key <= query + keys - queries) : undefined;
  const all = [bias, causal, mask && maskBias(call, mask, q.shape[0], keys)].filter((each) => each !== undefined);
  const total = all.length === 0 ? undefined : all.reduce((a, b) => ops.add(a, b)).to(q.dtype);
  return joinHeads(attend(q, k, v, total, scaleOf(call, q.shape[3])));
}

/**
 * Returns a mask as numbers that are added to scores: 0, or `mask_filter_value` where a key is hidden. The given mask
 * has a 1 for each visible key, [batch, keys] or [batch, queries, keys]; or the end of each row, [batch]; or the ends
 * of all rows and then their starts.
 */
function maskBias(call: Call, mask: Tensor, batch: number, keys: number): Tensor {
  const filter = call.attributes.number("mask_filter_value", -10_000);
  const weigh = (visible: Tensor) => ops.mul(ops.sub(1, visible.to("float32")), filter);
  if (mask.rank === 2) return weigh(ops.reshape(mask, [batch, 1, 1, keys]));
  if (mask.rank === 3) return weigh(ops.unsqueeze(mask, 1));
  if (mask.rank !== 1) throw new NodeProblem(`a mask of ${mask.rank} axes is not supported`);
  const place = ops.arange(keys, { dtype: "int32" });
  const limit = (start: number) => ops.reshape(ops.narrow(mask, 0, start, batch), [batch, 1]);
  const before = ops.lt(place, limit(0));
  const visible = mask.shape[0] === 2 * batch ? ops.logicalAnd(before, ops.ge(place, limit(batch))) : before;
  return weigh(ops.reshape(visible, [batch, 1, 1, keys]));
}

function multiHeadAttention(call: Call): Results {
  const heads = call.attributes.number("num_heads");
  if (call.tensor(0).rank !== 3 || !call.optional(2))
    throw new NodeProblem("packed queries, keys and values are not supported");
  const added = call.optional(3);
  const width = call.tensor(0).shape[2];
  const part = (at: number) => {
    const x = call.tensor(at);
    const start = at * width;
    return headsOf(added ? ops.add(x, ops.narrow(added, 0, start, x.shape[2])) : x, heads);
  };
  const joined = (at: number, past: Tensor | undefined) => (past ? ops.cat([past, part(at)], { dim: 2 }) : part(at));
  const [k, v] = [joined(1, call.optional(6)), joined(2, call.optional(7))];
  return new Results(attended(call, { q: part(0), k, v, bias: call.optional(5) }, call.optional(4)), k, v);
}

/** Self-attention with fused weights [width, queries + keys + values]; past and present are [2, batch, …]. */
function jointAttention(call: Call): Results {
  const product = ops.matmul(call.tensor(0), call.tensor(1));
  const bias = call.optional(2);
  return ofJoint(call, bias ? ops.add(product, bias) : product, {
    mask: call.optional(3),
    past: call.optional(4),
    bias: call.optional(5),
  });
}

/** Attention with queries, keys and values concatenated along the last axis. */
export function ofJoint(
  call: Call,
  joint: Tensor,
  given: { readonly mask: Tensor | undefined; readonly past: Tensor | undefined; readonly bias?: Tensor | undefined },
): Results {
  const heads = call.attributes.number("num_heads");
  const third = joint.shape[2] / 3;
  const sizes = call.attributes.numbers("qkv_hidden_sizes") ?? [third, third, third];
  const part = (at: 0 | 1 | 2) => {
    const start = sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
    return headsOf(ops.narrow(joint, 2, start, sizes[at]), heads);
  };
  const { mask, past, bias } = given;
  const [k, v] = tupleOf(
    ([1, 2] as const).map((at) => (past ? ops.cat([ops.select(past, 0, at - 1), part(at)], { dim: 2 }) : part(at))),
    2,
  );
  const present = k.shape[3] === v.shape[3] ? ops.stack([k, v], { dim: 0 }) : undefined;
  return new Results(attended(call, { q: part(0), k, v, bias }, mask), present);
}

/** Grouped-query attention, with a cache, rotary positions, and a window. */
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
  const past = call.optional(3) ? total - q.shape[2] : 0;
  const turn = (x: Tensor) => (attributes.flag("do_rotary") ? rotatedFrom(call, x, past) : x);
  const before = (at: number, x: Tensor) => {
    const cache = call.optional(at);
    return cache && past > 0 ? ops.cat([ops.narrow(cache, 2, 0, past), x], { dim: 2 }) : x;
  };
  const [k, values] = [before(3, turn(fresh)), before(4, v)];
  const [queries, keys] = [q.shape[2], k.shape[2]];
  const window = attributes.number("local_window_size", -1);
  const bias = hidden(queries, keys, (query, key) => {
    const distance = query + keys - queries - key;
    return distance >= 0 && (window < 0 || distance < window);
  }).to(q.dtype);
  const spread = (x: Tensor) => (heads === kvHeads ? x : ops.repeatInterleave(x, heads / kvHeads, { dim: 1 }));
  const y = attend(turn(q), spread(k), spread(values), bias, scaleOf(call, q.shape[3]));
  return new Results(joinHeads(y), k, values);
}

/** Rotates by consecutive rows of the tables, starting at a position. */
function rotatedFrom(call: Call, x: Tensor, position: number): Tensor {
  const rows = (at: number) => ops.narrow(call.tensor(at), 0, position, x.shape[2]);
  return rotated(x, rows(7), rows(8), call.attributes.flag("rotary_interleaved"));
}

/** Rotates by position. The input has the position of each token, or only of the first one. */
function rotaryEmbedding(call: Call): Tensor {
  const given = call.tensor(0);
  const [positions, cos] = [call.tensor(1), call.tensor(2)];
  const heads = call.attributes.number("num_heads", 0) || lastElement(given.shape) / (2 * cos.shape[1]);
  const x = headsOf(given, heads);
  const [batch, , length] = tupleOf(x.shape, 3);
  const all = numbersOf(positions);
  const places = all.length === 1 ? Array.from({ length: batch * length }, (_, at) => all[0] + (at % length)) : all;
  const indices = tensor(places.map(BigInt), { dtype: "int64", shape: [places.length] });
  const rows = (at: number) =>
    ops.unsqueeze(ops.reshape(ops.indexSelect(call.tensor(at), 0, indices), [batch, length, cos.shape[1]]), 1);
  const y = rotated(x, rows(2), rows(3), call.attributes.flag("interleaved"));
  return given.rank === 3 ? joinHeads(y) : y;
}

export const microsoftAttentions: Operators = {
  Attention: jointAttention,
  GroupQueryAttention: groupQueryAttention,
  MultiHeadAttention: multiHeadAttention,
  RotaryEmbedding: rotaryEmbedding,
};
