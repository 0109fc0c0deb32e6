/** Activations that shrink, gate, replace or draw as modules, with PyTorch's names. */
import { ShapeError } from "../../core/errors.ts";
import { aNumber, axis, someNumber } from "../../core/kinds.ts";
import { finite, notNegative } from "../../core/options.ts";
import { type Given, optional, parameters, required, unlisted } from "../../core/parameters.ts";
import { rrelu } from "../../ops/activation/rrelu.ts";
import {
  type GluOptions,
  glu,
  hardshrink,
  type ShrinkOptions,
  softmin,
  softshrink,
  threshold,
} from "../../ops/activation/thresholds.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import { expectTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { ModuleWithOptions } from "./with_options.ts";

/** x where |x| is above λ, and 0 elsewhere. See `hardshrink`. */
export class Hardshrink extends ModuleWithOptions<[x: Tensor], ShrinkOptions> {
  constructor(...options: Given<ShrinkOptions, ["lambda"]>);
  constructor(...values: unknown[]) {
    super(hardshrinkParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return hardshrink(x, this.options);
  }
}
const shrinking = { lambda: optional(aNumber(notNegative), 0.5) } as const;
const hardshrinkParameters = parameters("Hardshrink", shrinking);

/** x nearer to 0 by λ. See `softshrink`. */
export class Softshrink extends ModuleWithOptions<[x: Tensor], ShrinkOptions> {
  constructor(...options: Given<ShrinkOptions, ["lambda"]>);
  constructor(...values: unknown[]) {
    super(softshrinkParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return softshrink(x, this.options);
  }
}
const softshrinkParameters = parameters("Softshrink", shrinking);

/** Options of {@link Threshold}. */
export interface ThresholdOptions {
  /** Above where x stays. */
  threshold: number;
  /** What takes the place of the others. */
  value: number;
}

/** x where it is above a threshold, and a value elsewhere. See `threshold`. */
export class Threshold extends ModuleWithOptions<[x: Tensor], ThresholdOptions> {
  constructor(...options: [threshold: number, value: number] | [options: ThresholdOptions]);
  constructor(...values: unknown[]) {
    super(thresholdParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return threshold(x, this.options.threshold, this.options.value);
  }
}
const thresholdParameters = parameters("Threshold", { threshold: required(someNumber), value: required(someNumber) });

/** The first half of an axis times the sigmoid of the second. See `glu`. */
export class GLU extends ModuleWithOptions<[x: Tensor], GluOptions> {
  constructor(...options: Given<GluOptions, ["dim"]>);
  constructor(...values: unknown[]) {
    super(gluParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return glu(x, this.options);
  }
}
const gluParameters = parameters("GLU", { dim: optional(axis, -1) });

/** exp(−x) / Σ exp(−x) along an axis, by default the last. See `softmin`. */
export class Softmin extends ModuleWithOptions<[x: Tensor], { readonly dim: number }> {
  constructor(...options: Given<GluOptions, ["dim"]>);
  constructor(...values: unknown[]) {
    super(softminParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return softmin(x, this.options.dim);
  }
}
const softminParameters = parameters("Softmin", { dim: optional(axis, -1) });

/**
 * The softmax over the channels of each place of [batch, channels, height, width], or without a batch.
 *
 * @throws {ShapeError} in `forward`, for other axes.
 */
export class Softmax2d extends Module<[x: Tensor], Tensor> {
  constructor();
  constructor(...values: unknown[]) {
    super();
    unlisted("Softmax2d", {})(values);
  }

  override forward(x: Tensor): Tensor {
    expectTensor("Softmax2d", "x", x);
    if (x.rank !== 3 && x.rank !== 4)
      throw new ShapeError("Softmax2d", "wrongRank", `expected 4 axes, or 3 without a batch, got ${x.describe()}`);
    return softmax(x, { dim: -3 });
  }
}

/** Options of {@link RReLU}. */
export interface SlopeOptions {
  /** The least slope. Default 1/8. */
  lower?: number | undefined;
  /** The largest slope. Default 1/3. */
  upper?: number | undefined;
}

/** x where it is above 0, and x times a slope elsewhere, drawn for each element in training. See `rrelu`. */
export class RReLU extends ModuleWithOptions<[x: Tensor], SlopeOptions> {
  constructor(...options: Given<SlopeOptions, ["lower", "upper"]>);
  constructor(...values: unknown[]) {
    super(rreluParameters(values));
  }

  override forward(x: Tensor): Tensor {
    return rrelu(x, { ...this.options, training: this.training });
  }
}
const rreluParameters = parameters("RReLU", {
  lower: optional(aNumber(finite), 1 / 8),
  upper: optional(aNumber(finite), 1 / 3),
});
