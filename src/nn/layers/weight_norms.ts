/** Weight normalization and spectral normalization, as in PyTorch's `torch.nn.utils.parametrizations`. */
import { noGrad } from "../../autograd/modes.ts";
import { aNumber, axis, either, nothing } from "../../core/kinds.ts";
import type { NumberRule } from "../../core/options.ts";
import { type Given, named, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { clone, copyInto } from "../../ops/copy/copy.ts";
import { normalize } from "../../ops/distance/normalize.ts";
import { mul } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { randn } from "../../ops/random/randn.ts";
import { norm } from "../../ops/reduction/norm.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { movedim, transpose } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { Generator } from "../../random/generator.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import { aGenerator, epsilon } from "./kinds.ts";
import { Module } from "./module.ts";
import { parametrize, parametrizedOperands, tensorOf } from "./parametrization.ts";

/** Options of {@link weightNorm}. */
export interface WeightNormOptions {
  /** The name of the weight. Default `"weight"`. */
  name?: string | undefined;
  /** The axis along which each slice has a separate norm; null for one norm of the whole weight. Default 0. */
  dim?: number | null | undefined;
}

/**
 * Reparametrizes a weight by its direction v and length g, as PyTorch's `parametrizations.weight_norm`:
 *
 *     weight = g v / ‖v‖
 *
 * The state has g as `parametrizations.weight.original0` and v as `parametrizations.weight.original1`.
 * `removeParametrizations` makes the weight a plain parameter again.
 *
 * Source: T. Salimans and D. P. Kingma, "Weight Normalization", 2016.
 *
 * @returns the module, changed in place
 *
 * @example
 * const layer = weightNorm(new Linear(20, 40));
 * layer.stateDict(); // bias, parametrizations.weight.original0 [40, 1], parametrizations.weight.original1 [40, 20]
 *
 * @throws {ArgumentError} `noSuchTensor` @throws {ShapeError} for an axis that the weight does not have.
 */
export function weightNorm<M extends Module>(module: M, ...options: Given<WeightNormOptions, ["name", "dim"]>): M;
export function weightNorm(...values: unknown[]): Module {
  const { module, name, dim } = weightNormParameters(values);
  const { rank } = tensorOf("weightNorm", module, name);
  return parametrize(
    "weightNorm",
    module,
    name,
    new WeightNorm(dim === null ? null : normalizeAxis("weightNorm", dim, rank)),
  );
}
const weightNormParameters = parameters("weightNorm", {
  ...parametrizedOperands,
  dim: optional(either(axis, nothing), 0),
});

class WeightNorm extends Module<[g: Tensor, v: Tensor], Tensor> {
  constructor(readonly dim: number | null) {
    super();
  }

  override forward(g: Tensor, v: Tensor): Tensor {
    return mul(v, div(g, this.norms(v)));
  }

  rightInverse(weight: Tensor): [g: Tensor, v: Tensor] {
    return [this.norms(weight), weight];
  }

  private norms(v: Tensor): Tensor {
    const { dim } = this;
    if (dim === null) return norm(v);
    return norm(v, { dim: [...v.shape.keys()].filter((axis) => axis !== dim), keepdim: true });
  }
}

/** Options of {@link spectralNorm}. */
export interface SpectralNormOptions {
  /** The name of the weight. Default `"weight"`. */
  name?: string | undefined;
  /** Number of power iterations for each read of the weight in training mode, up to 1000. Default 1. */
  nPowerIterations?: number | undefined;
  /** The smallest norm to divide by. Default 1e-12. */
  eps?: number | undefined;
  /** The axis of outputs. Default 0; 1 for transposed convolutions. */
  dim?: number | null | undefined;
  /** The random number generator for the initial vectors. Default: the global one. */
  generator?: Generator | undefined;
}

/**
 * Divides a weight by its largest singular value σ, as PyTorch's `parametrizations.spectral_norm`:
 *
 *     weight = original / σ,  σ = uᵀ original v
 *
 * u and v approximate the singular vectors. In training mode, each read of the weight improves them by power iteration;
 * in evaluation mode they stay fixed. The state has the weight as `parametrizations.weight.original`, and u and v as
 * `parametrizations.weight.0._u` and `_v`. A weight with one axis is divided by its norm.
 *
 * Source: T. Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.
 *
 * @returns the module, changed in place
 *
 * @example
 * const layer = spectralNorm(new Linear(20, 40));
 * linalg.matrixNorm(layer.weight, 2); // about 1
 *
 * @throws {ArgumentError} `noSuchTensor` @throws {ShapeError} for an axis that the weight does not have.
 */
export function spectralNorm<M extends Module>(
  module: M,
  ...options: Given<SpectralNormOptions, ["name", "nPowerIterations", "eps", "dim"]>
): M;
export function spectralNorm(...values: unknown[]): Module {
  const { module, name, dim, ...options } = spectralNormParameters(values);
  const weight = tensorOf("spectralNorm", module, name);
  const axis = dim ?? (/^ConvTranspose\dd$/.test(module.constructor.name) ? 1 : 0);
  const step = new SpectralNorm(weight, { ...options, dim: normalizeAxis("spectralNorm", axis, weight.rank) });
  return parametrize("spectralNorm", module, name, step);
}
/**
 * Power iteration converges geometrically: more than 1000 steps change nothing, and a mistaken number would seem to
 * hang.
 */
const steps: NumberRule = {
  holds: (value) => Number.isInteger(value) && value >= 1 && value <= 1000,
  expected: "a whole number from 1 to 1000",
};
const spectralNormParameters = parameters("spectralNorm", {
  ...parametrizedOperands,
  nPowerIterations: optional(aNumber(steps), 1),
  eps: optional(epsilon, 1e-12),
  dim: optional(either(axis, nothing)),
  generator: named(aGenerator),
});

/** Number of initial power iterations, as in PyTorch, so that σ is accurate from the start. */
const FIRST_STEPS = 15;

interface SpectralSettings {
  readonly nPowerIterations: number;
  readonly eps: number;
  readonly dim: number;
  readonly generator?: Generator | undefined;
}

class SpectralNorm extends Module<[weight: Tensor], Tensor> {
  readonly nPowerIterations: number;
  readonly eps: number;
  readonly dim: number;
  readonly _u: Tensor | null = null;
  readonly _v: Tensor | null = null;

  constructor(weight: Tensor, { nPowerIterations, eps, dim, generator }: SpectralSettings) {
    super();
    this.nPowerIterations = nPowerIterations;
    this.eps = eps;
    this.dim = dim;
    if (weight.rank < 2) return;
    const matrix = noGrad(() => this.matrixOf(weight));
    const random = (size: number) =>
      keep(normalize(randn([size], { dtype: weight.dtype as FloatDType, generator }), { dim: 0, eps }));
    const [rows, columns] = tupleOf(matrix.shape, 2);
    this._u = random(rows);
    this._v = random(columns);
    this.approach(matrix, FIRST_STEPS);
  }

  override forward(weight: Tensor): Tensor {
    const { eps } = this;
    if (this._u === null) return normalize(weight, { dim: 0, eps });
    const matrix = this.matrixOf(weight);
    if (this.training) this.approach(matrix, this.nPowerIterations);
    // copies: tensors saved for the backward pass must not change with the next read
    const [u, v] = [clone(this._u), clone(this._v!)];
    return div(weight, sum(mul(u, matmul(matrix, v))));
  }

  rightInverse(value: Tensor): Tensor {
    return value; // forward returns this value unchanged if its largest singular value is 1
  }

  /** Returns the weight as a matrix, [outputs, everything else]. */
  private matrixOf(weight: Tensor): Tensor {
    const first = movedim(weight, this.dim, 0);
    return reshape(first, [first.shape[0], first.size / first.shape[0]]);
  }

  /** Runs power iterations on u and v, in place. */
  private approach(matrix: Tensor, steps: number): void {
    const { eps } = this;
    noGrad(() => {
      for (let step = 0; step < steps; step++)
        tidy(() => {
          copyInto(this._u!, normalize(matmul(matrix, this._v!), { dim: 0, eps }));
          copyInto(this._v!, normalize(matmul(transpose(matrix, 0, 1), this._u!), { dim: 0, eps }));
        });
    });
  }
}
