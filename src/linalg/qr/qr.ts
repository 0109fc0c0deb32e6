import { AutogradError } from "../../autograd/node.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { empty } from "../../ops/creation/full.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { dense, matrixOperand } from "../matrices.ts";
import type { QrAttributes } from "./primitive.ts";
import { qrCpu } from "./qr.cpu.ts";
import { qrMetal } from "./qr.metal.ts";
import { qrReference } from "./qr.reference.ts";
import { qrGradient } from "./reflections.ts";

const qrPrimitive = definePrimitive<QrAttributes>({
  name: "qr",
  family: "linalg",
  implementations: { metal: qrMetal, cpu: qrCpu, reference: qrReference },
});

/** The parts that {@link qr} returns. */
export type QrMode = "reduced" | "complete" | "r";

/** Options of {@link qr}. */
export interface QrOptions {
  /**
   * With k = min(m, n): `"reduced"` returns Q of m × k and R of k × n, `"complete"` Q of m × m and R of m × n, `"r"` R
   * of k × n and an empty Q. Default `"reduced"`.
   */
  mode?: QrMode;
}

/** The factors of A = Q R. */
export interface QrResult<D extends DType = DType> {
  readonly q: Tensor<D>;
  readonly r: Tensor<D>;
}

/**
 * Computes the QR factorization of matrices: A = Q R, where Q has orthonormal columns and R is upper triangular with a
 * diagonal of at least 0. It works for matrices of any rank. Q and R are unique if the first min(m, n) columns are
 * linearly independent.
 *
 * The gradient is undefined (infinite or NaN) if those columns are linearly dependent. Mode `"complete"` has no
 * gradient for more rows than columns, because A does not determine the additional columns of Q.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 *
 * @example
 * linalg.qr(tensor([[3], [4]])); // { q: float32 [[0.6], [0.8]], r: float32 [[5]] }
 *
 * @throws {ShapeError} for a tensor with fewer than two axes. @throws {DTypeError} if the dtype is not a float.
 */
export function qr<D extends DType>(a: Tensor<D>, ...options: Given<QrOptions, ["mode"]>): QrResult<D>;
export function qr(...values: unknown[]): QrResult {
  const { a, mode } = qrParameters(values);
  const { q, r } = factorize("qr", matrixOperand("qr", a), mode);
  return { q: toDType(q, a.dtype), r: toDType(r, a.dtype) };
}
const qrParameters = parameters("qr", {
  a: operand(aTensor),
  mode: optional(choice("reduced", "complete", "r"), "reduced"),
});

/** Factorizes float32 or float64 matrices. Mode `"r"` computes Q too if a gradient is needed, which depends on it. */
function factorize(operation: string, a: Tensor, mode: QrMode): QrResult {
  const [rows, columns] = tupleOf(a.shape.slice(-2), 2);
  const inner = mode === "complete" ? rows : Math.min(rows, columns);
  const width = mode === "r" && !needsGradient(a) ? 0 : inner;
  const { dtype } = a;
  const batch = a.shape.slice(0, -2);
  const [q, r] = executeMany(
    qrPrimitive,
    [dense(a)],
    [
      { shape: [...batch, rows, width], dtype },
      { shape: [...batch, inner, columns], dtype },
    ],
    { width },
    operation,
  );
  record(
    operation,
    [a],
    [q, r],
    [q, r],
    ([ofQ, ofR], [savedQ, savedR]) => {
      if (mode === "complete" && rows > columns) throw noGradient(operation, a);
      return [qrGradient(savedQ, savedR, ofQ ?? null, ofR ?? null)];
    },
    "none",
  );
  return { q: mode === "r" ? empty([0], { dtype: dtype }) : q, r };
}

const noGradient = (operation: string, a: Tensor): AutogradError =>
  new AutogradError(
    operation,
    "notDifferentiable",
    `expected at most as many rows as columns for a gradient with mode "complete", got ${a.describe()}; ` +
      'mode "reduced" supports it',
  );
