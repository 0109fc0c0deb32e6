import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber, choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { empty } from "../../ops/creation/full.ts";
import { add, square, sub } from "../../ops/elementwise/arithmetic.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { squeeze, unsqueeze } from "../../ops/view/squeeze.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { broadcastBatches, checkSameDType, computeDType, dense, floatOperand, matrixOperand, mT } from "../matrices.ts";
import { lstsqCpu } from "./lstsq.cpu.ts";
import { lstsqMetal } from "./lstsq.metal.ts";
import { lstsqReference } from "./lstsq.reference.ts";
import type { LstsqAttributes } from "./primitive.ts";

const lstsqPrimitive = definePrimitive<LstsqAttributes>({
  name: "lstsq",
  family: "linalg",
  implementations: { metal: lstsqMetal, cpu: lstsqCpu, reference: lstsqReference },
});

/** How {@link lstsq} solves. */
export type LstsqDriver = "gelsy" | "gels";

/** Options of {@link lstsq}. */
export interface LstsqOptions {
  /**
   * Singular values below this part of the largest are taken for 0, where the rank is found. Default: the dtype's
   * distance from 1 to the next number, times max(m, n).
   */
  rcond?: number;
  /**
   * `"gelsy"` finds the rank, by a QR factorisation with pivoting; `"gels"` takes it to be min(m, n), and refuses
   * matrices in whose triangle it meets a 0. Default `"gelsy"`.
   */
  driver?: LstsqDriver;
}

/** What {@link lstsq} gives. */
export interface LstsqResult<D extends DType = DType> {
  /** […, n, k] */
  readonly solution: Tensor<D>;
  /** […, k]: the squares of the lengths of A X − B, where m > n and every matrix has rank n; else empty. */
  readonly residuals: Tensor<D>;
  /** The rank of each matrix, int64; empty where the driver does not find it. */
  readonly rank: Tensor<"int64">;
}

/**
 * Least squares: the X for which A X − B has the least length, column by column, and of those the one of the least
 * length itself. A may have any rank; with more columns than rows there are many solutions.
 *
 * The gradient is that of the pseudoinverse, at the rank that was found: it is right where the rank of A does not
 * change nearby.
 *
 * @param a […, m, n], of a float dtype; float16 and bfloat16 are computed in float32
 * @param b […, m, k], of the same dtype, or […, m] with the batch of `a`; batches broadcast
 *
 * @example
 * const a = tensor([[1, 0], [1, 1], [1, 2]]);
 * linalg.lstsq(a, tensor([[1], [3], [5]])).solution; // float32 [[1], [2]]
 *
 * @throws {LinAlgError} with driver `"gels"` for a matrix that has not full rank. @throws {ShapeError} where shapes do
 * not fit. @throws {DTypeError} where dtypes differ, or are no floats.
 */
export function lstsq<D extends DType>(
  a: Tensor<D>,
  b: Tensor<D>,
  ...options: Given<LstsqOptions, ["rcond"]>
): LstsqResult<D>;
export function lstsq(...values: unknown[]): LstsqResult {
  const { a, b, rcond, driver } = lstsqParameters(values);
  const own = matrixOperand("lstsq", a);
  checkSameDType("lstsq", a, b);
  const isVector = b.rank === 1 || (b.rank === a.rank - 1 && sameShape(b.shape, a.shape.slice(0, -1)));
  const right = isVector ? unsqueeze(floatOperand("lstsq", b, "b"), -1) : matrixOperand("lstsq", b, "b");
  checkRows(a, b, right);
  const isPivoted = driver === "gelsy";
  const operands = broadcastBatches("lstsq", own, right);
  const { solution, rank, info } = leastSquares(...operands, { isPivoted, rcond: rcond ?? defaultRcond(a) });
  checkInfo("lstsq", info, (column) => `has not full rank: column ${column} depends on those before it`, [solution]);
  const residuals = residualsOf(operands, solution, isPivoted ? rank : undefined);
  const result = (x: Tensor): Tensor => toDType(isVector && x.size > 0 ? squeeze(x, -1) : x, a.dtype);
  return {
    solution: toDType(isVector ? squeeze(solution, -1) : solution, a.dtype),
    residuals: result(residuals),
    rank: isPivoted ? toDType(rank, "int64") : empty([0], { dtype: "int64" }),
  };
}
const lstsqParameters = parameters("lstsq", {
  a: operand(aTensor),
  b: operand(aTensor),
  rcond: optional(aNumber({ holds: (value) => value >= 0, expected: "a number of at least 0" })),
  driver: optional(choice("gelsy", "gels"), "gelsy"),
});

/** The distance from 1 to the next number, times the larger size. */
const defaultRcond = ({ dtype, shape }: Tensor): number =>
  (computeDType(dtype) === "float64" ? 2 ** -52 : 2 ** -23) * Math.max(shape.at(-1)!, shape.at(-2)!);

function checkRows(a: Tensor, b: Tensor, right: Tensor): void {
  if (right.shape.at(-2) === a.shape.at(-2)) return;
  throw new ShapeError(
    "lstsq",
    "shapesDiffer",
    `expected b with ${a.shape.at(-2)} rows for a ${a.describe()}, got ${b.describe()}`,
  );
}

/** Where there are more equations than unknowns, and every unknown is determined; else nothing. */
function residualsOf([a, b]: readonly [Tensor, Tensor], x: Tensor, rank: Tensor | undefined): Tensor {
  const [rows, columns] = a.shape.slice(-2) as [number, number];
  const isDetermined = (): boolean => rank === undefined || rank.dataSync().every((own) => own === columns);
  if (rows <= columns || !isDetermined()) return empty([0], { dtype: a.dtype as "float32" });
  return sum(square(sub(matmul(a, x), b)), -2);
}

interface LeastSquares {
  readonly solution: Tensor;
  readonly rank: Tensor<"int32">;
  readonly info: Tensor<"int32">;
}

/**
 * X = A⁺ B. With Y = A⁺ᵀ X̄, which is the gradient of B, that of A is
 * −Y Xᵀ + (B − A X) (A⁺ Y)ᵀ + A⁺ᵀ X (X̄ − Aᵀ Y)ᵀ, by solutions with A and Aᵀ. Source: G. Golub and V. Pereyra, "The
 * differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", 1973, 4.12.
 */
function leastSquares(a: Tensor, b: Tensor, attributes: LstsqAttributes): LeastSquares {
  const batch = a.shape.slice(0, -2);
  const { dtype } = a;
  const [solution, rank, info] = executeMany(
    lstsqPrimitive,
    [dense(a), dense(b)],
    [
      { shape: [...batch, a.shape.at(-1)!, b.shape.at(-1)!], dtype },
      { shape: batch, dtype: "int32" },
      { shape: batch, dtype: "int32" },
    ],
    attributes,
    "lstsq",
  ) as [Tensor, Tensor<"int32">, Tensor<"int32">];
  record("lstsq", [a, b], [solution], [a, b, solution], ([gradient], [own, right, x], needs) => {
    const solve = (matrix: Tensor, y: Tensor): Tensor => leastSquares(matrix, y, attributes).solution;
    const [turned, given] = [mT(own!), gradient!];
    const y = solve(turned, given);
    if (!needs[0]) return [null, y];
    const outside = matmul(sub(right!, matmul(own!, x!)), mT(solve(own!, y)));
    const free = matmul(solve(turned, x!), mT(sub(given, matmul(turned, y))));
    return [sub(add(outside, free), matmul(y, mT(x!))), needs[1] ? y : null];
  });
  return { solution, rank, info };
}
