/** Matrix products of the cpu backend on memory that is not a tensor's. */
import { matmulCall } from "../../src/ops/matmul/primitive.ts";
import type { DType } from "../../src/tensor/dtype.ts";

/**
 * A matrix, or a batch of them, in a storage. Offset and strides count elements; strides may be 0 (repeated) or
 * negative.
 */
export interface MatmulOperand {
  /** All bytes of the storage. */
  readonly storage: NodeJS.TypedArray;
  readonly offset: number;
  readonly rowStride: number;
  readonly columnStride: number;
  /** One for each axis of the batch. */
  readonly batchStrides: readonly number[];
}

/** `out = alpha a b + beta input` for each index of the batch. */
export interface MatmulCase {
  readonly dtype: DType;
  /** Rows of `a` and `out`, columns of `b` and `out`, and the length of the sums. */
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batchShape: readonly number[];
  readonly a: MatmulOperand;
  readonly b: MatmulOperand;
  readonly out: MatmulOperand;
  readonly input?: MatmulOperand | undefined;
  /** Default 1; `beta` has an effect only with an input. */
  readonly alpha?: number | undefined;
  readonly beta?: number | undefined;
}

/** Computes into `out`. @throws {OrchardError} under the name `operation`. */
export function multiply(given: MatmulCase, operation = "matmul"): void {
  const { dtype, m, n, k, batchShape, a, b, out, input, alpha = 1, beta = 1 } = given;
  const operands = [a, b, input ?? out, out];
  const values = {
    dtype,
    m,
    n,
    k,
    hasInput: input !== undefined,
    alpha,
    beta,
    rowStrides: operands.map(({ rowStride }) => rowStride),
    columnStrides: operands.map(({ columnStride }) => columnStride),
    offsets: operands.map(({ offset }) => offset),
    batch: { shape: batchShape, strides: operands.map(({ batchStrides }) => batchStrides) },
  };
  matmulCall(
    operation,
    values,
    operands.map(({ storage }) => storage),
  );
}
