/** What recurrent layers of a {@link Decoder} share: states of earlier tokens, padding, and a short convolution. */
import { ArgumentError } from "../../../../core/errors.ts";
import { tupleOf } from "../../../../core/tuples.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { zeros } from "../../../../ops/creation/full.ts";
import { add, mul } from "../../../../ops/elementwise/arithmetic.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow, select } from "../../../../ops/view/slice.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import type { AttentionCache } from "../../../cache/cache.ts";
import { type LayerOptions, zeroParameter } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import type { AttentionInputs } from "../attention.ts";

/** A layer that mixes tokens by a state of fixed size instead of keys and values. */
export type Mixer = Module<[x: Tensor, inputs?: AttentionInputs], Tensor>;

/** A parameter that is not the weight of a linear layer. */
export class Parameter extends Module<[], Tensor> {
  readonly weight: Tensor;

  constructor(size: number, options: LayerOptions) {
    super();
    this.weight = zeroParameter([size], options);
  }

  /** @returns the parameter in float32 */
  override forward(): Tensor {
    return toDType(this.weight, "float32");
  }
}

/**
 * Computes a convolution of each channel with its last tokens: y[t] = Σⱼ weight[j] · x[t − kernel + 1 + j] + bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [channels, kernel] |
 * | `bias` | [channels]; null without a bias |
 */
export class TokenConvolution extends Module<[x: Tensor, cache?: States, name?: string], Tensor> {
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(channels: number, kernel: number, { bias, ...options }: LayerOptions & { readonly bias: boolean }) {
    super();
    this.weight = zeroParameter([channels, kernel], options);
    this.bias = bias ? zeroParameter([channels], options) : null;
  }

  /** @param x [batch, tokens, channels] @param name of the state @returns the same shape */
  override forward(x: Tensor, states?: States, name = "convolution"): Tensor {
    const [batch, count, channels] = tupleOf(x.shape, 3);
    const kernel = this.weight.shape[1];
    const before = states?.read(name) ?? zeros([batch, kernel - 1, channels], { dtype: x.dtype });
    const all = kernel === 1 ? x : cat([toDType(before, x.dtype), x], { dim: 1 });
    states?.write(name, narrow(all, 1, all.shape[1] - kernel + 1, kernel - 1));
    let sum: Tensor | undefined;
    for (let at = 0; at < kernel; at++) {
      const term = mul(narrow(all, 1, at, count), select(this.weight, 1, at));
      sum = sum ? add(sum, term) : term;
    }
    return this.bias ? add(sum!, this.bias) : sum!;
  }
}

/** The states of a layer before and after a call. */
export class States {
  private readonly written: Record<string, Tensor> = {};

  constructor(private readonly cache: AttentionCache | undefined) {}

  /** Returns the state after the cached tokens; undefined before the first token. */
  read(name: string): Tensor | undefined {
    return this.cache?.stateOf(name);
  }

  write(name: string, state: Tensor): void {
    this.written[name] = state;
  }

  /** Stores the states after further tokens. */
  advance(count: number): void {
    this.cache?.setStates(this.written, count);
  }
}

/**
 * Returns x with zeros for padding, as `apply_mask_to_padding_states` of Hugging Face.
 *
 * @throws {ArgumentError} `segments` for rows of several texts, between which a state would have to start again.
 */
export function withoutPadding(x: Tensor, { mask, bounds }: Pick<AttentionInputs, "mask" | "bounds">): Tensor {
  const isSegmented = bounds !== undefined || (mask !== undefined && mask.shape[2] > 1);
  if (isSegmented)
    throw new ArgumentError(
      "Decoder",
      "segments",
      "rows of several texts are not supported by recurrent layers; pass one text in each row",
    );
  if (!mask) return x;
  const [batch, count] = tupleOf(x.shape, 2);
  const isText = reshape(narrow(mask, 3, mask.shape[3] - count, count), [batch, count, 1]);
  return mul(x, toDType(isText, x.dtype));
}
