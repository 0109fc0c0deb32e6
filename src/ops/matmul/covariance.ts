import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { finite } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import {
  computationDType,
  type DType,
  type FloatDType,
  hasGradients,
  isComplex,
  isFloat,
  isInteger,
  realDType,
} from "../../tensor/dtype.ts";
import { aTensor, expectNumbers } from "../../tensor/kinds.ts";
import { promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { conjugate } from "../complex/part.ts";
import { complexOf, imag, real } from "../complex/parts.ts";
import { toDType } from "../copy/cast.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { div } from "../elementwise/division.ts";
import { sqrt } from "../elementwise/power.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { sum } from "../reduction/sum.ts";
import { diagonal } from "../view/diagonal.ts";
import { transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";
import { fusesCovariance, rowCovariances } from "./covariance.cpu.ts";
import { plainMatmul as matmul } from "./plain_matmul.ts";

/** Options of {@link cov}. */
export interface CovarianceOptions {
  /** The number subtracted from the count of observations in the divisor: 1 (the default) for a sample. */
  correction?: number;
  /** [n], integers: the frequency of each observation. */
  fweights?: Tensor;
  /** [n], floats: the importance of each observation. */
  aweights?: Tensor;
}

/**
 * Computes the covariance matrix of variables: `out[i, j] = Σₖ wₖ (x[i, k] − meanᵢ)(x[j, k] − meanⱼ) / normalization`.
 * Without weights the normalization is n − correction; with w = fweights · aweights it is Σ w − correction · Σ w ·
 * aweights / Σ w. A normalization below 0 counts as 0; the result is then infinity or NaN.
 *
 * @param x [variables, n], or [n] for one variable; integers become float32, and float16 and bfloat16 are computed in
 * float32
 * @returns [variables, variables], or a tensor without axes for one variable; in the common dtype of x and `aweights`
 *
 * @example
 * cov(tensor([[0, 1, 2], [2, 1, 0]])); // float32 [[1, -1], [-1, 1]]
 *
 * @throws {ShapeError} for a rank above 2, or if there is not one weight per observation.
 * @throws {DTypeError} for bool, fweights that are not integers, or aweights that are not floats.
 * @throws {ArgumentError} for a negative weight, or weights whose sum is 0. This check reads the weights and waits for
 * the device.
 */
export function cov<D extends DType>(
  x: Tensor<D>,
  options?: CovarianceOptions & { readonly aweights?: undefined },
): Tensor<FloatOf<D>>;
export function cov(x: Tensor, options?: CovarianceOptions): Tensor<FloatDType>;
export function cov(...values: unknown[]): Tensor {
  const { x, ...options } = covParameters(values);
  return covariances("cov", x, options);
}
cov.method = "declared" as const;
const covParameters = parameters("cov", {
  x: operand(aTensor),
  correction: named(aNumber(finite), 1),
  fweights: named(aTensor),
  aweights: named(aTensor),
});

/**
 * Computes the correlation coefficients of variables: `cov(x)[i, j] / √(cov(x)[i, i] · cov(x)[j, j])`, from −1 to 1.
 * NaN if a variable is constant.
 *
 * @param x [variables, n], or [n] for one variable; dtypes as for {@link cov}
 * @returns [variables, variables], or a tensor without axes for one variable @example corrcoef(tensor([[0, 1, 2], [4,
 * 2, 0]])); // float32 [[1, -1], [-1, 1]]
 *
 * @throws {ShapeError} for a rank above 2.
 * @throws {DTypeError} for bool.
 */
export function corrcoef<D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>>;
export function corrcoef(...values: unknown[]): Tensor {
  const { x } = corrcoefParameters(values);
  const dtype = hasGradients(x.dtype) ? x.dtype : "float32";
  const wide = x.dtype === "bool" ? x : toDType(x, computationDType(dtype));
  if (x.rank === 2 && x.shape[0] > 1 && fusesCovariance(wide)) {
    const correlation = { divisor: 1, isCorrelation: true };
    return tidy(() => toDType(squeeze(rowCovariances("corrcoef", wide, correlation)), dtype));
  }
  const c = covariances("corrcoef", wide, { correction: 1, fweights: undefined, aweights: undefined });
  if (c.rank === 0) return toDType(div(c, c), dtype);
  const deviation = sqrt(real(diagonal(c)));
  const scaled = div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0));
  const clamped = (part: Tensor): Tensor => clamp(part, { min: -1, max: 1 });
  if (isComplex(dtype)) return complexOf("corrcoef", clamped(real(scaled)), clamped(imag(scaled)));
  return toDType(clamped(scaled), dtype);
}
corrcoef.method = "declared" as const;
const corrcoefParameters = parameters("corrcoef", { x: operand(aTensor) });

interface Weights {
  readonly correction: number;
  readonly fweights: Tensor | undefined;
  readonly aweights: Tensor | undefined;
}

function covariances(operation: string, x: Tensor, { correction, fweights, aweights }: Weights): Tensor {
  if (x.rank > 2) throw new ShapeError(operation, "wrongRank", `expected at most two axes, got ${x.describe()}`);
  expectNumbers(operation, x, "bool");
  const plain = hasGradients(x.dtype) ? x.dtype : "float32";
  const target = aweights && isFloat(aweights.dtype) ? promote(plain, aweights.dtype) : plain;
  const wide = toDType(x, computationDType(target));
  const rows = x.rank === 2 ? wide : reshape(wide, [1, x.size]);
  const n = rows.shape[1];
  const counts = fweights && checkWeights(operation, "fweights", fweights, n, realDType(wide.dtype));
  const importances = aweights && checkWeights(operation, "aweights", aweights, n, realDType(wide.dtype));
  const w = counts && importances ? mul(counts, importances) : (counts ?? importances);
  const total = w && sum(w);
  if (total && !total.storage.batch && total.item() === 0)
    throw new ArgumentError(
      operation,
      "noWeight",
      "expected weights whose sum is not 0, since means are divided by it",
    );
  const weighted = (values: Tensor): Tensor => (w ? mul(values, w) : values);
  if (!w && fusesCovariance(rows)) {
    const attributes = { divisor: Math.max(0, n - correction), isCorrelation: false };
    return tidy(() => toDType(squeeze(rowCovariances(operation, rows, attributes)), target));
  }
  const mean = div(sum(weighted(rows), { dim: 1, keepdim: true }), total ?? n);
  const centered = sub(rows, mean);
  const products = matmul(weighted(centered), conjugate(transpose(centered, 0, 1)));
  return toDType(squeeze(div(products, normalization(n, w, total, importances, correction))), target);
}

function normalization(
  n: number,
  w: Tensor | undefined,
  total: Tensor | undefined,
  importances: Tensor | undefined,
  correction: number,
): Tensor | number {
  if (!w || !total) return Math.max(0, n - correction);
  const lost = importances && correction !== 0 ? div(mul(sum(mul(w, importances)), correction), total) : correction;
  return clamp(sub(total, lost), { min: 0 });
}

/** Checks weights and converts them to the dtype of the values. @throws {OrchardError} as {@link cov} */
function checkWeights(operation: string, name: "fweights" | "aweights", w: Tensor, n: number, dtype: DType): Tensor {
  const expected = name === "fweights" ? "integers" : "floats";
  if (!(name === "fweights" ? isInteger(w.dtype) : isFloat(w.dtype)))
    throw new DTypeError(operation, "wrongDType", `expected ${name} to be ${expected}, got ${w.describe()}`);
  if (w.rank > 1 || w.size !== n)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected ${name} to be a vector of ${n}, one for each observation, got ${w.describe()}`,
    );
  const negative = Array.from(w.dataSync() as ArrayLike<number | bigint>).findIndex((value) => value < 0);
  if (negative >= 0)
    throw new ArgumentError(
      operation,
      "negativeWeight",
      `expected ${name} of at least 0, got a negative one at index ${negative}`,
    );
  return reshape(toDType(w, dtype), [n]);
}
