/** Losses that train encoders on pairs and triples of texts: the formulas of sentence-transformers. */
import { ShapeError } from "../../core/errors.ts";
import { aNumber, listOf } from "../../core/kinds.ts";
import { positive } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { arange } from "../../ops/creation/arange.ts";
import { zeros } from "../../ops/creation/full.ts";
import { cosineSimilarity } from "../../ops/distance/cosine_similarity.ts";
import { normalize } from "../../ops/distance/normalize.ts";
import { mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { lt } from "../../ops/elementwise/comparison.ts";
import { where } from "../../ops/elementwise/where.ts";
import { cat } from "../../ops/join/cat.ts";
import { crossEntropy } from "../../ops/loss/cross_entropy.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { logsumexp } from "../../ops/reduction/logsumexp.ts";
import { transpose } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";

/** Options of {@link multipleNegativesRankingLoss} and {@link cosentLoss}. */
export interface EmbeddingLossOptions {
  /** The factor of cosines, 1 / temperature. Default 20. */
  readonly scale?: number | undefined;
}

/** Options of {@link multipleNegativesRankingLoss}. */
export interface RankingLossOptions extends EmbeddingLossOptions {
  /** Embeddings of hard negatives: further texts that match no anchor, each [count, width]. Default: none. */
  readonly negatives?: readonly Tensor[] | undefined;
}

const scale = named(aNumber(positive), 20);
const readRanking = parameters("multipleNegativesRankingLoss", {
  anchors: operand(aTensor),
  positives: operand(aTensor),
  negatives: named(listOf(aTensor, "a list of tensors"), []),
  scale,
});
const readCosent = parameters("cosentLoss", {
  left: operand(aTensor),
  right: operand(aTensor),
  scores: operand(aTensor),
  scale,
});

/**
 * Computes the contrastive loss with in-batch negatives (InfoNCE). Each anchor must have its largest cosine with its
 * positive, among the positives of all anchors and the negatives:
 *
 *     −1/n Σᵢ log( exp(scale · cos(aᵢ, pᵢ)) / Σⱼ exp(scale · cos(aᵢ, cⱼ)) ),  c = positives and negatives
 *
 * Source: `MultipleNegativesRankingLoss` in sentence-transformers; Henderson et al., "Efficient Natural Language
 * Response Suggestion for Smart Reply", 2017.
 *
 * @param anchors [n, width], floats
 * @param positives [n, width] of the same dtype; row i belongs to row i of the anchors
 * @returns a scalar tensor
 *
 * @example
 * const vectors = tensor([[1, 0], [0, 1]]);
 * nn.multipleNegativesRankingLoss(vectors, vectors); // log(1 + e⁻²⁰), nearly 0
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} for dtypes other than floats.
 */
export function multipleNegativesRankingLoss(anchors: Tensor, positives: Tensor, options?: RankingLossOptions): Tensor;
export function multipleNegativesRankingLoss(...values: unknown[]): Tensor {
  const { anchors, positives, negatives, scale } = readRanking(values);
  const operation = "multipleNegativesRankingLoss";
  checkPairs(operation, anchors, positives);
  for (const each of negatives)
    if (each.rank !== 2 || each.shape[1] !== anchors.shape[1])
      throw new ShapeError(
        operation,
        "wrongShape",
        `expected negatives [count, ${anchors.shape[1]}], got ${each.describe()}`,
      );
  return tidy(() => {
    const candidates = negatives.length === 0 ? positives : cat([positives, ...negatives], { dim: 0 });
    const [a, c] = [normalize(anchors, { dim: 1 }), normalize(candidates, { dim: 1 })];
    const scores = mul(matmul(a, transpose(c, 0, 1)), scale);
    return crossEntropy(scores, arange(anchors.shape[0], { dtype: "int32" }));
  });
}

/**
 * Computes CoSENT: pairs with a larger score must have a larger cosine.
 *
 *     log( 1 + Σ exp(scale · (cosᵢ − cosⱼ)) ),  over all i, j with scoreᵢ < scoreⱼ
 *
 * Source: `CoSENTLoss` in sentence-transformers; J. Su, "CoSENT", 2022.
 *
 * @param left [n, width], floats
 * @param right [n, width] of the same dtype
 * @param scores [n], how similar the texts of a pair are; only their order matters
 * @returns a scalar tensor
 *
 * @example
 * const [a, b] = [tensor([[1, 0], [1, 0]]), tensor([[1, 0], [0, 1]])]; // cosines 1 and 0
 * nn.cosentLoss(a, b, tensor([1, 0])); // log(1 + e⁻²⁰), nearly 0: the order is right
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} for dtypes other than floats.
 */
export function cosentLoss(left: Tensor, right: Tensor, scores: Tensor, options?: EmbeddingLossOptions): Tensor;
export function cosentLoss(...values: unknown[]): Tensor {
  const { left, right, scores, scale } = readCosent(values);
  checkPairs("cosentLoss", left, right);
  if (scores.rank !== 1 || scores.shape[0] !== left.shape[0])
    throw new ShapeError(
      "cosentLoss",
      "wrongShape",
      `expected scores to have the shape [${left.shape[0]}], got ${scores.describe()}`,
    );
  return tidy(() => {
    const cosines = mul(cosineSimilarity(left, right, { dim: 1 }), scale);
    const differences = sub(unsqueeze(cosines, 1), unsqueeze(cosines, 0));
    const isWrongOrder = lt(unsqueeze(scores, 1), unsqueeze(scores, 0));
    const powers = reshape(where(isWrongOrder, differences, -Infinity), [-1]);
    return logsumexp(cat([zeros([1], { dtype: cosines.dtype }), powers], { dim: 0 }), { dim: 0 });
  });
}

function checkPairs(operation: string, left: Tensor, right: Tensor): void {
  if (left.rank === 2 && right.rank === 2 && left.shape.every((size, axis) => size === right.shape[axis])) return;
  throw new ShapeError(
    operation,
    "wrongShape",
    `expected two tensors of the same shape [n, width], got ${left.describe()} and ${right.describe()}`,
  );
}
