import { needsGradient, record } from "../../autograd/record.ts";
import type { OutputSpec } from "../../backend/allocation.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { narrow } from "../../ops/view/slice.ts";
import { type DType, type RealOf, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { dense, matrixOperand } from "../matrices.ts";
import { type Factors, svdGradient } from "./gradient.ts";
import { type SvdAttributes, SvdInfo, svdOutputs } from "./primitive.ts";
import { svdCpu } from "./svd.cpu.ts";
import { svdMetal } from "./svd.metal.ts";
import { svdReference } from "./svd.reference.ts";

const svdPrimitive = definePrimitive<SvdAttributes>({
  name: "svd",
  family: "linalg",
  implementations: { metal: svdMetal, cpu: svdCpu, reference: svdReference },
});

/** Options of {@link svd}. */
export interface SvdOptions {
  /** Returns square U and V if true; otherwise they have as many columns as there are singular values. Default true. */
  fullMatrices?: boolean;
}

const svdParameters = parameters("svd", { a: operand(aTensor), fullMatrices: optional(flag, true) });
const svdvalsParameters = parameters("svdvals", { a: operand(aTensor) });

/** The factors of a singular value decomposition, A = U diag(s) Vᵀ. */
export interface SvdResult<D extends DType = DType> {
  /** […, m, m], or […, m, k]. */
  readonly u: Tensor<D>;
  /** […, k], in descending order. */
  readonly s: Tensor<RealOf<D>>;
  /** Vᵀ: […, n, n], or […, k, n]. */
  readonly vh: Tensor<D>;
}

/**
 * Computes the singular value decomposition of matrices: A = U diag(s) Vᵀ with orthonormal columns in U and in V.
 *
 * The signs are chosen so that the element of largest absolute value in each column of U, the first on ties, is
 * positive. Gradients flow through the first min(m, n) columns. Gradients of singular vectors are infinite or NaN if
 * singular values are equal, or if one is 0 in a matrix that is not square. Gradients of singular values are always
 * finite.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns with k = min(m, n): `u` […, m, m], `s` […, k] and `vh` […, n, n], or `u` […, m, k] and `vh` […, k, n] if
 * `fullMatrices` is false; of the dtype of `a`
 *
 * @example
 * const { u, s, vh } = linalg.svd(tensor([[0, 2], [3, 0]])); // s: float32 [3, 2]
 *
 * @throws {LinAlgError} for a matrix with elements that are infinite or NaN, naming it. @throws {ShapeError} for a
 * tensor with fewer than two axes. @throws {DTypeError} if the dtype is not a float.
 */
export function svd<D extends DType>(a: Tensor<D>, ...options: Given<SvdOptions, ["fullMatrices"]>): SvdResult<D>;
export function svd(...values: unknown[]): SvdResult {
  const { a, fullMatrices } = svdParameters(values);
  const { u, s, vh } = factorize("svd", matrixOperand("svd", a), fullMatrices);
  return { u: toDType(u, a.dtype), s: toDType(s, realDType(a.dtype)), vh: toDType(vh, a.dtype) };
}

/**
 * Computes the singular values of matrices, in descending order. Their gradients are always finite.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, min(m, n)], of the dtype of `a`
 *
 * @example
 * linalg.svdvals(tensor([[0, 2], [3, 0]])); // float32 [3, 2]
 *
 * @throws {LinAlgError} for a matrix with elements that are infinite or NaN, naming it. @throws {ShapeError} for a
 * tensor with fewer than two axes. @throws {DTypeError} if the dtype is not a float.
 */
export function svdvals<D extends DType>(a: Tensor<D>): Tensor<RealOf<D>>;
export function svdvals(...values: unknown[]): Tensor {
  const { a } = svdvalsParameters(values);
  return toDType(singularValues("svdvals", matrixOperand("svdvals", a)), realDType(a.dtype));
}

/** @internal Computes the singular values of float32 or float64 matrices. */
export function singularValues(operation: string, a: Tensor): Tensor {
  return needsGradient(a) ? factorize(operation, a, false).s : run(operation, a, { vectors: false, full: false }).s;
}

/** @internal Computes the decomposition of float32 or float64 matrices. */
export function factorize(operation: string, a: Tensor, full: boolean): Factors {
  const { u, s, vh } = run(operation, a, { vectors: true, full }) as Factors;
  const gradient: Parameters<typeof record<[Tensor], [Tensor, Tensor, Tensor], [Tensor, Tensor, Tensor]>>[4] = (
    [ofU, ofS, ofVh],
    [savedU, values, others],
  ) => {
    const count = lastElement(values.shape);
    const part = <T extends Tensor | null>(x: T, axis: number) => (x && full ? narrow(x, axis, 0, count) : x) as T;
    const factors = { u: part(savedU, -1), s: values, vh: part(others, -2) };
    return [svdGradient(operation, factors, { u: part(ofU, -1), s: ofS, vh: part(ofVh, -2) })];
  };
  record(operation, [a], [u, s, vh], [u, s, vh], gradient, "none");
  return { u, s, vh };
}

function run(operation: string, a: Tensor, attributes: SvdAttributes): Factors<Tensor | undefined> & { s: Tensor } {
  const found = svdOutputs(
    executeMany(svdPrimitive, [dense(a)], specsOf(a, attributes), attributes, operation),
    attributes,
  );
  const results = [found.u, found.s, found.vh].filter((result) => result !== undefined);
  checkInfo(operation, found.info as Tensor<"int32">, problem, results);
  return found;
}

function specsOf({ shape, dtype }: Tensor, { vectors, full }: SvdAttributes): OutputSpec[] {
  const batch = shape.slice(0, -2);
  const [rows, columns] = tupleOf(shape.slice(-2), 2);
  const count = Math.min(rows, columns);
  const s = { shape: [...batch, count], dtype: realDType(dtype) };
  const info = { shape: batch, dtype: "int32" } as const;
  if (!vectors) return [s, info];
  const u = { shape: [...batch, rows, full ? rows : count], dtype };
  const vh = { shape: [...batch, full ? columns : count, columns], dtype };
  return [u, s, vh, info];
}

const problem = (code: number): string =>
  code === SvdInfo.notFinite
    ? "has elements that are infinite or NaN"
    : "has singular values to which the iteration did not converge";
