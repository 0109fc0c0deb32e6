/** The transformer of a {@link Sam} model, in which a prompt's tokens and an image's places attend to each other. */
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import { DecoderFeedForward } from "../../decoder/feed_forward.ts";
import { ProjectedAttention } from "../projected_attention.ts";
import type { PromptedDescription } from "./description.ts";

/** The states of tokens [1, tokens, width] and places [1, places, width]. */
export interface TwoWayStates {
  readonly tokens: Tensor;
  readonly places: Tensor;
}

const sum = (a: Tensor, b: Tensor): Tensor => add(a, b);

/**
 * A block of four steps: self-attention of tokens, attention of tokens to places, a feed-forward of tokens, and
 * attention of places to tokens. A norm follows each step. Queries and keys include the token embeddings and the
 * positions; values do not.
 *
 * Source: A. Kirillov et al., "Segment Anything", 2023, appendix A.
 */
export class TwoWayBlock extends Module<[states: TwoWayStates, embeddings: TwoWayStates], TwoWayStates> {
  readonly attention: ProjectedAttention;
  readonly attentionNorm: LayerNorm;
  readonly toPlaces: ProjectedAttention;
  readonly toPlacesNorm: LayerNorm;
  readonly feedForward: DecoderFeedForward;
  readonly feedForwardNorm: LayerNorm;
  readonly toTokens: ProjectedAttention;
  readonly toTokensNorm: LayerNorm;
  readonly #isFirst: boolean;

  /** @param isFirst whether tokens start as their embeddings; self-attention then has no residual connection */
  constructor({ width, decoder }: PromptedDescription, isFirst: boolean, options: LayerOptions) {
    super();
    const { heads, eps, feedForward, reductions } = decoder;
    const shared = layerOptions(options);
    const norm = () => new LayerNorm(width, { ...shared, eps });
    const across = () => new ProjectedAttention(width, heads, shared, Math.floor(width / reductions[0]));
    this.#isFirst = isFirst;
    this.attention = new ProjectedAttention(width, heads, shared);
    this.attentionNorm = norm();
    this.toPlaces = across();
    this.toPlacesNorm = norm();
    this.feedForward = new DecoderFeedForward({ ...shared, width, feedForward });
    this.feedForwardNorm = norm();
    this.toTokens = across();
    this.toTokensNorm = norm();
  }

  override forward({ tokens, places }: TwoWayStates, embeddings: TwoWayStates): TwoWayStates {
    const query = this.#isFirst ? tokens : sum(tokens, embeddings.tokens);
    const attended = this.attention.forward(query, query, tokens);
    let x: Tensor = this.attentionNorm.forward(this.#isFirst ? attended : sum(tokens, attended));
    const keys = sum(places, embeddings.places);
    x = this.toPlacesNorm.forward(sum(x, this.toPlaces.forward(sum(x, embeddings.tokens), keys, places)));
    x = this.feedForwardNorm.forward(sum(x, this.feedForward.forward(x)));
    const found = this.toTokens.forward(keys, sum(x, embeddings.tokens), x);
    return { tokens: x, places: this.toTokensNorm.forward(sum(places, found)) };
  }
}

/**
 * Runs the blocks, then a last attention of tokens to places.
 *
 * | parameter | shape |
 * |---|---|
 * | `blocks.0. …` | see {@link TwoWayBlock} |
 * | `last.query.weight` | [width / reduction, width] |
 * | `lastNorm.weight` | [width] |
 */
export class TwoWayTransformer extends Module<[embeddings: TwoWayStates, places: Tensor], TwoWayStates> {
  readonly blocks: readonly TwoWayBlock[];
  readonly last: ProjectedAttention;
  readonly lastNorm: LayerNorm;

  constructor(description: PromptedDescription, options: LayerOptions) {
    super();
    const { width, decoder } = description;
    const shared = layerOptions(options);
    this.blocks = Array.from({ length: decoder.layers }, (_, at) => new TwoWayBlock(description, at === 0, shared));
    this.last = new ProjectedAttention(width, decoder.heads, shared, Math.floor(width / decoder.reductions[1]));
    this.lastNorm = new LayerNorm(width, shared);
  }

  /** @param embeddings the token embeddings and the positions of places @param places the states of places */
  override forward(embeddings: TwoWayStates, places: Tensor): TwoWayStates {
    let states: TwoWayStates = { tokens: embeddings.tokens, places };
    for (const block of this.blocks) states = block.forward(states, embeddings);
    return tidy(() => {
      const query = sum(states.tokens, embeddings.tokens);
      const found = this.last.forward(query, sum(states.places, embeddings.places), states.places);
      return { tokens: this.lastNorm.forward(sum(states.tokens, found)), places: states.places };
    });
  }
}
