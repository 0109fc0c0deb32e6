/** Attention of queries to a few places of each level. */
import { tupleOf } from "../../../../core/tuples.ts";
import { add, mul, sub } from "../../../../ops/elementwise/arithmetic.ts";
import { stack } from "../../../../ops/join/cat.ts";
import { gridSample } from "../../../../ops/picture/grid_sample.ts";
import { sum } from "../../../../ops/reduction/sum.ts";
import { softmax } from "../../../../ops/softmax/softmax.ts";
import { permute, transpose } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow, select } from "../../../../ops/view/slice.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import type { Grid } from "../planes.ts";
import type { RtDetrDescription } from "./description.ts";

/** The places of all levels. */
export interface LevelStates {
  /** [batch, places of all levels, width], the finest level first, row by row. */
  readonly states: Tensor;
  /** The size of each level. */
  readonly grids: readonly Grid[];
}

type Sizes = Pick<RtDetrDescription, "width" | "levels" | "points" | "decoder">;

/**
 * Multi-scale deformable attention: each head of a query sums the values at a few places of each level. It computes
 * these places as offsets from the center of the query's box, in units of half the box's size per point.
 *
 * | parameter | shape |
 * |---|---|
 * | `offsets.weight` | [heads · levels · points · 2, width] |
 * | `weights.weight` | [heads · levels · points, width] |
 * | `value.weight`, `output.weight` | [width, width] |
 *
 * Source: X. Zhu et al., "Deformable DETR", 2021, section 4.1.
 */
export class DeformableAttention extends Module<[x: Tensor, boxes: Tensor, memory: LevelStates], Tensor> {
  readonly offsets: Linear | QuantizedLinear;
  readonly weights: Linear | QuantizedLinear;
  readonly value: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  readonly #sizes: { readonly heads: number; readonly levels: number; readonly points: number };

  constructor({ width, levels, points, decoder }: Sizes, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    const count = decoder.heads * levels.length * points;
    this.#sizes = { heads: decoder.heads, levels: levels.length, points };
    this.offsets = new Linear(width, 2 * count, shared);
    this.weights = new Linear(width, count, shared);
    this.value = new Linear(width, width, shared);
    this.output = new Linear(width, width, { ...shared, residual: true });
  }

  /**
   * @param x [batch, queries, width]
   * @param boxes horizontal and vertical center, width and height as fractions of the image, [batch, queries, 4]
   * @returns [batch, queries, width]
   */
  override forward(x: Tensor, boxes: Tensor, { states, grids }: LevelStates): Tensor {
    const { heads, levels, points } = this.#sizes;
    const [batch, queries, width] = tupleOf(x.shape, 3);
    return tidy(() => {
      const places = this.placesOf(x, boxes);
      const values = reshape(this.value.forward(states), [batch, -1, heads, width / heads]);
      let first = 0;
      const sampled = grids.map(([rows, columns], level) => {
        const part = narrow(values, 1, first, rows * columns);
        first += rows * columns;
        const planes = reshape(permute(part, [0, 2, 3, 1]), [batch * heads, width / heads, rows, columns]);
        const grid = reshape(transpose(select(places, 3, level), 1, 2), [batch * heads, queries, points, 2]);
        return gridSample(planes, grid, { mode: "bilinear", paddingMode: "zeros", alignCorners: false });
      });
      const chances = softmax(reshape(this.weights.forward(x), [batch, queries, heads, levels * points]), { dim: -1 });
      const weights = reshape(transpose(chances, 1, 2), [batch * heads, 1, queries, levels * points]);
      const all = reshape(stack(sampled, -2), [batch * heads, width / heads, queries, levels * points]);
      const added = reshape(sum(mul(all, weights), { dim: -1 }), [batch, width, queries]);
      return this.output.forward(transpose(added, 1, 2));
    });
  }

  /** Returns the places from −1 to 1: [batch, queries, heads, levels, points, 2]. */
  private placesOf(x: Tensor, boxes: Tensor): Tensor {
    const { heads, levels, points } = this.#sizes;
    const [batch, queries] = tupleOf(x.shape, 2);
    const offsets = reshape(this.offsets.forward(x), [batch, queries, heads, levels, points, 2]);
    const part = (start: number) => reshape(narrow(boxes, 2, start, 2), [batch, queries, 1, 1, 1, 2]);
    const scaled = mul(mul(offsets, part(2)), 0.5 / points);
    return sub(mul(add(part(0), scaled), 2), 1);
  }
}
