/** Initializers with structure: identities, orthogonal and sparse matrices. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { qr } from "../../linalg/qr/qr.ts";
import { fill_ } from "../../ops/copy/inplace.ts";
import { checkFloat } from "../../ops/creation/create.ts";
import { eye } from "../../ops/creation/eye.ts";
import { zeros } from "../../ops/creation/full.ts";
import { mul } from "../../ops/elementwise/arithmetic.ts";
import { lt } from "../../ops/elementwise/comparison.ts";
import { where } from "../../ops/elementwise/where.ts";
import { aGenerator, type GeneratorOptions } from "../../ops/random/distribution.ts";
import { rand } from "../../ops/random/rand.ts";
import { normal } from "../../ops/random/randn.ts";
import { argsort } from "../../ops/sorting/sort.ts";
import { diagonal } from "../../ops/view/diagonal.ts";
import { transpose } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow, select } from "../../ops/view/slice.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { deviation, finite, written } from "./fills.ts";

const x = operand(aTensor);
const generated = { generator: named(aGenerator) } as const;

function checkRank(operation: string, x: Tensor, [least, most]: readonly [number, number]): void {
  if (x.rank >= least && x.rank <= most) return;
  const expected =
    least === most ? "a matrix" : most === Infinity ? `at least ${least} axes` : `${least} to ${most} axes`;
  throw new ShapeError(operation, "wrongRank", `expected ${expected}, got ${x.describe()}`);
}

/** Fills a matrix with the identity: linear layers then keep their inputs. @throws {ShapeError} for other ranks. */
export function eye_<T extends Tensor>(tensor: T): T;
export function eye_(...values: unknown[]): Tensor {
  const { x } = eyeParameters(values);
  checkRank("init.eye_", x, [2, 2]);
  return written("init.eye_", x, () => eye(x.shape[0], x.shape[1], { dtype: x.dtype }));
}
const eyeParameters = parameters("init.eye_", { x });

/**
 * Fills the weight of a convolution so that it passes as many input channels as possible through unchanged. The kernel
 * from a channel to itself is 1 in the center; everything else is 0. Returns the tensor.
 *
 * @param tensor of shape [outputs, inputs, …kernel], with one to three axes of the kernel
 * @param groups the number of groups of output channels; each keeps its inputs
 *
 * @example
 * nn.init.dirac_(new nn.Conv2d(3, 3, 3, { padding: 1 }).weight);
 *
 * @throws {ShapeError} for other ranks. @throws {ArgumentError} if groups does not divide the output channels.
 */
export function dirac_<T extends Tensor>(tensor: T, ...options: Given<{ groups?: number | undefined }, ["groups"]>): T;
export function dirac_(...values: unknown[]): Tensor {
  const { x, groups } = diracParameters(values);
  checkRank("init.dirac_", x, [3, 5]);
  const [outputs, inputs, ...kernel] = x.shape;
  if (outputs % groups !== 0)
    throw new ArgumentError(
      "init.dirac_",
      "invalidGroups",
      `expected groups to divide ${outputs} output channels, got ${groups}`,
    );
  return written("init.dirac_", x, () => {
    const result = zeros(x.shape, { dtype: x.dtype });
    const center = kernel.reduce<Tensor>((part, size) => select(part, 2, Math.floor(size / 2)), result);
    const height = outputs / groups;
    if (inputs > 0 && kernel.every((size) => size > 0))
      for (let group = 0; group < groups; group++) fill_(diagonal(narrow(center, 0, group * height, height)), 1);
    return result;
  });
}
const diracParameters = parameters("init.dirac_", { x, groups: optional(aNumber(count), 1) });

/**
 * Fills a tensor with a random orthogonal matrix times `gain`. Axes after the first are flattened: rows are orthonormal
 * if there are at most as many rows as columns, else columns are. Returns the tensor.
 *
 * Source: A. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013.
 *
 * @example
 * nn.init.orthogonal_(layer.weight, Math.SQRT2);
 *
 * @throws {ShapeError} for fewer than two axes. @throws {DTypeError} for integers and bools.
 */
export function orthogonal_<T extends Tensor>(
  tensor: T,
  ...options: Given<GeneratorOptions & { gain?: number | undefined }, ["gain"]>
): T;
export function orthogonal_(...values: unknown[]): Tensor {
  const { x, gain, generator } = orthogonalParameters(values);
  checkRank("init.orthogonal_", x, [2, Infinity]);
  checkFloat("init.orthogonal_", x.dtype);
  if (x.size === 0) return x;
  return written("init.orthogonal_", x, () => {
    const rows = x.shape[0];
    const columns = x.size / rows;
    const [long, short] = [Math.max(rows, columns), Math.min(rows, columns)];
    // The diagonal of R is at least 0, so Q is uniform over orthogonal matrices (F. Mezzadri, 2007).
    const { q } = qr(normal(0, 1, [long, short], { dtype: accumulationDType(x.dtype), generator }));
    const scaled = mul(q, gain);
    return reshape(rows < columns ? transpose(scaled, 0, 1) : scaled, x.shape);
  });
}
const orthogonalParameters = parameters("init.orthogonal_", { x, gain: optional(finite, 1), ...generated });

/**
 * Fills a matrix with normal numbers, and sets a fraction of each column to 0. Returns the tensor.
 *
 * Source: J. Martens, "Deep learning via Hessian-free optimization", 2010.
 *
 * @param sparsity the fraction of zeros in each column, rounded up to whole rows
 *
 * @example
 * nn.init.sparse_(layer.weight, 0.9);
 *
 * @throws {ShapeError} if it is not a matrix. @throws {DTypeError} for integers and bools.
 */
export function sparse_<T extends Tensor>(
  tensor: T,
  sparsity: number,
  ...options: Given<GeneratorOptions & { std?: number | undefined }, ["std"]>
): T;
export function sparse_(...values: unknown[]): Tensor {
  const { x, sparsity, std, generator } = sparseParameters(values);
  checkRank("init.sparse_", x, [2, 2]);
  checkFloat("init.sparse_", x.dtype);
  const dtype = accumulationDType(x.dtype);
  return written("init.sparse_", x, () => {
    const numbers = normal(0, std, x.shape, { dtype, generator });
    // Ranking random numbers in each column gives a random permutation of its rows.
    const ranks = argsort(argsort(rand(x.shape, { generator }), 0), 0);
    return where(lt(ranks, Math.ceil(sparsity * x.shape[0])), 0, numbers);
  });
}
const sparseParameters = parameters("init.sparse_", {
  x,
  sparsity: required(aNumber({ holds: (part) => part >= 0 && part <= 1, expected: "a number from 0 to 1" })),
  std: optional(deviation, 0.01),
  ...generated,
});
