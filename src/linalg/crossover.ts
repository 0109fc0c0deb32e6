/** The matrix sizes from which metal is faster than the cpu. This file has only data; `route.ts` applies it. */

/** The operations that metal supports on matrices larger than threadgroup memory. */
export const largeOperations = ["cholesky", "solveTriangular", "lu", "qr", "eigh", "svd"] as const;
export type LargeOperation = (typeof largeOperations)[number];

export interface LinalgTable {
  /** The number of rows from which metal is faster for one matrix; null if it never was. */
  readonly metalFrom: Readonly<Record<LargeOperation, number | null>>;
}

/**
 * The table used until `orchard tune` measures the machine. It has not been measured: other projects found that below
 * about 1000 rows a factorization is faster on the CPU of the same machine.
 */
export const shippedTable: LinalgTable = {
  metalFrom: { cholesky: 1024, solveTriangular: 1024, lu: 1024, qr: 1024, eigh: 1024, svd: 1024 },
};
