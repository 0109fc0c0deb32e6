/** Gradient clipping. */
import { noGrad } from "../autograd/modes.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { aNumber, flag, listed } from "../core/kinds.ts";
import { notNegative } from "../core/options.ts";
import { parameters as declare, type Given, type Kind, operand, optional, reading } from "../core/parameters.ts";
import { allReduce } from "../distributed/collectives.ts";
import { isShared } from "../distributed/data_parallel.ts";
import { toDType } from "../ops/copy/cast.ts";
import { full, zeros } from "../ops/creation/full.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { abs, add } from "../ops/elementwise/arithmetic.ts";
import { clamp } from "../ops/elementwise/clamp.ts";
import { div } from "../ops/elementwise/division.ts";
import { stack } from "../ops/join/cat.ts";
import type { FoldName } from "../ops/reduction/folds.ts";
import { norm } from "../ops/reduction/norm.ts";
import { fold, planReduction } from "../ops/reduction/reduce.ts";
import { accumulationDType, isComplex, realDType } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { euclideanNorm, scaled } from "./gradients/foreach.ts";

/** Options of {@link clipGradNorm}. */
export interface ClipGradNormOptions {
  /** The order p of the norm (Σ |g|ᵖ)^(1/p) over all elements of all gradients; Infinity: max |g|. Default 2. */
  normType?: number;
  /** Throws if the norm is infinite or NaN. This reads the norm, and so waits for the device. Default false. */
  errorIfNonfinite?: boolean;
}

/** Added to the norm to avoid a division by 0, as in PyTorch. */
const EPSILON = 1e-6;

/**
 * Scales all gradients by maxNorm / norm if their global norm is larger than maxNorm. Nothing is read back from the
 * device unless `errorIfNonfinite` is set; if the norm is small enough, gradients are multiplied by 1. Deterministic.
 *
 * @param parameters one, or a list; those without a gradient are skipped. `grad` is a new tensor afterwards
 * @param maxNorm at least 0; with Infinity the norm is computed and no gradient is changed
 * @returns the norm before clipping, a tensor of one element: float32, or float64 if a gradient is float64
 *
 * @example
 * loss.backward();
 * clipGradNorm(model.parameters(), 1);
 * optimizer.step();
 *
 * @throws {ArgumentError} for a maxNorm that is negative or NaN, a normType that is not above 0, and `nonfinite` with
 * `errorIfNonfinite`.
 */
export function clipGradNorm(
  parameters: Tensor | readonly Tensor[],
  maxNorm: number,
  ...options: Given<ClipGradNormOptions, ["normType", "errorIfNonfinite"]>
): Tensor;
export function clipGradNorm(...values: unknown[]): Tensor {
  const { parameters, maxNorm, normType, errorIfNonfinite } = clipGradNormParameters(values);
  const owners = withGradients("clipGradNorm", parameters);
  const shared = (Tensor.isTensor(parameters) ? [parameters] : parameters).filter(isShared);
  return noGrad(() => {
    const total = shared.length > 0 ? normOfRanks(shared, owners, normType) : gradientNorm(owners, normType);
    if (errorIfNonfinite) checkFiniteNorm(Number(total.item()));
    if (maxNorm === Infinity) return total;
    tidy(() => {
      const factor = clamp(div(maxNorm, add(total, EPSILON)), { max: 1 });
      const products = scaled("clipGradNorm", gradientsOf(owners), factor);
      for (const [index, owner] of owners.entries()) replaceGradient(owner, products[index]);
    });
    return total;
  });
}

/** Accepts anything: {@link withGradients} checks it, with a more precise error. */
const parameterList: Kind<Tensor | readonly Tensor[]> = {
  expected: "a tensor or a list of tensors",
  parse: (value) => value as Tensor,
};

const clipGradNormParameters = declare("clipGradNorm", {
  parameters: operand(parameterList),
  maxNorm: operand(aNumber({ holds: (value) => value >= 0, expected: "a number of at least 0, or Infinity" })),
  normType: optional(aNumber({ holds: (value) => value > 0, expected: "a number above 0, or Infinity" }), 2),
  errorIfNonfinite: optional(flag, false),
});

const clipGradValueParameters = declare("clipGradValue", {
  parameters: operand(parameterList),
  clipValue: operand(aNumber(notNegative)),
});

function checkFiniteNorm(norm: number): void {
  if (Number.isFinite(norm)) return;
  throw new ArgumentError(
    "clipGradNorm",
    "nonfinite",
    `expected a finite norm of the gradients, got ${norm}; find the cause with detectAnomaly, or skip the step`,
  );
}

/**
 * The norm of all elements of all gradients, computed as the norm of their norms. It accumulates in float32 or wider,
 * in a fixed order, so 16-bit gradients do not overflow.
 */
function gradientNorm(owners: readonly WithGradient[], p: number): Tensor {
  return tidy(() => {
    if (p === 2) return euclideanNorm("clipGradNorm", gradientsOf(owners));
    const isWide = owners.some(({ grad }) => realDType(grad.dtype) === "float64");
    const norms = owners.map(({ grad }) => toDType(normOf(grad, p), isWide ? "float64" : "float32"));
    return norms.length === 0 ? zeros([]) : norm(stack(norms), { p });
  });
}

/** The norm over all ranks, of sharded gradients (each rank has some) and of replicated ones (every rank has all). */
function normOfRanks(shared: readonly Tensor[], owners: readonly WithGradient[], p: number): Tensor {
  return tidy(() => {
    const norms = [true, false].map((each) =>
      gradientNorm(
        owners.filter((owner) => isShared(owner) === each),
        p,
      ),
    );
    const [sharded, common] = norms.map((each) => Number(each.item()));
    const exchanged = fromArray(Float64Array.of(p === Infinity ? sharded : sharded ** p));
    const all = Number(allReduce(exchanged, { op: p === Infinity ? "max" : "sum" }).item());
    const total = p === Infinity ? Math.max(all, common) : (all + common ** p) ** (1 / p);
    const isWide = [...shared, ...owners].some(({ dtype }) => realDType(dtype) === "float64");
    return full([], total, { dtype: isWide ? "float64" : "float32" });
  });
}

const folds: ReadonlyMap<number, FoldName> = new Map([
  [1, "norm1"],
  [Infinity, "normInf"],
]);

/** The norm of a tensor, in its accumulation dtype. */
const normOf = (x: Tensor, p: number): Tensor => foldOf(isComplex(x.dtype) ? abs(x) : x, p);

const foldOf = (x: Tensor, p: number): Tensor =>
  fold(folds.get(p) ?? "normP", x, planReduction("clipGradNorm", x, {}), accumulationDType(x.dtype), p);

const gradientsOf = (owners: readonly WithGradient[]): Tensor[] => owners.map(({ grad }) => grad);

/**
 * Clamps each element of each gradient to [-clipValue, clipValue]. `grad` is a new tensor afterwards. NaN stays NaN.
 *
 * @example
 * loss.backward();
 * optim.clipGradValue(model.parameters(), 0.5);
 * optimizer.step();
 *
 * @throws {ArgumentError} for a clipValue that is negative or NaN.
 */
export function clipGradValue(parameters: Tensor | readonly Tensor[], clipValue: number): void;
export function clipGradValue(...values: unknown[]): void {
  const { parameters, clipValue } = clipGradValueParameters(values);
  const owners = withGradients("clipGradValue", parameters);
  noGrad(() =>
    tidy(() => {
      for (const owner of owners) replaceGradient(owner, clamp(owner.grad, { min: -clipValue, max: clipValue }));
    }),
  );
}

/** @internal Returns the tensors in a list that have a gradient. */
export function withGradients(operation: string, parameters: Tensor | readonly Tensor[]): WithGradient[] {
  const list = Tensor.isTensor(parameters) ? [parameters] : reading(operation, () => listed(parameters));
  if (!list?.every(Tensor.isTensor))
    throw new ArgumentError(
      operation,
      "notATensor",
      `expected parameters to be a tensor or a list of tensors, got ${describeValue(parameters)}`,
    );
  for (const tensor of list) tensor.checkAlive(operation);
  return list.filter(hasGradient);
}

/** @internal A tensor that has a gradient. */
export type WithGradient = Tensor & { readonly grad: Tensor };

/** @internal */
export const hasGradient = (x: Tensor): x is WithGradient => x.grad !== null;

/** @internal */
export function replaceGradient(owner: Tensor, gradient: Tensor): void {
  owner.grad?.dispose();
  owner.grad = keep(gradient);
}
