/** The steps of sentence-transformers after the hidden states: pooling, linear layers, normalization. */

import { tupleOf } from "../../../core/tuples.ts";
import { gelu } from "../../../ops/activation/gelu.ts";
import { relu } from "../../../ops/activation/relu.ts";
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { silu } from "../../../ops/activation/silu.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { normalize } from "../../../ops/distance/normalize.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { tanh } from "../../../ops/elementwise/hyperbolic.ts";
import { where } from "../../../ops/elementwise/where.ts";
import { takeAlongDim } from "../../../ops/indexing/gather.ts";
import { cat } from "../../../ops/join/cat.ts";
import { amax } from "../../../ops/reduction/extrema.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { expand } from "../../../ops/view/expand.ts";
import { select } from "../../../ops/view/slice.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { meanOfTokens, textMask } from "./encoder.ts";

/** How the hidden states of a text's tokens become one vector. */
export const poolings = ["first", "max", "mean", "meanSqrt", "weightedMean", "last"] as const;

/** How the hidden states of a text's tokens become one vector; `poolings` has the formulas. */
export type Pooling = (typeof poolings)[number];

/** The activations of linear layers of sentence-transformers. */
export const sentenceActivations = {
  identity: (x: Tensor) => x,
  tanh: (x: Tensor) => tanh(x),
  gelu: (x: Tensor) => gelu(x),
  relu: (x: Tensor) => relu(x),
  silu: (x: Tensor) => silu(x),
  sigmoid: (x: Tensor) => sigmoid(x),
} as const;

/** A step after pooling. */
export type SentenceStep =
  | {
      readonly kind: "dense";
      readonly inputs: number;
      readonly outputs: number;
      readonly bias: boolean;
      readonly activation: keyof typeof sentenceActivations;
    }
  | { readonly kind: "normalize" };

/** The steps of a model of sentence-transformers, as its `modules.json` lists them. */
export interface SentenceDescription {
  /** The poolings, whose results are concatenated. */
  readonly poolings: readonly Pooling[];
  /** The steps after pooling. */
  readonly steps: readonly SentenceStep[];
  /** Texts that precede the text to embed, by name: `query`, `document` and others. */
  readonly prompts: Readonly<Record<string, string>>;
  /** The name of the prompt to use if a call names none. Default: no prompt. */
  readonly defaultPrompt?: string | undefined;
  /** The maximum number of tokens in a text; longer texts are truncated. Default: the model's context. */
  readonly longest?: number | undefined;
  /** Whether texts are converted to lower case. */
  readonly lowerCase: boolean;
  /** Number of elements that remain of a vector. Default: all. */
  readonly truncateDim?: number | undefined;
}

/**
 * Pools hidden states h₁ … hₙ of a text, [batch, tokens, width], to [batch, width]:
 *
 *     first h₁,  last hₙ,  max maxᵢ hᵢ,  mean Σᵢ hᵢ / n,  meanSqrt Σᵢ hᵢ / √n,  weightedMean Σᵢ i · hᵢ / Σᵢ i
 *
 * Source: `Pooling` in sentence-transformers.
 */
export function pooled(states: Tensor, pooling: Pooling, lengths: readonly number[]): Tensor {
  const [batch, count, width] = tupleOf(states.shape, 3);
  const column = (values: readonly number[]) =>
    toDType(tensor([...values], { shape: [batch, 1], dtype: "float32" }), states.dtype);
  switch (pooling) {
    case "first":
      return select(states, 1, 0);
    case "mean":
      return meanOfTokens(states, lengths);
    case "meanSqrt":
      return mul(meanOfTokens(states, lengths), column(lengths.map(Math.sqrt)));
    case "max":
      return amax(where(unsqueeze(textMask(lengths, count), 2), states, -Infinity), { dim: 1 });
    case "last": {
      const rows = tensor(
        Int32Array.from(lengths, (length) => length - 1),
        { shape: [batch, 1, 1] },
      );
      return select(takeAlongDim(states, expand(rows, [batch, 1, width]), { dim: 1 }), 1, 0);
    }
    case "weightedMean": {
      const weights = lengths.flatMap((length) =>
        Array.from({ length: count }, (_, at) => (at < length ? (2 * (at + 1)) / (length * (length + 1)) : 0)),
      );
      const factors = tensor(weights, { shape: [batch, count, 1], dtype: "float32" });
      return sum(mul(states, toDType(factors, states.dtype)), { dim: 1 });
    }
  }
}

/** Applies the steps of a model of sentence-transformers after its hidden states. */
export class SentenceHead extends Module<[states: Tensor, lengths: readonly number[]], Tensor> {
  readonly layers: readonly Linear[];
  readonly #description: SentenceDescription;

  constructor(description: SentenceDescription, options: LayerOptions = {}) {
    super();
    this.#description = description;
    this.layers = description.steps.flatMap((step) =>
      step.kind === "dense"
        ? [new Linear(step.inputs, step.outputs, { ...layerOptions(options), bias: step.bias })]
        : [],
    );
  }

  /** The description that the steps were built from. */
  get description(): SentenceDescription {
    return this.#description;
  }

  /** @internal Returns the size of the results for hidden states of a size. */
  widthOf(width: number): number {
    return this.layers.at(-1)?.weight.shape[0] ?? width * this.#description.poolings.length;
  }

  /** Whether a step normalizes. */
  get normalizes(): boolean {
    return this.#description.steps.some(({ kind }) => kind === "normalize");
  }

  /** @param states [batch, tokens, width] @param lengths the number of tokens of each row @returns [batch, outputs] */
  override forward(states: Tensor, lengths: readonly number[]): Tensor {
    const { poolings, steps } = this.#description;
    const parts = poolings.map((pooling) => pooled(states, pooling, lengths));
    let x = parts.length === 1 ? parts[0] : cat(parts, { dim: 1 });
    let layer = 0;
    for (const step of steps)
      x =
        step.kind === "normalize"
          ? normalize(x, { dim: 1 })
          : sentenceActivations[step.activation](this.layers[layer++].forward(x));
    return x;
  }
}
