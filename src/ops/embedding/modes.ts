/** What becomes of the rows of a bag, in the order of the native kernels. */
export const bagModes = ["sum", "mean", "max"] as const;
/** What {@link embeddingBag} makes of the rows of a bag: their sum, their mean, or the largest of each column. */
export type BagMode = (typeof bagModes)[number];

/** What bags of indices are, and how inputs name them. */
export interface BagAttributes {
  readonly mode: BagMode;
  readonly bags: number;
  /** Indices of each bag; null where bounds say where each begins and the last one ends. */
  readonly length: number | null;
  /** Rows of the table. */
  readonly rows: number;
  /** A row that counts for nothing, or −1. */
  readonly padding: number;
  /** Whether indices have factors. */
  readonly hasFactors: boolean;
}
