import { DTypeCode, type DTypeName } from "./abi.ts";
import type { Native } from "./loader.ts";
import { check } from "./status.ts";

/** A matrix, or a batch of them, in a storage. Offset and strides count elements; strides may be 0 (repeated) or negative. */
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
export interface MatmulCall {
  readonly dtype: DTypeName;
  /** Rows of `a` and `out`, columns of `b` and `out`, and the length of the sums. */
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** At most 6 axes. */
  readonly batchShape: readonly number[];
  readonly a: MatmulOperand;
  readonly b: MatmulOperand;
  readonly out: MatmulOperand;
  readonly input?: MatmulOperand | undefined;
  /** 1 where it is left out; `beta` then counts only with an input. */
  readonly alpha?: number | undefined;
  readonly beta?: number | undefined;
}

const longestBlock = 8 + 6 + 4 * (3 + 6);
const block = new Float64Array(longestBlock);

/**
 * Multiplies matrices in the cpu backend.
 *
 * @param operation who asks, for errors
 * @throws {BackendError} `unsupported` for bool.
 * @throws {OutOfMemoryError} where there is no memory for packed operands.
 */
export function cpuMatmul(native: Native, call: MatmulCall, operation: string): void {
  const { dtype, m, n, k, batchShape, a, b, out, input, alpha = 1, beta = 1 } = call;
  const head = [DTypeCode[dtype], m, n, k, input ? 1 : 0, alpha, beta, batchShape.length, ...batchShape];
  let end = writeNumbers(head, 0);
  for (const operand of input ? [a, b, out, input] : [a, b, out])
    end = writeNumbers([operand.offset, operand.rowStride, operand.columnStride, ...operand.batchStrides], end);
  const status = native.orchard_cpu_matmul(block, a.storage, b.storage, (input ?? a).storage, out.storage);
  check(native, status, operation);
}

function writeNumbers(numbers: readonly number[], start: number): number {
  for (const [index, value] of numbers.entries()) block[start + index] = value;
  return start + numbers.length;
}
