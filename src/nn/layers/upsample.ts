import { choice, flag } from "../../core/kinds.ts";
import { type Given, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import { type InterpolateOptions, interpolate } from "../../ops/picture/interpolate.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";

/** Options of {@link Upsample}, in PyTorch's order: those of `interpolate`. */
export type UpsampleOptions = Omit<InterpolateOptions, "antialias">;

/**
 * A signal, picture or volume in another size: `interpolate`.
 *
 * @example
 * new Upsample({ scaleFactor: 2, mode: "bilinear" }).forward(randn([1, 3, 8, 8])); // [1, 3, 16, 16]
 *
 * @throws {ArgumentError} for another mode; in `forward` as `interpolate` does.
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

/** A picture in another size, by the nearest element: {@link Upsample}. */
export class UpsamplingNearest2d extends Upsample {
  constructor(...options: Given<UpsamplingOptions, ["size", "scaleFactor"]>);
  constructor(...values: unknown[]) {
    super(nearestParameters(values));
  }
}
const nearestParameters = upsamplingParameters("UpsamplingNearest2d");

/** A picture in another size, linearly between elements, whose corners stay where they are: {@link Upsample}. */
export class UpsamplingBilinear2d extends Upsample {
  constructor(...options: Given<UpsamplingOptions, ["size", "scaleFactor"]>);
  constructor(...values: unknown[]) {
    super({ ...bilinearParameters(values), mode: "bilinear", alignCorners: true });
  }
}
const bilinearParameters = upsamplingParameters("UpsamplingBilinear2d");
