/** Activations as modules, with PyTorch's names: each applies the operation of its name. */
import { aNumber, axis, choice, someNumber } from "../../core/kinds.ts";
import { type Given, optional, parameters, unlisted } from "../../core/parameters.ts";
import { celu } from "../../ops/activation/celu.ts";
import { elu } from "../../ops/activation/elu.ts";
import { gelu } from "../../ops/activation/gelu.ts";
import { hardsigmoid } from "../../ops/activation/hardsigmoid.ts";
import { hardswish } from "../../ops/activation/hardswish.ts";
import { hardtanh } from "../../ops/activation/hardtanh.ts";
import { leakyRelu } from "../../ops/activation/leaky_relu.ts";
import { logSigmoid } from "../../ops/activation/log_sigmoid.ts";
import { mish } from "../../ops/activation/mish.ts";
import { prelu } from "../../ops/activation/prelu.ts";
import { relu } from "../../ops/activation/relu.ts";
import { relu6 } from "../../ops/activation/relu6.ts";
import { selu } from "../../ops/activation/selu.ts";
import { sigmoid } from "../../ops/activation/sigmoid.ts";
import { silu } from "../../ops/activation/silu.ts";
import { softplus } from "../../ops/activation/softplus.ts";
import { softsign } from "../../ops/activation/softsign.ts";
import { tanhshrink } from "../../ops/activation/tanhshrink.ts";
import { full } from "../../ops/creation/full.ts";
import { tanh } from "../../ops/elementwise/hyperbolic.ts";
import { logSoftmax, softmax } from "../../ops/softmax/softmax.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, parameter } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";

/** A module without options. */
abstract class Activation extends Module<[x: Tensor], Tensor> {
  constructor();
  constructor(...values: unknown[]) {
    super();
    unlisted(this.constructor.name, {})(values);
  }
}

/** max(x, 0) for each element. See `relu`. */
export class ReLU extends Activation {
  override forward(x: Tensor): Tensor {
    return relu(x);
  }
}

/** min(max(x, 0), 6) for each element. See `relu6`. */
export class ReLU6 extends Activation {
  override forward(x: Tensor): Tensor {
    return relu6(x);
  }
}

/** x σ(x) for each element. See `silu`. */
export class SiLU extends Activation {
  override forward(x: Tensor): Tensor {
    return silu(x);
  }
}

/** 1 / (1 + exp(−x)) for each element. See `sigmoid`. */
export class Sigmoid extends Activation {
  override forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}

/** log σ(x) for each element. See `logSigmoid`. */
export class LogSigmoid extends Activation {
  override forward(x: Tensor): Tensor {
    return logSigmoid(x);
  }
}

/** min(max(x + 3, 0), 6) / 6 for each element. See `hardsigmoid`. */
export class Hardsigmoid extends Activation {
  override forward(x: Tensor): Tensor {
    return hardsigmoid(x);
  }
}

/** x · min(max(x + 3, 0), 6) / 6 for each element. See `hardswish`. */
export class Hardswish extends Activation {
  override forward(x: Tensor): Tensor {
    return hardswish(x);
  }
}

/** x tanh(log(1 + exp(x))) for each element. See `mish`. */
export class Mish extends Activation {
  override forward(x: Tensor): Tensor {
    return mish(x);
  }
}

/** The scaled exponential linear unit: `selu`. */
export class SELU extends Activation {
  override forward(x: Tensor): Tensor {
    return selu(x);
  }
}

/** x / (1 + |x|) for each element. See `softsign`. */
export class Softsign extends Activation {
  override forward(x: Tensor): Tensor {
    return softsign(x);
  }
}

/** x − tanh(x) for each element. See `tanhshrink`. */
export class Tanhshrink extends Activation {
  override forward(x: Tensor): Tensor {
    return tanhshrink(x);
  }
}

/** The hyperbolic tangent of each element. See `tanh`. */
export class Tanh extends Activation {
  override forward(x: Tensor): Tensor {
    return tanh(x);
  }
}

/** Options of {@link LeakyReLU}. */
export interface LeakyReLUOptions {
  /** What negative elements are multiplied with. Default 0.01. */
  negativeSlope?: number | undefined;
}

/** max(x, 0) + negativeSlope · min(x, 0) for each element. */
export class LeakyReLU extends Module<[x: Tensor], Tensor> {
  readonly negativeSlope: number;

  constructor(...options: Given<LeakyReLUOptions, ["negativeSlope"]>);
  constructor(...values: unknown[]) {
    super();
    const given = leakyReLUParameters(values);
    this.negativeSlope = given.negativeSlope;
  }

  override forward(x: Tensor): Tensor {
    return leakyRelu(x, { negativeSlope: this.negativeSlope });
  }

  /** @internal */
  override details(): string {
    return `negativeSlope: ${this.negativeSlope}`;
  }
}
const leakyReLUParameters = parameters("LeakyReLU", { negativeSlope: optional(someNumber, 0.01) });

/** Options of {@link ELU}. */
export interface ELUOptions {
  /** What negative elements tend to, with a minus. Default 1. */
  alpha?: number | undefined;
}

/** max(x, 0) + α min(exp(x) − 1, 0) for each element. */
export class ELU extends Module<[x: Tensor], Tensor> {
  readonly alpha: number;

  constructor(...options: Given<ELUOptions, ["alpha"]>);
  constructor(...values: unknown[]) {
    super();
    const given = eLUParameters(values);
    this.alpha = given.alpha;
  }

  override forward(x: Tensor): Tensor {
    return elu(x, { alpha: this.alpha });
  }

  /** @internal */
  override details(): string {
    return `alpha: ${this.alpha}`;
  }
}
const eLUParameters = parameters("ELU", { alpha: optional(someNumber, 1) });

/** Options of {@link CELU}. */
export interface CELUOptions {
  /** What negative elements tend to, with a minus. Default 1. */
  alpha?: number | undefined;
}

/** max(x, 0) + α min(exp(x / α) − 1, 0) for each element. */
export class CELU extends Module<[x: Tensor], Tensor> {
  readonly alpha: number;

  constructor(...options: Given<CELUOptions, ["alpha"]>);
  constructor(...values: unknown[]) {
    super();
    const given = cELUParameters(values);
    this.alpha = given.alpha;
  }

  override forward(x: Tensor): Tensor {
    return celu(x, { alpha: this.alpha });
  }

  /** @internal */
  override details(): string {
    return `alpha: ${this.alpha}`;
  }
}
const cELUParameters = parameters("CELU", {
  alpha: optional(aNumber({ holds: (value) => value !== 0, expected: "a number other than 0" }), 1),
});

/** Options of {@link GELU}. */
export interface GELUOptions {
  /** `"tanh"`: the approximation. Default `"none"`. */
  approximate?: "none" | "tanh" | undefined;
}

/** x Φ(x) for each element, with Φ the normal distribution's, or its approximation by tanh. */
export class GELU extends Module<[x: Tensor], Tensor> {
  readonly approximate: "none" | "tanh";

  constructor(...options: Given<GELUOptions, ["approximate"]>);
  constructor(...values: unknown[]) {
    super();
    const given = gELUParameters(values);
    this.approximate = given.approximate;
  }

  override forward(x: Tensor): Tensor {
    return gelu(x, { approximate: this.approximate });
  }

  /** @internal */
  override details(): string {
    return `approximate: ${this.approximate}`;
  }
}
const gELUParameters = parameters("GELU", { approximate: optional(choice("none", "tanh"), "none") });

/** Options of {@link Hardtanh}. */
export interface HardtanhOptions {
  /** Default −1. */
  minVal?: number | undefined;
  /** Default 1. */
  maxVal?: number | undefined;
}

/** min(max(x, minVal), maxVal) for each element. */
export class Hardtanh extends Module<[x: Tensor], Tensor> {
  readonly minVal: number;
  readonly maxVal: number;

  constructor(...options: Given<HardtanhOptions, ["minVal", "maxVal"]>);
  constructor(...values: unknown[]) {
    super();
    const given = hardtanhParameters(values);
    this.minVal = given.minVal;
    this.maxVal = given.maxVal;
  }

  override forward(x: Tensor): Tensor {
    return hardtanh(x, { minVal: this.minVal, maxVal: this.maxVal });
  }

  /** @internal */
  override details(): string {
    return `minVal: ${this.minVal}, maxVal: ${this.maxVal}`;
  }
}
const hardtanhParameters = parameters("Hardtanh", {
  minVal: optional(someNumber, -1),
  maxVal: optional(someNumber, 1),
});

/** Options of {@link Softplus}. */
export interface SoftplusOptions {
  /** Default 1. */
  beta?: number | undefined;
  /** Default 20. */
  threshold?: number | undefined;
}

/** log(1 + exp(β x)) / β for each element, and x where β x is above the threshold. */
export class Softplus extends Module<[x: Tensor], Tensor> {
  readonly beta: number;
  readonly threshold: number;

  constructor(...options: Given<SoftplusOptions, ["beta", "threshold"]>);
  constructor(...values: unknown[]) {
    super();
    const given = softplusParameters(values);
    this.beta = given.beta;
    this.threshold = given.threshold;
  }

  override forward(x: Tensor): Tensor {
    return softplus(x, { beta: this.beta, threshold: this.threshold });
  }

  /** @internal */
  override details(): string {
    return `beta: ${this.beta}, threshold: ${this.threshold}`;
  }
}
const softplusParameters = parameters("Softplus", {
  beta: optional(someNumber, 1),
  threshold: optional(someNumber, 20),
});

/** Options of {@link Softmax}. */
export interface SoftmaxOptions {
  /** The axis, a negative one counted from the end. Default −1. */
  dim?: number | undefined;
}

/** exp(x) / Σ exp(x) along an axis. */
export class Softmax extends Module<[x: Tensor], Tensor> {
  readonly dim: number;

  constructor(...options: Given<SoftmaxOptions, ["dim"]>);
  constructor(...values: unknown[]) {
    super();
    const given = softmaxParameters(values);
    this.dim = given.dim;
  }

  override forward(x: Tensor): Tensor {
    return softmax(x, { dim: this.dim });
  }

  /** @internal */
  override details(): string {
    return `dim: ${this.dim}`;
  }
}
const softmaxParameters = parameters("Softmax", { dim: optional(axis, -1) });

/** Options of {@link LogSoftmax}. */
export interface LogSoftmaxOptions {
  /** The axis, a negative one counted from the end. Default −1. */
  dim?: number | undefined;
}

/** x − log Σ exp(x) along an axis. */
export class LogSoftmax extends Module<[x: Tensor], Tensor> {
  readonly dim: number;

  constructor(...options: Given<LogSoftmaxOptions, ["dim"]>);
  constructor(...values: unknown[]) {
    super();
    const given = logSoftmaxParameters(values);
    this.dim = given.dim;
  }

  override forward(x: Tensor): Tensor {
    return logSoftmax(x, { dim: this.dim });
  }

  /** @internal */
  override details(): string {
    return `dim: ${this.dim}`;
  }
}
const logSoftmaxParameters = parameters("LogSoftmax", { dim: optional(axis, -1) });

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
