/** Scores of attention that depend on the distance between tokens: T5's buckets, and DeBERTa's embeddings. */
import { tensor } from "../../../ops/creation/tensor.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { takeAlongDim } from "../../../ops/indexing/gather.ts";
import { matmul } from "../../../ops/matmul/matmul.ts";
import { expand } from "../../../ops/view/expand.ts";
import { permute, transpose } from "../../../ops/view/permute.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Embedding } from "../../layers/embedding.ts";
import type { BucketsDescription, DisentangledDescription } from "./description.ts";

/** Default distance from which all tokens in one direction share the last bucket. */
const LONGEST = 128;

/** The queries and keys whose pairs get a bucket. */
interface BucketOptions extends Pick<BucketsDescription, "rows" | "count" | "longest"> {
  readonly queries: number;
  /** The number of keys; the last key is the last query. */
  readonly keys: number;
  /** Whether half of the buckets are for keys after the query. Otherwise, such keys are in bucket 0. */
  readonly bothWays: boolean;
}

/**
 * Returns the bucket of each pair of tokens, int32 [queries, keys]: T5's buckets of distances. In each direction, the
 * first half of the buckets hold one distance each; the ranges of the others grow logarithmically.
 *
 * Source: C. Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer", 2020.
 */
function bucketsOf({
  queries,
  keys,
  bothWays,
  rows,
  count: all = rows,
  longest = LONGEST,
}: BucketOptions): Tensor<"int32"> {
  const count = bothWays ? Math.floor(all / 2) : all;
  const exact = Math.floor(count / 2);
  const bucketOf = (distance: number): number => {
    if (distance < exact) return distance;
    // float32, as PyTorch computes it: a distance on a boundary otherwise falls into another bucket
    const share = Math.fround(Math.fround(Math.log(Math.fround(distance / exact))) / Math.log(longest / exact));
    return Math.min(count - 1, exact + Math.trunc(Math.fround(share * (count - exact))));
  };
  const first = keys - queries;
  return pairs(queries, keys, (row, key) => {
    const distance = first + row - key;
    if (!bothWays) return bucketOf(Math.max(0, distance));
    return bucketOf(Math.abs(distance)) + (distance < 0 ? count : 0);
  });
}

/**
 * @internal Returns the learned scores of distances for the last `queries` of `keys` tokens: [1, heads, queries, keys].
 */
export function bucketScores(table: Embedding, options: BucketOptions): Tensor {
  return unsqueeze(permute(table.forward(bucketsOf(options)), [2, 0, 1]), 0);
}

/** @internal Embeddings of distances, and the embedding of each pair of tokens. */
export interface Distances {
  /** [1, 2 · span, width] */
  readonly embeddings: Tensor;
  /** [tokens, tokens]: for each query, the index of the embedding of each key. */
  readonly ofKeys: Tensor<"int32">;
  /** [tokens, tokens]: for each key, the index of the embedding of each query. */
  readonly ofQueries: Tensor<"int32">;
}

/** Returns the indices of {@link Distances} for texts of a length. */
export function distanceIndices(
  tokens: number,
  { span, buckets: bins }: Pick<DisentangledDescription, "span" | "buckets">,
): Pick<Distances, "ofKeys" | "ofQueries"> {
  const distanceOf = (query: number, key: number) => {
    const distance = query - key;
    return bins ? logarithmic(distance, bins) : distance;
  };
  const within = (index: number) => Math.min(2 * span - 1, Math.max(0, index));
  return {
    ofKeys: pairs(tokens, tokens, (query, key) => within(span + distanceOf(query, key))),
    ofQueries: pairs(tokens, tokens, (key, query) => within(span - distanceOf(key, query))),
  };
}

/**
 * Returns the bucket of a distance: itself up to `count` / 2 tokens, else with m = `count` / 2
 *
 *     ± (⌈ln(|distance| / m) / ln((longest − 1) / m) · (m − 1)⌉ + m)
 *
 * Source: `make_log_bucket_position` in DeBERTa's code. It computes in float32, as this function does.
 */
function logarithmic(distance: number, { count, longest }: { readonly count: number; readonly longest: number }) {
  const middle = Math.floor(count / 2);
  const size = Math.abs(distance);
  if (size <= middle) return distance;
  const log = (value: number) => Math.fround(Math.log(Math.fround(value)));
  const share = Math.fround(log(size / middle) / log((longest - 1) / middle));
  return Math.sign(distance) * (Math.ceil(Math.fround(share * (middle - 1))) + middle);
}

function pairs(rows: number, columns: number, value: (row: number, column: number) => number): Tensor<"int32"> {
  const values = new Int32Array(rows * columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) values[row * columns + column] = value(row, column);
  return tensor(values, { shape: [rows, columns] });
}

interface DistanceOptions {
  readonly distances: Distances;
  /** The factor of all products. */
  readonly scale: number;
  /** The projected embeddings that queries are multiplied by: [1, heads, 2 · span, headWidth]. */
  readonly ofKeys: Tensor | undefined;
  /** The projected embeddings that keys are multiplied by. */
  readonly ofQueries: Tensor | undefined;
}

/**
 * Computes DeBERTa's scores, [batch, heads, tokens, tokens]; undefined if there are none:
 *
 *     scale · (q[i] · K[δ(i, j)] + k[j] · Q[δ(j, i)])
 *
 * where δ is the index of the distance, and K and Q are the projected embeddings.
 *
 * Source: P. He et al., "DeBERTa: decoding-enhanced BERT with disentangled attention", 2021, equation 4.
 */
export function distanceScores(
  queries: Tensor,
  keys: Tensor,
  { distances, scale, ofKeys, ofQueries }: DistanceOptions,
): Tensor | undefined {
  const chosen = (x: Tensor, embeddings: Tensor, indices: Tensor<"int32">) => {
    const products = matmul(x, transpose(embeddings, -2, -1));
    return takeAlongDim(products, expand(indices, [...products.shape.slice(0, 3), indices.shape[1]]), { dim: -1 });
  };
  const parts = [
    ofKeys && chosen(queries, ofKeys, distances.ofKeys),
    ofQueries && transpose(chosen(keys, ofQueries, distances.ofQueries), -2, -1),
  ].filter((part) => part !== undefined);
  if (parts.length === 0) return undefined;
  return mul(
    parts.reduce((sum, part) => add(sum, part)),
    scale,
  );
}
