/** From which size on one large matrix is faster on metal than on the cpu. Facts only; `route.ts` has the rule. */

/** What metal computes with matrices that are larger than a threadgroup's memory. */
export const largeOperations = ["cholesky", "solveTriangular", "lu", "qr", "eigh", "svd"] as const;
export type LargeOperation = (typeof largeOperations)[number];

export interface LinalgTable {
  /** The rows of one matrix from which metal is faster; null where it never was. */
  readonly metalFrom: Readonly<Record<LargeOperation, number | null>>;
}

/**
 * What holds where `orchard tune` has not measured the machine. It is measured nowhere yet: other projects found that
 * below about 1000 rows a factorisation is faster on the CPU of the same machine.
 */
export const shippedTable: LinalgTable = {
  metalFrom: { cholesky: 1024, solveTriangular: 1024, lu: 1024, qr: 1024, eigh: 1024, svd: 1024 },
};
