import { AutogradError } from "../../autograd/node.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
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

/** Which parts {@link qr} gives. */
export type QrMode = "reduced" | "complete" | "r";

/** Options of {@link qr}. */
export interface QrOptions {
  /**
   * With k = min(m, n): `"reduced"` gives Q of m x k and R of k x n, `"complete"` Q of m x m and R of m x n, `"r"` R of
   * k x n and an empty Q. Default `"reduced"`.
   */
  mode?: QrMode;
}

/** A QR factorisation: A = Q R. */
export interface QrResult<D extends DType = DType> {
  readonly q: Tensor<D>;
  readonly r: Tensor<D>;
}

/**
 * The QR factorisation of matrices: A = Q R, with orthonormal columns of Q, and R upper triangular with a diagonal that
 * is at least 0. Q is orthonormal and A = Q R for matrices of any rank; where the first min(m, n) columns are linearly
 * independent, they are the only such Q and R.
 *
 * The gradient is undefined (infinite or NaN) where those columns are linearly dependent. With mode `"complete"` there
 * is none for more rows than columns: the additional columns of Q are not determined by A.
 *
 * @param a […, m, n], of a float dtype; float16 and bfloat16 are computed in float32
 *
 * @example
 * linalg.qr(tensor([[3], [4]])); // { q: float32 [[0.6], [0.8]], r: float32 [[5]] }
 *
 * @throws {ShapeError} for a tensor of fewer than two axes. @throws {DTypeError} for a dtype that is no float.
 */
export function qr<D extends DType>(a: Tensor<D>, ...options: Given<QrOptions, ["mode"]>): QrResult<D>;
export function qr(...values: unknown[]): QrResult {
  const { a, mode } = qrParameters(values);
  const { q, r } = factorise("qr", matrixOperand("qr", a), mode);
  return { q: toDType(q, a.dtype), r: toDType(r, a.dtype) };
}
const qrParameters = parameters("qr", {
  a: operand(aTensor),
  mode: optional(choice("reduced", "complete", "r"), "reduced"),
});

/** Q and R of float32 or float64 matrices. For its gradient, R alone needs Q. */
function factorise(operation: string, a: Tensor, mode: QrMode): QrResult {
  const [rows, columns] = a.shape.slice(-2) as [number, number];
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
  ) as [Tensor, Tensor];
  record(operation, [a], [q, r], [q, r], ([ofQ, ofR], [ownQ, ownR]) => {
    if (mode === "complete" && rows > columns) throw noGradient(operation, a);
    return [qrGradient(ownQ!, ownR!, ofQ ?? null, ofR ?? null)];
  });
  return { q: mode === "r" ? empty([0], { dtype: dtype as "float32" }) : q, r };
}

const noGradient = (operation: string, a: Tensor): AutogradError =>
  new AutogradError(
    operation,
    "notDifferentiable",
    `expected at most as many rows as columns for a gradient with mode "complete", got ${a.describe()}; ` +
      'mode "reduced" has one',
  );
