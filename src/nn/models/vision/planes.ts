/** Planes of pixels as tokens, and layers of networks over planes. */
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { flatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, oneParameter, zeroParameter } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";

/** Height and width, in places of a grid. */
export type Grid = readonly [rows: number, columns: number];

/** @internal [batch, channels, rows, columns] → [batch, rows · columns, channels] */
export const tokensOf = (planes: Tensor): Tensor => transpose(flatten(planes, 2), 1, 2);

/** @internal [batch, rows · columns, channels] → [batch, channels, rows, columns] */
export const planesOf = (tokens: Tensor, [rows, columns]: Grid): Tensor =>
  reshape(transpose(tokens, 1, 2), [tokens.shape[0], tokens.shape[2], rows, columns]);

/** @internal Height and width of planes [batch, channels, rows, columns]. */
export const gridOfPlanes = ({ shape }: Tensor): Grid => [shape[2], shape[3]];

/**
 * Batch normalization with fixed statistics, as a factor and an offset of each channel: weight = γ / √(variance + eps)
 * and bias = β − mean · weight. Models are loaded in this form; training does not change the statistics.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight`, `bias` | [channels] |
 */
export class FixedBatchNorm extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;
  readonly bias: Tensor;

  constructor(channels: number, options: LayerOptions) {
    super();
    this.weight = oneParameter([channels], options);
    this.bias = zeroParameter([channels], options);
  }

  /** @param x [batch, channels, height, width] @returns the same shape */
  override forward(x: Tensor): Tensor {
    const perChannel = (values: Tensor) => reshape(values, [-1, 1, 1]);
    return add(mul(x, perChannel(this.weight)), perChannel(this.bias));
  }
}
