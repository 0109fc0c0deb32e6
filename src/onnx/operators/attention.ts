/** Attention, and rotary positions. */
import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results } from "../call.ts";
import { castTo } from "../cast.ts";
import { NodeProblem } from "../errors.ts";

/** Splits the last axis of [batch, length, heads · dim] into heads, as [batch, heads, length, dim]. */
export function headsOf(x: Tensor, heads: number): Tensor {
  if (x.rank === 4) return x;
  const [batch, length, width] = x.sizes(3);
  return ops.permute(ops.reshape(x, [batch, length, heads, width / heads]), [0, 2, 1, 3]);
}

/** The number of keys before the first query: one number for the whole batch, or one for each row. */
type Offset = number | readonly number[];

function attention(call: Call): Results {
  const { attributes } = call;
  const isFlat = call.tensor(0).rank === 3;
  const heads = (name: string) => (isFlat ? attributes.number(name) : 0);
  const q = headsOf(call.tensor(0), heads("q_num_heads"));
  const joined = (at: number, past: number) => {
    const [fresh, before] = [headsOf(call.tensor(at), heads("kv_num_heads")), call.optional(past)];
    return before ? ops.cat([before, fresh], { dim: 2 }) : fresh;
  };
  const [k, v] = [joined(1, 4), joined(2, 5)];
  const scale = Math.sqrt(attributes.has("scale") ? attributes.number("scale") : 1 / Math.sqrt(q.shape[3]));
  const groups = q.shape[1] / k.shape[1];
  const spread = (x: Tensor) => (groups === 1 ? x : ops.repeatInterleave(x, groups, { dim: 1 }));
  const products = ops.matmul(ops.mul(q, scale), ops.transpose(ops.mul(spread(k), scale), 2, 3)).to(q.dtype);
  const softcap = attributes.number("softcap", 0);
  const capped = softcap > 0 ? ops.mul(ops.tanh(ops.div(products, softcap)), softcap) : products;
  const bias = biasOf(call, q, k);
  const scores = bias ? ops.add(capped, bias).to(q.dtype) : capped;
  const precision = attributes.number("softmax_precision", 0);
  const shares = ops.softmax(precision > 0 ? castTo(scores, precision) : scores, { dim: -1 });
  // A query without a visible key gets probabilities of 0.
  const guarded = bias
    ? ops.where(
        ops.eq(ops.amax(bias, { dim: -1, keepdim: true }), Number.NEGATIVE_INFINITY),
        ops.zerosLike(shares),
        shares,
      )
    : shares;
  const weights = guarded.to(q.dtype);
  const y = ops.matmul(weights, spread(v));
  const stage = [products, capped, scores, weights][attributes.number("qk_matmul_output_mode", 0)];
  return new Results(isFlat ? joinHeads(y) : y, k, v, stage);
}

export function joinHeads(x: Tensor): Tensor {
  const [batch, heads, length, dim] = x.sizes(4);
  return ops.reshape(ops.permute(x, [0, 2, 1, 3]), [batch, length, heads * dim]);
}

/**
 * The bias of the scores: the sum of the causal mask, the window, and the ends of sequences, each 0 or −∞, and of the
 * given mask.
 */
function biasOf(call: Call, q: Tensor, k: Tensor): Tensor | undefined {
  const [queries, keys] = [q.shape[2], k.shape[2]];
  const ends = call.optional(6) && call.numbers(6);
  const past = call.optional(4)?.shape[2];
  const offset: Offset = past ?? (ends ? ends.map((end) => end - queries) : 0);
  const { attributes } = call;
  const [left, right] = tupleOf(
    ["left_window_size", "right_window_size"].map((name) => attributes.number(name, -1)),
    2,
  );
  const parts: Tensor[] = [];
  const mask = call.optional(3);
  if (mask) parts.push(maskBias(mask, keys, q));
  const visible = (allows: (query: number, key: number, batch: number) => boolean, batches: number, rows = queries) =>
    allowedBias(allows, [batches, 1, rows, keys], q);
  const batches = Array.isArray(offset) ? offset.length : 1;
  const place = (query: number, batch: number) => query + (Array.isArray(offset) ? offset[batch]! : offset);
  if (attributes.flag("is_causal")) parts.push(visible((query, key, batch) => key <= place(query, batch), batches));
  if (left >= 0 || right >= 0)
    parts.push(
      visible((query, key, batch) => {
        const distance = place(query, batch) - key;
        return (left < 0 || distance <= left) && (right < 0 || -distance <= right);
      }, batches),
    );
  if (ends) parts.push(visible((_, key, batch) => key < ends[batch], ends.length, 1));
  return parts.length === 0 ? undefined : parts.reduce((a, b) => ops.add(a, b)).to(q.dtype);
}

/** Returns the bias of a mask. Keys beyond the end of the mask are hidden. */
function maskBias(mask: Tensor, keys: number, q: Tensor): Tensor {
  const isBool = mask.dtype === "bool";
  const hidden = Number.NEGATIVE_INFINITY;
  const bias = isBool
    ? ops.where(mask, ops.zeros([], { dtype: q.dtype }), ops.full([], hidden, { dtype: q.dtype }))
    : mask;
  const missing = keys - lastElement(mask.shape);
  return missing > 0 ? ops.pad(bias, [0, missing], { value: hidden }) : bias;
}

function allowedBias(
  allows: (query: number, key: number, batch: number) => boolean,
  shape: readonly [batches: number, heads: number, queries: number, keys: number],
  q: Tensor,
): Tensor {
  const [batches, , queries, keys] = shape;
  const values = new Float32Array(batches * queries * keys);
  for (let at = 0; at < values.length; at++) {
    const [key, row] = [at % keys, Math.floor(at / keys)];
    if (!allows(row % queries, key, Math.floor(row / queries))) values[at] = Number.NEGATIVE_INFINITY;
  }
  return tensor(values, { shape }).to(q.dtype);
}

/**
 * Rotates pairs of elements of the last axis, halves apart or next to each other.
 *
 * @param cos the cosine of each pair's angle; it broadcasts to half of x
 */
export function rotated(x: Tensor, cos: Tensor, sin: Tensor, isInterleaved: boolean): Tensor {
  const dim = lastElement(x.shape);
  const half = (at: 0 | 1) =>
    isInterleaved ? ops.slice(x, { dim: -1, start: at, step: 2 }) : ops.narrow(x, -1, (at * dim) / 2, dim / 2);
  const [a, b] = [half(0), half(1)];
  const real = ops.sub(ops.mul(cos, a), ops.mul(sin, b));
  const imaginary = ops.add(ops.mul(sin, a), ops.mul(cos, b));
  return isInterleaved
    ? ops.reshape(ops.stack([real, imaginary], { dim: -1 }), x.shape)
    : ops.cat([real, imaginary], { dim: -1 });
}

/** Rotates queries or keys by their positions. The tables hold the cosines and sines of each position. */
function rotaryEmbedding(call: Call): Tensor {
  const given = call.tensor(0);
  const heads = call.attributes.number("num_heads", 0);
  if (given.rank === 3 && heads === 0) throw new NodeProblem("attribute num_heads is missing for an input of rank 3");
  const x = headsOf(given, heads);
  const dim = call.attributes.number("rotary_embedding_dim", 0) || x.shape[3];
  const positions = call.optional(3);
  const table = (at: number) => {
    const cache = call.tensor(at);
    const rows = positions
      ? ops.reshape(ops.indexSelect(cache, 0, ops.flatten(positions).to("int64")), [...positions.shape, cache.shape[1]])
      : cache;
    return ops.unsqueeze(rows, 1);
  };
  const [cos, sin] = [table(1), table(2)];
  if (cos.shape.at(-1) !== dim / 2)
    throw new NodeProblem(`expected ${dim / 2} cosines per position, got ${cos.shape.at(-1)}`);
  const turned = rotated(ops.narrow(x, 3, 0, dim), cos, sin, call.attributes.flag("interleaved"));
  const rest = x.shape[3] - dim;
  const y = rest > 0 ? ops.cat([turned, ops.narrow(x, 3, dim, rest)], { dim: 3 }) : turned;
  return (given.rank === 3 ? joinHeads(y) : y).to(given.dtype);
}

/** Writes new keys or values into a cache, at a given position in each row of the batch. */
function tensorScatter(call: Call): Tensor {
  const [cache, update] = [call.tensor(0), call.tensor(1)];
  const axis = (call.attributes.number("axis", -2) + cache.rank) % cache.rank;
  const starts = call.optional(2) ? numbersOf(call.tensor(2)) : new Array<number>(cache.shape[0]).fill(0);
  const size = cache.shape[axis];
  const isCircular = call.attributes.choice("mode", ["linear", "circular"], "linear") === "circular";
  const places = starts.flatMap((start) =>
    Array.from({ length: update.shape[axis] }, (_, at) => BigInt(isCircular ? (start + at) % size : start + at)),
  );
  const shape = update.shape.map((length, at) => (at === 0 || at === axis ? length : 1));
  const indices = tensor(places, { dtype: "int64", shape });
  return ops.scatter(cache, axis, ops.expand(indices, update.shape), update);
}

export const attentions: Operators = {
  Attention: attention,
  RotaryEmbedding: rotaryEmbedding,
  SwiGLU: (call) => {
    const [a, b] = [call.tensor(0), call.tensor(1)];
    const gate = ops.mul(a, ops.sigmoid(ops.mul(a, call.attributes.number("alpha", 1))));
    return ops.mul(gate, b).to(a.dtype);
  },
  TensorScatter: tensorScatter,
};
