/** Where a large matrix is computed. */
import { isStrict } from "../backend/policy.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { LargeOperation, LinalgTable } from "./crossover.ts";
import { linalgTableInUse } from "./crossover_file.ts";
import { matricesOf } from "./matrices.ts";
import { MAX_SIZE } from "./metal.ts";

/**
 * Why the cpu computes what metal could: matrices that are larger than a threadgroup's memory, and so few that their
 * work is less than that of one from which metal is faster. In strict mode metal computes them.
 *
 * @param columns of the right-hand side, where there is one
 */
export function fasterOnCpu(operation: LargeOperation, a: Tensor, columns?: number): string | undefined {
  const { batch, rows } = matricesOf(a);
  if (rows <= MAX_SIZE || isStrict()) return undefined;
  return isWorthMetal(linalgTableInUse(), operation, batch * rows ** 2 * (columns ?? rows))
    ? undefined
    : `${operation} is faster on cpu for one matrix of this size`;
}

/** Whether so much work is at least that of one matrix from which metal is faster. */
export function isWorthMetal({ metalFrom }: LinalgTable, operation: LargeOperation, work: number): boolean {
  const from = metalFrom[operation];
  return from !== null && work >= from ** 3;
}
