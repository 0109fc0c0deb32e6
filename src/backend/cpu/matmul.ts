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
  block[0] = DTypeCode[dtype];
  block[1] = m;
  block[2] = n;
  block[3] = k;
  block[4] = input ? 1 : 0;
  block[5] = alpha;
  block[6] = beta;
  block[7] = batchShape.length;
  let end = writeNumbers(batchShape, 8);
  end = writeOperand(out, writeOperand(b, writeOperand(a, end)));
  if (input) writeOperand(input, end);
  const status = native.orchard_cpu_matmul(block, a.storage, b.storage, (input ?? a).storage, out.storage);
  if (status !== 0) check(native, status, operation);
}

function writeOperand({ offset, rowStride, columnStride, batchStrides }: MatmulOperand, start: number): number {
  block[start] = offset;
  block[start + 1] = rowStride;
  block[start + 2] = columnStride;
  return writeNumbers(batchStrides, start + 3);
}

function writeNumbers(numbers: readonly number[], start: number): number {
  for (let index = 0; index < numbers.length; index++) block[start + index] = numbers[index]!;
  return start + numbers.length;
}
