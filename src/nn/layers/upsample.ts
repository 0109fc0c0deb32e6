import { choice, flag } from "../../core/kinds.ts";
import { type Given, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { type InterpolateOptions, interpolate } from "../../ops/picture/interpolate.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";

/** Options of {@link Upsample}, in PyTorch's order. See `interpolate`. */
export type UpsampleOptions = Omit<InterpolateOptions, "antialias">;

/**
 * Applies `interpolate`: resizes a signal, image or volume.
 *
 * @example
 * new Upsample({ scaleFactor: 2, mode: "bilinear" }).forward(randn([1, 3, 8, 8])); // [1, 3, 16, 16]
 *
 * @throws {ArgumentError} for an unknown mode; in `forward` as `interpolate`.
 */
export class Upsample extends Module<[x: Tensor], Tensor> {
  readonly size: PerAxis | undefined;
  readonly scaleFactor: PerAxis | undefined;
  readonly mode: NonNullable<UpsampleOptions["mode"]>;
  readonly alignCorners: boolean | undefined;
  readonly recomputeScaleFactor: boolean;

  constructor(
    ...options: Given<UpsampleOptions, ["size", "scaleFactor", "mode", "alignCorners", "recomputeScaleFactor"]>
  );
  constructor(...values: unknown[]) {
    super();
    const { size, scaleFactor, mode, alignCorners, recomputeScaleFactor } = upsampleParameters(values);
    this.size = size;
    this.scaleFactor = scaleFactor;
    this.mode = mode;
    this.alignCorners = alignCorners;
    this.recomputeScaleFactor = recomputeScaleFactor;
  }

  /** @param x [batch, channels, …] with one to three axes at the end @returns the resized tensor */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    const { size, scaleFactor, mode, alignCorners, recomputeScaleFactor } = this;
    return interpolate(x, { size, scaleFactor, mode, alignCorners, recomputeScaleFactor });
  }

  /** @internal */
  override details(): string {
    const { size, scaleFactor, mode } = this;
    return `${size === undefined ? `scaleFactor: ${String(scaleFactor)}` : `size: ${String(size)}`}, mode: ${mode}`;
  }
}
const upsampleParameters = parameters("Upsample", {
  size: optional(perAxis),
  scaleFactor: optional(perAxis),
  mode: optional(choice("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"), "nearest"),
  alignCorners: optional(flag),
  recomputeScaleFactor: optional(flag, false),
});

/** Options of {@link UpsamplingNearest2d} and {@link UpsamplingBilinear2d}: a size or a factor. */
export type UpsamplingOptions = Pick<UpsampleOptions, "size" | "scaleFactor">;
const upsamplingParameters = (operation: string) =>
  parameters(operation, { size: optional(perAxis), scaleFactor: optional(perAxis) });

/**
 * Resizes an image by nearest-neighbor interpolation. See {@link Upsample}.
 *
 * @example
 * new UpsamplingNearest2d({ scaleFactor: 2 }).forward(randn([1, 3, 4, 4])); // [1, 3, 8, 8]
 */
export class UpsamplingNearest2d extends Upsample {
  constructor(...options: Given<UpsamplingOptions, ["size", "scaleFactor"]>);
  constructor(...values: unknown[]) {
    super(nearestParameters(values));
  }
}
const nearestParameters = upsamplingParameters("UpsamplingNearest2d");

/**
 * Resizes an image by bilinear interpolation with aligned corners. See {@link Upsample}.
 *
 * @example
 * new UpsamplingBilinear2d({ size: [6, 7] }).forward(randn([1, 3, 4, 4])); // [1, 3, 6, 7]
 */
export class UpsamplingBilinear2d extends Upsample {
  constructor(...options: Given<UpsamplingOptions, ["size", "scaleFactor"]>);
  constructor(...values: unknown[]) {
    super({ ...bilinearParameters(values), mode: "bilinear", alignCorners: true });
  }
}
const bilinearParameters = upsamplingParameters("UpsamplingBilinear2d");
