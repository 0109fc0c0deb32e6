/** Gradients that are too large, made smaller. */
import { noGrad } from "../autograd/modes.ts";
import { ArgumentError } from "../core/errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { zeros } from "../ops/creation/full.ts";
import { add, div } from "../ops/elementwise/binary.ts";
import { clamp } from "../ops/elementwise/ternary.ts";
import { stack } from "../ops/join/cat.ts";
import { norm } from "../ops/reduction/norm.ts";
import type { FoldName } from "../ops/reduction/primitive.ts";
import { fold, planReduction } from "../ops/reduction/reduce.ts";
import type { DType } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { euclideanNorm, scaled } from "./gradients/many.ts";
import { checkNumber, notNegative } from "./options.ts";

/** Options of {@link clipGradNorm}. */
export interface ClipGradNormOptions {
  /** The order p of the norm, (Σ |g|ᵖ)^(1/p) over all elements of all gradients; Infinity: the largest. Default 2. */
  normType?: number;
  /** Reads the norm, and throws where it is infinite or NaN. Waits for the device. Default false. */
  errorIfNonfinite?: boolean;
}

/** Added to the norm, as PyTorch does: nothing is divided by 0. */
const LEAST_NORM = 1e-6;

/**
 * Multiplies all gradients by maxNorm / norm where the norm of all of them together is larger than maxNorm. Stays on the device: nothing is read back unless
 * `errorIfNonfinite` asks for it, and all are multiplied, by 1 where they are small enough. The same bits on every run.
 *
 * @param parameters one, or a list; those without a gradient are left out. `grad` is a new tensor afterwards
 * @param maxNorm at least 0; with Infinity the norm is computed and no gradient touched
 * @returns the norm before, float32 (float64 where a gradient is), in a tensor of one element
 *
 * @example
 * loss.backward();
 * clipGradNorm(model.parameters(), 1);
 * optimizer.step();
 *
 * @throws {ArgumentError} for a maxNorm that is negative or NaN, a normType that is not above 0, and `nonfinite` where that is asked for.
 */
export function clipGradNorm(
  parameters: Tensor | readonly Tensor[],
  maxNorm: number,
  { normType = 2, errorIfNonfinite = false }: ClipGradNormOptions = {},
): Tensor {
  checkNumber("clipGradNorm", "maxNorm", maxNorm, limit);
  checkNumber("clipGradNorm", "normType", normType, aboveZero);
  const owners = withGradients("clipGradNorm", parameters);
  return noGrad(() => {
    const total = gradientNorm(owners, normType);
    if (errorIfNonfinite && !Number.isFinite(Number(total.item())))
      throw new ArgumentError(
        "clipGradNorm",
        "nonfinite",
        `the norm of the gradients is ${Number(total.item())}; look for the cause with detectAnomaly, or skip the step`,
      );
    if (maxNorm === Infinity) return total;
    tidy(() => {
      const factor = clamp(div(maxNorm, add(total, LEAST_NORM)) as Tensor, { max: 1 });
      const products = scaled("clipGradNorm", gradientsOf(owners), factor);
      for (const [index, owner] of owners.entries()) replaceGradient(owner, products[index]!);
    });
    return total;
  });
}

const limit = { holds: (value: number) => value >= 0, wanted: "a number of at least 0, or Infinity" };
const aboveZero = { holds: (value: number) => value > 0, wanted: "a number above 0, or Infinity" };

/**
 * The norm of all elements of all gradients. Each gradient's is summed up in float32 or wider, then those are: in a fixed order, without an
 * overflow of 16 bits.
 */
function gradientNorm(owners: readonly Tensor[], p: number): Tensor {
  return tidy(() => {
    if (p === 2) return euclideanNorm("clipGradNorm", gradientsOf(owners));
    const isWide = owners.some(({ grad }) => grad!.dtype === "float64");
    const norms = owners.map(({ grad }) => toDType(wideNorm(grad!, p), isWide ? "float64" : "float32"));
    return norms.length === 0 ? zeros([]) : norm(stack(norms), { p });
  });
}

const folds: ReadonlyMap<number, FoldName> = new Map([
  [1, "norm1"],
  [Infinity, "normInf"],
]);

/** The norm of a tensor in float32, in float64 of float64. */
const wideNorm = (x: Tensor, p: number): Tensor =>
  fold(folds.get(p) ?? "normP", x, planReduction("clipGradNorm", x, {}), wideDType(x), p);

const wideDType = ({ dtype }: Tensor): DType => (dtype === "float64" ? "float64" : "float32");

const gradientsOf = (owners: readonly Tensor[]): Tensor[] => owners.map(({ grad }) => grad!);

/**
 * Brings each element of each gradient between -clipValue and clipValue. `grad` is a new tensor afterwards; NaN stays.
 *
 * @throws {ArgumentError} for a clipValue that is negative or NaN.
 */
export function clipGradValue(parameters: Tensor | readonly Tensor[], clipValue: number): void {
  checkNumber("clipGradValue", "clipValue", clipValue, notNegative);
  const owners = withGradients("clipGradValue", parameters);
  noGrad(() =>
    tidy(() => {
      for (const owner of owners) replaceGradient(owner, clamp(owner.grad!, { min: -clipValue, max: clipValue }));
    }),
  );
}

/** @internal The tensors that have a gradient. */
export function withGradients(operation: string, parameters: Tensor | readonly Tensor[]): Tensor[] {
  const list = parameters instanceof Tensor ? [parameters] : parameters;
  if (!Array.isArray(list) || list.some((each) => !(each instanceof Tensor)))
    throw new ArgumentError(operation, "notATensor", "a tensor or a list of tensors is wanted as parameters");
  for (const tensor of list) tensor.checkAlive(operation);
  return list.filter(({ grad }) => grad !== null);
}

/** @internal */
export function replaceGradient(owner: Tensor, gradient: Tensor): void {
  owner.grad?.dispose();
  owner.grad = keep(gradient);
}
