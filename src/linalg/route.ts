/** Chooses the backend for large matrices. */
import { isStrict } from "../backend/policy.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { LargeOperation, LinalgTable } from "./crossover.ts";
import { linalgTableInUse } from "./crossover_file.ts";
import { matricesOf } from "./matrices.ts";

/**
 * Returns why the cpu computes matrices that metal supports: they are larger than threadgroup memory, and their total
 * work is less than that of the smallest matrix for which metal is faster. In strict mode metal computes them.
 *
 * @param work n³ for a square matrix of n rows, summed over the batch
 */
export function fasterOnCpu(operation: LargeOperation, isLarge: boolean, work: number): string | undefined {
  if (!isLarge || isStrict() || isWorthMetal(linalgTableInUse(), operation, work)) return undefined;
  return `${operation} is faster on cpu for one matrix of this size`;
}

/** Returns the work of factorizing a batch of matrices of any shape. */
export function factorWork(a: Tensor): number {
  const { batch, rows, columns } = matricesOf(a);
  return batch * rows * columns * Math.min(rows, columns);
}

/** Whether the work is at least that of the smallest matrix for which metal is faster. */
export function isWorthMetal({ metalFrom }: LinalgTable, operation: LargeOperation, work: number): boolean {
  const from = metalFrom[operation];
  return from !== null && work >= from ** 3;
}
