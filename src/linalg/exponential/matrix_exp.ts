import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { lastElement } from "../../core/collections.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { clone } from "../../ops/copy/copy.ts";
import { zerosLike } from "../../ops/creation/full.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { abs, mul } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { div } from "../../ops/elementwise/division.ts";
import { logicalAnd } from "../../ops/elementwise/logic.ts";
import { isfinite } from "../../ops/elementwise/predicates.ts";
import { where } from "../../ops/elementwise/where.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { cat } from "../../ops/join/cat.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow } from "../../ops/view/slice.ts";
import { allExamples, batched, batchOf } from "../../tensor/batched.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { matricesOf, mT, squareOperand } from "../matrices.ts";
import { isSmall, smallExponential } from "./small.cpu.ts";
import { type Degree, planOf, taylor } from "./taylor.ts";

/**
 * Computes the exponential of square matrices, Σₖ Aᵏ / k!, by scaling and squaring with a Taylor polynomial. The norm
 * of each matrix selects a degree from 1 to 18, so this waits for the norms. The result for a matrix does not depend on
 * the others in its batch.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n, n]; NaN for a matrix with NaN or infinity
 *
 * @example
 * linalg.matrixExp(tensor([[0, 1], [0, 0]])); // float32 [[1, 1], [0, 1]]
 *
 * @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function matrixExp<D extends DType>(a: Tensor<D>): Tensor<D>;
export function matrixExp(...values: unknown[]): Tensor {
  const { a } = matrixExpParameters(values);
  return tidy(() => toDType(exponential(squareOperand("matrixExp", a)), a.dtype));
}
const matrixExpParameters = parameters("matrixExp", { a: operand(aTensor) });

/**
 * The gradient is the derivative at Aᵀ in the direction Ā: the upper right block of exp([[Aᵀ, Ā], [0, Aᵀ]]). That is an
 * exponential too, so it has gradients of every order. It is linear in Ā, which is first scaled to norm 1: a large norm
 * would cost more squarings, which lose precision.
 * Source: N. Higham, "Functions of Matrices", 2008, theorem 3.6.
 */
function exponential(a: Tensor): Tensor {
  const output = noGrad(() => ofBatch(a));
  record("matrixExp", [a], [output], [a], ([gradient], [saved]) => {
    if (a.size === 0) return [gradient];
    const size = lastElement(saved.shape);
    const [transposed, scale] = [mT(saved), noGrad(() => usableNorms(gradient))];
    const upper = cat([transposed, div(gradient, scale)], -1);
    const block = cat([upper, cat([zerosLike(transposed), transposed], -1)], -2);
    return [mul(narrow(narrow(exponential(block), -2, 0, size), -1, size, size), scale)];
  });
  return output;
}

/** Returns ‖A‖₁ of each matrix. The last two axes are kept with size 1. */
const oneNorms = (a: Tensor): Tensor => amax(sum(abs(a), { dim: -2, keepdim: true }), { dim: -1, keepdim: true });

/** Returns the norms as divisors, with 1 in place of norms that are 0 or not finite. */
function usableNorms(a: Tensor): Tensor {
  const norms = oneNorms(a);
  return where(logicalAnd(gt(norms, 0), isfinite(norms)), norms, 1);
}

function ofBatch(a: Tensor): Tensor {
  const examples = batchOf(a); // inside vmap, the norms of all examples are needed, so the examples join the batch
  if (examples) return batched(ofBatch(allExamples(a)), 0, examples.level);
  const { batch, rows } = matricesOf(a);
  if (a.size === 0) return clone(a);
  if (isSmall(a)) return smallExponential(a);
  const all = reshape(a, [batch, rows, rows]);
  const plans = Array.from(oneNorms(all).dataSync() as ArrayLike<number>, (norm) => planOf(norm, a.dtype));
  const order = [...plans.keys()].sort(
    (i, j) => plans[i].degree - plans[j].degree || plans[i].squarings - plans[j].squarings || i - j,
  );
  const isSorted = order.every((from, at) => from === at);
  const sorted = isSorted ? all : indexSelect(all, 0, indices(order));
  const result = ofSorted(
    sorted,
    order.map((from) => plans[from]),
  );
  const inverse = new Array<number>(batch);
  for (const [at, from] of order.entries()) inverse[from] = at;
  return reshape(isSorted ? result : indexSelect(result, 0, indices(inverse)), a.shape);
}

const indices = (values: readonly number[]): Tensor<"int64"> => tensor(values.map(BigInt), { dtype: "int64" });

interface Plan {
  readonly degree: Degree;
  readonly squarings: number;
}

/** Expects the matrices sorted by degree, then by number of squarings. */
function ofSorted(all: Tensor, plans: readonly Plan[]): Tensor {
  const parts: Tensor[] = [];
  for (let start = 0; start < plans.length; ) {
    const { degree } = plans[start];
    const run = plans.slice(start).filter((plan) => plan.degree === degree);
    const matrices = narrow(all, 0, start, run.length);
    parts.push(...squared(taylor(degree, scaledDown(matrices, run)), run));
    start += run.length;
  }
  return joined(parts);
}

const joined = (parts: readonly Tensor[]): Tensor => (parts.length === 1 ? parts[0] : cat(parts, 0));

/** A / 2ˢ, in two steps, because 2⁻ˢ may underflow. */
function scaledDown(a: Tensor, plans: readonly Plan[]): Tensor {
  if (plans.every(({ squarings }) => squarings === 0)) return a;
  const powers = (half: (s: number) => number): Tensor =>
    tensor(
      plans.map(({ squarings }) => 2 ** -half(squarings)),
      { dtype: a.dtype, shape: [plans.length, 1, 1] },
    );
  return mul(
    mul(
      a,
      powers((s) => Math.floor(s / 2)),
    ),
    powers((s) => Math.ceil(s / 2)),
  );
}

/** Squares each matrix s times; after each step, finished matrices are removed from the front. */
function squared(a: Tensor, plans: readonly Plan[]): Tensor[] {
  const done: Tensor[] = [];
  let [rest, left] = [a, plans.length];
  for (let step = 0; left > 0; step++) {
    const finished = plans.filter(({ squarings }) => squarings === step).length;
    if (finished > 0) done.push(narrow(rest, 0, 0, finished));
    left -= finished;
    if (left === 0) break;
    const next = narrow(rest, 0, finished, left);
    rest = matmul(next, next);
  }
  return done;
}
