/** Embeddings of timesteps. */
import { aNumber, flag, listOf, someNumber } from "../core/kinds.ts";
import { count, finite } from "../core/options.ts";
import { type Kind, named, operand, parameters } from "../core/parameters.ts";
import { type LayerOptions, layerOptions } from "../nn/layers/initialization.ts";
import { Linear } from "../nn/layers/linear.ts";
import { Module } from "../nn/layers/module.ts";
import { toDType } from "../ops/copy/cast.ts";
import * as ops from "../ops/index.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";

/** Options of {@link timestepEmbedding}. */
export interface TimestepEmbeddingOptions {
  /** Whether cosines come before sines, as in Stable Diffusion. Default false. */
  flipSinToCos?: boolean | undefined;
  /** The shift s in the frequencies 10000^(−i / (width / 2 − s)). Default 1; Stable Diffusion uses 0. */
  freqShift?: number | undefined;
}

const numbers = listOf(someNumber, "a list of numbers");

/** Timesteps: a vector, a list, or one number. */
export const timestepsKind: Kind<Tensor> = {
  expected: "timesteps: a vector, a list of numbers or a number",
  parse(value, operation, name) {
    if (Tensor.isTensor(value)) {
      value.checkAlive(operation);
      return value.rank === 1 ? value : undefined;
    }
    const list = typeof value === "number" ? [value] : numbers.parse(value, operation, name);
    return list && list.length > 0 ? ops.tensor(list, { dtype: "float32" }) : undefined;
  },
};

const readEmbedding = parameters("timestepEmbedding", {
  timesteps: operand(timestepsKind),
  width: operand(aNumber({ ...count, holds: (value) => count.holds(value) && value <= 2 ** 20 })),
  flipSinToCos: named(flag, false),
  freqShift: named(aNumber(finite), 1),
});

/**
 * Embeds timesteps as sines and cosines of frequencies from 1 to about 1/10000, as `get_timestep_embedding` of
 * `diffusers` does.
 *
 * @param timesteps a vector, a list of numbers, or a number
 * @param width the size of an embedding; the last element of an odd one is 0
 * @returns float32 [timesteps, width]
 *
 * @example
 * diffusion.timestepEmbedding([0, 500, 999], 32).shape; // [3, 32]
 *
 * @throws {ArgumentError} for anything but timesteps, or a width below 1.
 */
export function timestepEmbedding(
  timesteps: Tensor | readonly number[] | number,
  width: number,
  options?: TimestepEmbeddingOptions,
): Tensor<"float32">;
export function timestepEmbedding(...values: unknown[]): Tensor {
  const { timesteps, width, flipSinToCos, freqShift } = readEmbedding(values);
  return tidy(() => {
    const half = Math.floor(width / 2);
    const rates = Array.from({ length: half }, (_, at) => Math.exp((-Math.log(10_000) * at) / (half - freqShift)));
    const angles = ops.mul(
      ops.unsqueeze(toDType(timesteps, "float32"), 1),
      ops.tensor(rates, { shape: [1, half], dtype: "float32" }),
    );
    const parts = [ops.sin(angles), ops.cos(angles)];
    if (flipSinToCos) parts.reverse();
    const joined = ops.cat(parts, { dim: 1 });
    return width % 2 === 0 ? joined : ops.pad(joined, [0, 1]);
  });
}

/** Two layers with SiLU between them. */
export class EmbeddingLayers extends Module<[x: Tensor], Tensor> {
  readonly linear1: Linear;
  readonly linear2: Linear;

  constructor(inputs: number, width: number, options: LayerOptions) {
    super();
    this.linear1 = new Linear(inputs, width, layerOptions(options));
    this.linear2 = new Linear(width, width, layerOptions(options));
  }

  override forward(x: Tensor): Tensor {
    return this.linear2.forward(ops.silu(this.linear1.forward(x)));
  }
}
