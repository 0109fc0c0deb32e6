/** Activations as modules, under PyTorch's names. Each applies the operation of the same name. */
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
import type { FloatDType } from "../../tensor/dtype.ts";
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

/**
 * Applies `relu` to each element: max(x, 0).
 *
 * @example
 * new ReLU().forward(tensor([-1, 2])); // [0, 2]
 */
export class ReLU extends propertiesOf("ReLU", { relu }) {}

/**
 * Applies `relu6` to each element: min(max(x, 0), 6).
 *
 * @example
 * new ReLU6().forward(tensor([-1, 8])); // [0, 6]
 */
export class ReLU6 extends propertiesOf("ReLU6", { relu6 }) {}

/**
 * Applies `silu` to each element: x σ(x).
 *
 * @example
 * new SiLU().forward(tensor([0, 1])); // [0, 0.7311]
 */
export class SiLU extends propertiesOf("SiLU", { silu }) {}

/**
 * Applies `sigmoid` to each element: 1 / (1 + exp(−x)).
 *
 * @example
 * new Sigmoid().forward(tensor([0, 1])); // [0.5, 0.7311]
 */
export class Sigmoid extends propertiesOf("Sigmoid", { sigmoid }) {}

/**
 * Applies `logSigmoid` to each element: log σ(x).
 *
 * @example
 * new LogSigmoid().forward(tensor([0, 1])); // [-0.6931, -0.3133]
 */
export class LogSigmoid extends propertiesOf("LogSigmoid", { logSigmoid }) {}

/**
 * Applies `hardsigmoid` to each element: min(max(x + 3, 0), 6) / 6.
 *
 * @example
 * new Hardsigmoid().forward(tensor([-3, 0, 3])); // [0, 0.5, 1]
 */
export class Hardsigmoid extends propertiesOf("Hardsigmoid", { hardsigmoid }) {}

/**
 * Applies `hardswish` to each element: x · min(max(x + 3, 0), 6) / 6.
 *
 * @example
 * new Hardswish().forward(tensor([-3, 0, 3])); // [0, 0, 3]
 */
export class Hardswish extends propertiesOf("Hardswish", { hardswish }) {}

/**
 * Applies `mish` to each element: x tanh(log(1 + exp(x))).
 *
 * @example
 * new Mish().forward(tensor([0, 1])); // [0, 0.8651]
 */
export class Mish extends propertiesOf("Mish", { mish }) {}

/**
 * Applies `selu`, the scaled exponential linear unit, to each element.
 *
 * @example
 * new SELU().forward(tensor([0, 1])); // [0, 1.0507]
 */
export class SELU extends propertiesOf("SELU", { selu }) {}

/**
 * Applies `softsign` to each element: x / (1 + |x|).
 *
 * @example
 * new Softsign().forward(tensor([-1, 3])); // [-0.5, 0.75]
 */
export class Softsign extends propertiesOf("Softsign", { softsign }) {}

/**
 * Applies `tanhshrink` to each element: x − tanh(x).
 *
 * @example
 * new Tanhshrink().forward(tensor([0, 1])); // [0, 0.2384]
 */
export class Tanhshrink extends propertiesOf("Tanhshrink", { tanhshrink }) {}

/**
 * Applies `tanh`, the hyperbolic tangent, to each element.
 *
 * @example
 * new Tanh().forward(tensor([0, 1])); // [0, 0.7616]
 */
export class Tanh extends propertiesOf("Tanh", { tanh }) {}

/**
 * Applies `leakyRelu` to each element: max(x, 0) + negativeSlope · min(x, 0).
 *
 * @example
 * new LeakyReLU(0.1).forward(tensor([-1, 2])); // [-0.1, 2]
 */
export class LeakyReLU extends propertiesOf("LeakyReLU", { leakyRelu }) {}

/**
 * Applies `elu` to each element: max(x, 0) + α min(exp(x) − 1, 0).
 *
 * @example
 * new ELU(0.5).forward(tensor([-1, 2])); // [-0.3161, 2]
 */
export class ELU extends propertiesOf("ELU", { elu }) {}

const exceptZero = aNumber({ holds: (value) => value !== 0, expected: "a number other than 0" });

/**
 * Applies `celu` to each element: max(x, 0) + α min(exp(x / α) − 1, 0).
 *
 * @example
 * new CELU(2).forward(tensor([-1, 2])); // [-0.7869, 2]
 */
export class CELU extends propertiesOf("CELU", { celu }, taking<EluArguments>({ alpha: optional(exceptZero, 1) })) {}

const approximation = taking<Given<GeluOptions, ["approximate"]>>({
  approximate: optional(choice("none", "tanh"), "none"),
});

/**
 * Applies `gelu` to each element: x Φ(x), with the normal distribution function Φ or its tanh approximation.
 *
 * @example
 * new GELU({ approximate: "tanh" }).forward(tensor([-1, 2])); // [-0.1588, 1.9546]
 */
export class GELU extends propertiesOf("GELU", { gelu }, approximation) {}

/**
 * Applies `hardtanh` to each element: min(max(x, minVal), maxVal).
 *
 * @example
 * new Hardtanh(-2, 2).forward(tensor([-3, 1])); // [-2, 1]
 */
export class Hardtanh extends propertiesOf("Hardtanh", { hardtanh }) {}

/**
 * Applies `softplus` to each element: log(1 + exp(β x)) / β, or x where β x is above the threshold.
 *
 * @example
 * new Softplus().forward(tensor([0, 1])); // [0.6931, 1.3133]
 */
export class Softplus extends propertiesOf("Softplus", { softplus }) {}

/** Options of {@link Softmax}. */
export interface SoftmaxOptions {
  /** The axis; negative counts from the end. Default −1. */
  dim?: number | undefined;
}

/** Options of {@link LogSoftmax}. */
export type LogSoftmaxOptions = SoftmaxOptions;

const anAxis = taking<Given<SoftmaxOptions, ["dim"]>, { readonly dim: number }>({ dim: optional(axis, -1) });

/**
 * Applies `softmax` along an axis: exp(x) / Σ exp(x).
 *
 * @example
 * new Softmax().forward(tensor([0, 0])); // [0.5, 0.5]
 */
export class Softmax extends propertiesOf("Softmax", { softmax }, anAxis) {}

/**
 * Applies `logSoftmax` along an axis: x − log Σ exp(x).
 *
 * @example
 * new LogSoftmax().forward(tensor([0, 0])); // [-0.6931, -0.6931]
 */
export class LogSoftmax extends propertiesOf("LogSoftmax", { logSoftmax }, anAxis) {}

/**
 * Applies `softmin` along an axis, by default the last: exp(−x) / Σ exp(−x).
 *
 * @example
 * new Softmin().forward(tensor([0, 0])); // [0.5, 0.5]
 */
export class Softmin extends moduleOf("Softmin", { softmin }, anAxis) {}

/**
 * Applies `softmax` over the channels at each position of x [batch, channels, height, width] or [channels, height,
 * width].
 *
 * @example
 * new Softmax2d().forward(zeros([2, 4, 3, 3])); // 0.25 everywhere
 *
 * @throws {ShapeError} in `forward`, for another number of axes.
 */
export class Softmax2d extends Module<[x: Tensor], Tensor> {
  constructor();
  constructor(...values: unknown[]) {
    super();
    unlisted("Softmax2d", {})(values);
  }

  /** @param x [batch, channels, height, width] or [channels, height, width] @returns the same shape */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    expectTensor("Softmax2d", "x", x);
    if (x.rank !== 3 && x.rank !== 4)
      throw new ShapeError("Softmax2d", "wrongRank", `expected 4 axes, or 3 without a batch, got ${x.describe()}`);
    return softmax(x, { dim: -3 });
  }
}

/**
 * Applies `glu`: the first half of an axis times the sigmoid of the second half.
 *
 * @example
 * new GLU().forward(tensor([1, 2, 0, 0])); // [0.5, 1]
 */
export class GLU extends moduleOf("GLU", { glu }) {}

/**
 * Applies `hardshrink` to each element: x where |x| > λ, else 0.
 *
 * @example
 * new Hardshrink(1).forward(tensor([-0.5, 2])); // [0, 2]
 */
export class Hardshrink extends moduleOf("Hardshrink", { hardshrink }) {}

/**
 * Applies `softshrink` to each element: moves x toward 0 by λ.
 *
 * @example
 * new Softshrink(1).forward(tensor([-0.5, 3])); // [0, 2]
 */
export class Softshrink extends moduleOf("Softshrink", { softshrink }) {}

/** Options of {@link Threshold}. */
export interface ThresholdOptions {
  /** The threshold: larger elements are kept. */
  threshold: number;
  /** The value that replaces all other elements. */
  value: number;
}

const levels = taking<[threshold: number, value: number] | [options: ThresholdOptions]>({
  threshold: required(someNumber),
  value: required(someNumber),
});

/**
 * Applies `threshold` to each element: x where it is above the threshold, else a constant.
 *
 * @example
 * new Threshold(1, 0).forward(tensor([0.5, 2])); // [0, 2]
 */
export class Threshold extends moduleOf("Threshold", { threshold }, levels) {}

/** Options of {@link RReLU}. */
export interface SlopeOptions {
  /** The smallest slope. Default 1/8. */
  lower?: number | undefined;
  /** The largest slope. Default 1/3. */
  upper?: number | undefined;
}

const slopes = taking<Given<SlopeOptions, ["lower", "upper"]>>({
  lower: optional(aNumber(finite), 1 / 8),
  upper: optional(aNumber(finite), 1 / 3),
});

/**
 * Applies `rrelu`: keeps positive elements, and multiplies others by a slope that training draws for each element.
 *
 * @example
 * new RReLU().eval().forward(tensor([-1, 2])); // [-0.2292, 2]
 */
export class RReLU extends moduleOf("RReLU", { rrelu }, slopes) {
  /** @param x any shape @returns the same shape */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return rrelu(x, { ...this.options, training: this.training });
  }
}

/** Options of {@link PReLU}. */
export interface PReLUOptions extends LayerOptions {
  /** The number of slopes: 1, or one for each element of axis 1. Default 1. */
  numParameters?: number | undefined;
  /** Initial value of the slopes. Default 0.25. */
  init?: number | undefined;
}

/**
 * Applies `prelu` to each element, with trained slopes: max(x, 0) + weight · min(x, 0).
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

  /** @param x any shape; axis 1 has numParameters elements, unless that is 1 @returns the same shape */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
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
