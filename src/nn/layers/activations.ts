/** Activations as modules, with PyTorch's names: each applies the operation of its name. */
import { ShapeError } from "../../core/errors.ts";
import { aNumber, axis, choice, someNumber } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { type Given, optional, parameters, required, unlisted } from "../../core/parameters.ts";
import { celu } from "../../ops/activation/celu.ts";
import { type EluArguments, elu } from "../../ops/activation/elu.ts";
import { type GeluOptions, gelu } from "../../ops/activation/gelu.ts";
import { hardsigmoid } from "../../ops/activation/hardsigmoid.ts";
import { hardswish } from "../../ops/activation/hardswish.ts";
import { hardtanh } from "../../ops/activation/hardtanh.ts";
import { leakyRelu } from "../../ops/activation/leaky_relu.ts";
import { logSigmoid } from "../../ops/activation/log_sigmoid.ts";
import { mish } from "../../ops/activation/mish.ts";
import { prelu } from "../../ops/activation/prelu.ts";
import { relu } from "../../ops/activation/relu.ts";
import { relu6 } from "../../ops/activation/relu6.ts";
import { rrelu } from "../../ops/activation/rrelu.ts";
import { selu } from "../../ops/activation/selu.ts";
import { sigmoid } from "../../ops/activation/sigmoid.ts";
import { silu } from "../../ops/activation/silu.ts";
import { softplus } from "../../ops/activation/softplus.ts";
import { softsign } from "../../ops/activation/softsign.ts";
import { tanhshrink } from "../../ops/activation/tanhshrink.ts";
import { glu, hardshrink, softmin, softshrink, threshold } from "../../ops/activation/thresholds.ts";
import { full } from "../../ops/creation/full.ts";
import { tanh } from "../../ops/elementwise/hyperbolic.ts";
import { logSoftmax, softmax } from "../../ops/softmax/softmax.ts";
import { expectTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, parameter } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";
import { moduleOf, propertiesOf, taking } from "./module_of.ts";

export type { EluOptions as CELUOptions, EluOptions as ELUOptions } from "../../ops/activation/elu.ts";
export type { GeluOptions as GELUOptions } from "../../ops/activation/gelu.ts";
export type { HardtanhOptions } from "../../ops/activation/hardtanh.ts";
export type { LeakyReluOptions as LeakyReLUOptions } from "../../ops/activation/leaky_relu.ts";
export type { SoftplusOptions } from "../../ops/activation/softplus.ts";

/** max(x, 0) for each element. See `relu`. */
export class ReLU extends propertiesOf("ReLU", { relu }) {}

/** min(max(x, 0), 6) for each element. See `relu6`. */
export class ReLU6 extends propertiesOf("ReLU6", { relu6 }) {}

/** x σ(x) for each element. See `silu`. */
export class SiLU extends propertiesOf("SiLU", { silu }) {}

/** 1 / (1 + exp(−x)) for each element. See `sigmoid`. */
export class Sigmoid extends propertiesOf("Sigmoid", { sigmoid }) {}

/** log σ(x) for each element. See `logSigmoid`. */
export class LogSigmoid extends propertiesOf("LogSigmoid", { logSigmoid }) {}

/** min(max(x + 3, 0), 6) / 6 for each element. See `hardsigmoid`. */
export class Hardsigmoid extends propertiesOf("Hardsigmoid", { hardsigmoid }) {}

/** x · min(max(x + 3, 0), 6) / 6 for each element. See `hardswish`. */
export class Hardswish extends propertiesOf("Hardswish", { hardswish }) {}

/** x tanh(log(1 + exp(x))) for each element. See `mish`. */
export class Mish extends propertiesOf("Mish", { mish }) {}

/** The scaled exponential linear unit: `selu`. */
export class SELU extends propertiesOf("SELU", { selu }) {}

/** x / (1 + |x|) for each element. See `softsign`. */
export class Softsign extends propertiesOf("Softsign", { softsign }) {}

/** x − tanh(x) for each element. See `tanhshrink`. */
export class Tanhshrink extends propertiesOf("Tanhshrink", { tanhshrink }) {}

/** The hyperbolic tangent of each element. See `tanh`. */
export class Tanh extends propertiesOf("Tanh", { tanh }) {}

/** max(x, 0) + negativeSlope · min(x, 0) for each element. See `leakyRelu`. */
export class LeakyReLU extends propertiesOf("LeakyReLU", { leakyRelu }) {}

/** max(x, 0) + α min(exp(x) − 1, 0) for each element. See `elu`. */
export class ELU extends propertiesOf("ELU", { elu }) {}

const exceptZero = aNumber({ holds: (value) => value !== 0, expected: "a number other than 0" });

/** max(x, 0) + α min(exp(x / α) − 1, 0) for each element. See `celu`. */
export class CELU extends propertiesOf("CELU", { celu }, taking<EluArguments>({ alpha: optional(exceptZero, 1) })) {}

const approximation = taking<Given<GeluOptions, ["approximate"]>>({
  approximate: optional(choice("none", "tanh"), "none"),
});

/** x Φ(x) for each element, with Φ the normal distribution's, or its approximation by tanh. See `gelu`. */
export class GELU extends propertiesOf("GELU", { gelu }, approximation) {}

/** min(max(x, minVal), maxVal) for each element. See `hardtanh`. */
export class Hardtanh extends propertiesOf("Hardtanh", { hardtanh }) {}

/** log(1 + exp(β x)) / β for each element, and x where β x is above the threshold. See `softplus`. */
export class Softplus extends propertiesOf("Softplus", { softplus }) {}

/** Options of {@link Softmax}. */
export interface SoftmaxOptions {
  /** The axis, a negative one counted from the end. Default −1. */
  dim?: number | undefined;
}

/** Options of {@link LogSoftmax}. */
export type LogSoftmaxOptions = SoftmaxOptions;

const anAxis = taking<Given<SoftmaxOptions, ["dim"]>, { readonly dim: number }>({ dim: optional(axis, -1) });

/** exp(x) / Σ exp(x) along an axis. See `softmax`. */
export class Softmax extends propertiesOf("Softmax", { softmax }, anAxis) {}

/** x − log Σ exp(x) along an axis. See `logSoftmax`. */
export class LogSoftmax extends propertiesOf("LogSoftmax", { logSoftmax }, anAxis) {}

/** exp(−x) / Σ exp(−x) along an axis, by default the last. See `softmin`. */
export class Softmin extends moduleOf("Softmin", { softmin }, anAxis) {}

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

/** The first half of an axis times the sigmoid of the second. See `glu`. */
export class GLU extends moduleOf("GLU", { glu }) {}

/** x where |x| is above λ, and 0 elsewhere. See `hardshrink`. */
export class Hardshrink extends moduleOf("Hardshrink", { hardshrink }) {}

/** x nearer to 0 by λ. See `softshrink`. */
export class Softshrink extends moduleOf("Softshrink", { softshrink }) {}

/** Options of {@link Threshold}. */
export interface ThresholdOptions {
  /** Above where x stays. */
  threshold: number;
  /** What takes the place of the others. */
  value: number;
}

const levels = taking<[threshold: number, value: number] | [options: ThresholdOptions]>({
  threshold: required(someNumber),
  value: required(someNumber),
});

/** x where it is above a threshold, and a value elsewhere. See `threshold`. */
export class Threshold extends moduleOf("Threshold", { threshold }, levels) {}

/** Options of {@link RReLU}. */
export interface SlopeOptions {
  /** The least slope. Default 1/8. */
  lower?: number | undefined;
  /** The largest slope. Default 1/3. */
  upper?: number | undefined;
}

const slopes = taking<Given<SlopeOptions, ["lower", "upper"]>>({
  lower: optional(aNumber(finite), 1 / 8),
  upper: optional(aNumber(finite), 1 / 3),
});

/** x where it is above 0, and x times a slope elsewhere, drawn for each element in training. See `rrelu`. */
export class RReLU extends moduleOf("RReLU", { rrelu }, slopes) {
  override forward(x: Tensor): Tensor {
    return rrelu(x, { ...this.options, training: this.training });
  }
}

/** Options of {@link PReLU}. */
export interface PReLUOptions extends LayerOptions {
  /** 1, or a slope for each element of axis 1. Default 1. */
  numParameters?: number | undefined;
  /** What slopes start with. Default 0.25. */
  init?: number | undefined;
}

/**
 * max(x, 0) + weight · min(x, 0) for each element, with slopes that are trained.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [numParameters] |
 *
 * @example
 * new PReLU(3).forward(randn([2, 3, 4])); // a slope for each of 3 channels
 */
export class PReLU extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(...options: Given<PReLUOptions, ["numParameters", "init"]>);
  constructor(...values: unknown[]) {
    super();
    const { numParameters, init, ...options } = preluParameters(values);
    this.weight = parameter([numParameters], (shape, { dtype = "float32" }) => full(shape, init, { dtype }), options);
  }

  override forward(x: Tensor): Tensor {
    return prelu(x, this.weight);
  }

  /** @internal */
  override details(): string {
    return `${this.weight.size}`;
  }
}
const preluParameters = parameters("PReLU", {
  numParameters: optional(size, 1),
  init: optional(someNumber, 0.25),
  ...layerParameters,
});
