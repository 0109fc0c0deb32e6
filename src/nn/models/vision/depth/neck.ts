/** The convolutions of a {@link DepthEstimator} between its encoder and its head. */
import { relu } from "../../../../ops/activation/relu.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { Conv2d, ConvTranspose2d } from "../../../layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import { type Grid, gridOfPlanes } from "../planes.ts";
import type { DepthLevel } from "./description.ts";

/**
 * Resizes the states of a level by its factor, and projects them.
 *
 * | parameter | shape |
 * |---|---|
 * | `projection.weight` | [width, encoder's width, 1, 1] |
 * | `resize.weight` | [width, width, factor, factor], or [width, width, 3, 3] for factors below 1; null for 1 |
 * | `convolution.weight` | [fusionWidth, width, 3, 3] |
 */
export class Reassemble extends Module<[planes: Tensor], Tensor> {
  readonly projection: Conv2d;
  readonly resize: Conv2d | ConvTranspose2d | null;
  readonly convolution: Conv2d;

  constructor(inputs: number, { width, factor }: DepthLevel, fusionWidth: number, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    this.projection = new Conv2d(inputs, width, 1, shared);
    const shrinking = () => new Conv2d(width, width, 3, { ...shared, stride: Math.trunc(1 / factor), padding: 1 });
    const growing = () => new ConvTranspose2d(width, width, factor, { ...shared, stride: factor });
    this.resize = factor === 1 ? null : factor > 1 ? growing() : shrinking();
    this.convolution = new Conv2d(width, fusionWidth, 3, { ...shared, padding: 1, bias: false });
  }

  /** @param planes [batch, encoder's width, rows, columns] @returns [batch, fusionWidth, …], resized by the factor */
  override forward(planes: Tensor): Tensor {
    const projected = this.projection.forward(planes);
    return this.convolution.forward(this.resize ? this.resize.forward(projected) : projected);
  }
}

/** Computes x + convolution2(relu(convolution1(relu(x)))), with filters [width, width, 3, 3]. */
export class ResidualConvolutions extends Module<[x: Tensor], Tensor> {
  readonly convolution1: Conv2d;
  readonly convolution2: Conv2d;

  constructor(width: number, options: LayerOptions) {
    super();
    const shared = { ...layerOptions(options), padding: 1 };
    this.convolution1 = new Conv2d(width, width, 3, shared);
    this.convolution2 = new Conv2d(width, width, 3, shared);
  }

  /** @param x [batch, width, rows, columns] @returns the same shape */
  override forward(x: Tensor): Tensor {
    return add(x, this.convolution2.forward(relu(this.convolution1.forward(relu(x)))));
  }
}

/**
 * Adds a level to the sum of coarser ones, and resizes the sum to the next level's size.
 *
 * | parameter | shape |
 * |---|---|
 * | `level. …` | see {@link ResidualConvolutions}; null for the coarsest level |
 * | `sum. …` | see {@link ResidualConvolutions} |
 * | `projection.weight` | [width, width, 1, 1] |
 */
export class Fusion extends Module<[x: Tensor, level: Tensor | undefined, size: Grid], Tensor> {
  readonly level: ResidualConvolutions | null;
  readonly sum: ResidualConvolutions;
  readonly projection: Conv2d;

  constructor(width: number, isFirst: boolean, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    this.level = isFirst ? null : new ResidualConvolutions(width, shared);
    this.sum = new ResidualConvolutions(width, shared);
    this.projection = new Conv2d(width, width, 1, shared);
  }

  /** @param x [batch, width, …], the sum of coarser levels @returns [batch, width, ...size] */
  override forward(x: Tensor, level: Tensor | undefined, size: Grid): Tensor {
    const total = level ? add(x, this.level!.forward(this.fitted(level, gridOfPlanes(x)))) : x;
    const resized = interpolate(this.sum.forward(total), { size: [...size], mode: "bilinear", alignCorners: true });
    return this.projection.forward(resized);
  }

  /** A level with an odd side may have one row or column more than the resized sum. */
  private fitted(level: Tensor, size: Grid): Tensor {
    const [rows, columns] = gridOfPlanes(level);
    if (rows === size[0] && columns === size[1]) return level;
    return interpolate(level, { size: [...size], mode: "bilinear", alignCorners: false });
  }
}
