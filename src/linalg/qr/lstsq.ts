import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber, choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { empty } from "../../ops/creation/full.ts";
import { abs, add, mul, square, sub } from "../../ops/elementwise/arithmetic.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { div } from "../../ops/elementwise/division.ts";
import { where } from "../../ops/elementwise/where.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { narrow } from "../../ops/view/slice.ts";
import { squeeze, unsqueeze } from "../../ops/view/squeeze.ts";
import { everyExample } from "../../tensor/batched.ts";
import { type DType, isComplex, type RealDType, type RealOf, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import {
  broadcastBatches,
  checkSameDType,
  computeDType,
  dense,
  epsilonOf,
  floatOperand,
  matrixOperand,
  mH,
} from "../matrices.ts";
import { svd } from "../svd/svd.ts";
import { lstsqCpu } from "./lstsq.cpu.ts";
import { lstsqMetal } from "./lstsq.metal.ts";
import { lstsqReference } from "./lstsq.reference.ts";
import type { LstsqAttributes } from "./primitive.ts";

const lstsqPrimitive = definePrimitive<LstsqAttributes>({
  name: "lstsq",
  family: "linalg",
  implementations: { metal: lstsqMetal, cpu: lstsqCpu, reference: lstsqReference },
});

/** The algorithm of {@link lstsq}. */
export type LstsqDriver = "gelsy" | "gels" | "gelsd" | "gelss";

/** Options of {@link lstsq}. */
export interface LstsqOptions {
  /**
   * Singular values below this fraction of the largest count as 0, in drivers that find the rank. Default: the dtype's
   * machine epsilon times max(m, n).
   */
  rcond?: number;
  /**
   * `"gelsy"` finds the rank by a QR factorization, with pivoting if the rank may not be full. `"gelsd"` and `"gelss"`
   * find it by singular values, which they return too. `"gels"` assumes full rank, and throws an error for a matrix
   * with a 0 on the diagonal of its triangular factor. Default `"gelsy"`.
   */
  driver?: LstsqDriver;
}

/** The result of {@link lstsq}. */
export interface LstsqResult<D extends DType = DType> {
  /** […, n, k] */
  readonly solution: Tensor<D>;
  /** […, k]: the squared norms of the columns of A X − B if m > n and every matrix has rank n; else empty. */
  readonly residuals: Tensor<RealOf<D>>;
  /** The rank of each matrix, int64; empty if the driver does not find it. */
  readonly rank: Tensor<"int64">;
  /** […, min(m, n)], if the driver computes them; else empty. No gradient flows through them. */
  readonly singularValues: Tensor<RealOf<D>>;
}

/**
 * Solves least-squares problems: finds the X that minimizes the norm of each column of A X − B. If there are several
 * solutions, as with more columns than rows, it returns the one of least norm. A may have any rank.
 *
 * The gradient is the pseudoinverse's, for the rank that was found. It is correct if small changes of A do not change
 * its rank.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @param b […, m, k], of the same dtype, or […, m] with the batch of `a`; batches broadcast
 *
 * @example
 * const a = tensor([[1, 0], [1, 1], [1, 2]]);
 * linalg.lstsq(a, tensor([[1], [3], [5]])).solution; // float32 [[1], [2]]
 *
 * @throws {LinAlgError} with driver `"gels"` for a matrix without full rank. @throws {ShapeError} if shapes do not
 * match. @throws {DTypeError} if dtypes differ or are not floats.
 */
export function lstsq<D extends DType>(
  a: Tensor<D>,
  b: Tensor<D>,
  ...options: Given<LstsqOptions, ["rcond"]>
): LstsqResult<D>;
export function lstsq(...values: unknown[]): LstsqResult {
  const { a, b, rcond, driver } = lstsqParameters(values);
  const matrix = matrixOperand("lstsq", a);
  checkSameDType("lstsq", a, b);
  const isVector = b.rank === 1 || (b.rank === a.rank - 1 && sameShape(b.shape, a.shape.slice(0, -1)));
  const right = isVector ? unsqueeze(floatOperand("lstsq", b, "b"), -1) : matrixOperand("lstsq", b, "b");
  checkRows(a, b, right);
  const operands = broadcastBatches("lstsq", matrix, right);
  const { solution, rank, info, singularValues } = leastSquares(...operands, {
    driver,
    rcond: rcond ?? defaultRcond(a),
  });
  if (info)
    checkInfo("lstsq", info, (column) => `does not have full rank: column ${column} depends on those before it`, [
      solution,
    ]);
  const residuals = residualsOf(operands, solution, rank);
  const result = (x: Tensor): Tensor => toDType(isVector && x.size > 0 ? squeeze(x, -1) : x, realDType(a.dtype));
  return {
    solution: toDType(isVector ? squeeze(solution, -1) : solution, a.dtype),
    residuals: result(residuals) as Tensor<RealDType>,
    rank: rank ? toDType(rank, "int64") : empty([0], { dtype: "int64" }),
    singularValues: toDType(singularValues ?? empty([0]), realDType(a.dtype)),
  };
}
const lstsqParameters = parameters("lstsq", {
  a: operand(aTensor),
  b: operand(aTensor),
  rcond: optional(aNumber({ holds: (value) => value >= 0, expected: "a number of at least 0" })),
  driver: optional(choice("gelsy", "gels", "gelsd", "gelss"), "gelsy"),
});

/** Machine epsilon times the larger size. */
const defaultRcond = ({ dtype, shape }: Tensor): number =>
  epsilonOf(computeDType(dtype)) * Math.max(lastElement(shape), shape.at(-2)!);

function checkRows(a: Tensor, b: Tensor, right: Tensor): void {
  if (right.shape.at(-2) === a.shape.at(-2)) return;
  throw new ShapeError(
    "lstsq",
    "shapesDiffer",
    `expected b with ${a.shape.at(-2)} rows for a ${a.describe()}, got ${b.describe()}`,
  );
}

/** The residuals if there are more equations than unknowns and every unknown is determined; else empty. */
function residualsOf([a, b]: readonly [Tensor, Tensor], x: Tensor, rank: Tensor | undefined): Tensor {
  const [rows, columns] = tupleOf(a.shape.slice(-2), 2);
  const isDetermined = (): boolean =>
    rank === undefined ||
    everyExample(rank)
      .dataSync()
      .every((each) => Number(each) === columns);
  if (rows <= columns || !isDetermined()) return empty([0], { dtype: realDType(a.dtype) as "float32" });
  const difference = sub(matmul(a, x), b);
  return sum(square(isComplex(difference.dtype) ? abs(difference) : difference), -2);
}

interface Settings {
  readonly driver: LstsqDriver;
  readonly rcond: number;
}

/** A solution, and the information about the matrix that its driver computes. */
interface LeastSquares {
  readonly solution: Tensor;
  readonly rank?: Tensor;
  readonly info?: Tensor<"int32">;
  readonly singularValues?: Tensor;
}

/**
 * Computes X = A⁺ B. The gradient of B is Y = A⁺ᴴ X̄, and that of A is
 * −Y Xᴴ + (B − A X) (A⁺ Y)ᴴ + A⁺ᴴ X (X̄ − Aᴴ Y)ᴴ, which solves systems with A and Aᴴ. Source: G. Golub and V. Pereyra,
 * "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", 1973, 4.12.
 */
function leastSquares(a: Tensor, b: Tensor, settings: Settings): LeastSquares {
  const isByValues = settings.driver === "gelsd" || settings.driver === "gelss";
  const result = noGrad(() => (isByValues ? bySingularValues : byReflections)(a, b, settings));
  const { solution } = result;
  record(
    "lstsq",
    [a, b],
    [solution],
    [a, b, solution],
    ([gradient], [savedA, right, x], needs) => {
      const solve = (matrix: Tensor, y: Tensor): Tensor => leastSquares(matrix, y, settings).solution;
      const [turned, given] = [mH(savedA), gradient];
      const y = solve(turned, given);
      if (!needs[0]) return [null, y];
      const outside = matmul(sub(right, matmul(savedA, x)), mH(solve(savedA, y)));
      const free = matmul(solve(turned, x), mH(sub(given, matmul(turned, y))));
      return [sub(add(outside, free), matmul(y, mH(x))), needs[1] ? y : null];
    },
    "none",
  );
  return result;
}

function byReflections(a: Tensor, b: Tensor, { driver, rcond }: Settings): LeastSquares {
  const batch = a.shape.slice(0, -2);
  const { dtype } = a;
  const isPivoted = driver === "gelsy";
  const [solution, rank, info] = executeMany(
    lstsqPrimitive,
    [dense(a), dense(b)],
    [
      { shape: [...batch, lastElement(a.shape), lastElement(b.shape)], dtype },
      { shape: batch, dtype: "int32" },
      { shape: batch, dtype: "int32" },
    ],
    { isPivoted, rcond },
    "lstsq",
  );
  return isPivoted ? { solution, rank } : { solution, info };
}

/** With A = U diag(σ) Vᵀ: X = V diag(1 / σ) Uᵀ B, where values that count as 0 are left out. */
function bySingularValues(a: Tensor, b: Tensor, { rcond }: Settings): LeastSquares {
  const { u, s, vh } = svd(a, { fullMatrices: false });
  const isKept = s.size === 0 ? gt(s, 0) : gt(s, mul(narrow(s, -1, 0, 1), rcond));
  const projected = matmul(mH(u), b);
  const scaled = where(unsqueeze(isKept, -1), div(projected, unsqueeze(s, -1)), 0);
  return { solution: matmul(mH(vh), scaled), rank: sum(isKept, -1), singularValues: s };
}
