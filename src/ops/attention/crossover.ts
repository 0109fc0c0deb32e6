/**
 * The crossover table of `path: "auto"`: up to which size unfused attention is faster. `route.ts` has the rules that
 * use it.
 */
import type { BackendName } from "../../backend/names.ts";
import type { DType } from "../../tensor/dtype.ts";

/** Upper bounds, inclusive, of the classes of head dimensions (the larger of dim and valueDim). */
export const dimClasses = [32, 64, 128, 256] as const;

/** Lower bounds, inclusive, of the classes of batch · heads. */
export const headClasses = [1, 4, 16] as const;

export const dimClassOf = (dim: number): number => dimClasses.findIndex((most) => dim <= most);
export const headClassOf = (heads: number): number => headClasses.findLastIndex((least) => heads >= least);

/** Classes of dtypes that compute alike: float16 and bfloat16 ("narrow") compute in float32. */
export const dtypeClasses = ["float64", "float32", "narrow"] as const;
export type DTypeClass = (typeof dtypeClasses)[number];

export const dtypeClassOf = (dtype: DType): DTypeClass =>
  dtype === "float64" || dtype === "float32" ? dtype : "narrow";

/** One row for each of {@link dimClasses}, one column for each of {@link headClasses}: see {@link CrossoverTable}. */
export type Crossovers = readonly (readonly number[])[];

export interface CrossoverTable {
  /**
   * The most queries · keys at which forward plus backward is faster unfused; 0: never. Omitted entries were not
   * measured.
   */
  readonly pairs: Readonly<Partial<Record<BackendName, Readonly<Partial<Record<DTypeClass, Crossovers>>>>>>;
  /** A call runs unfused only if its scores fit in this fraction of the backend's memory limit. */
  readonly scoresShare: number;
}

/** The key of a call's entry in the crossover table. */
export interface CrossoverClass {
  readonly backend: BackendName;
  readonly dtype: DType;
  /** The larger of dim and valueDim, at most 256. */
  readonly dim: number;
  /** batch · heads, at least 1. */
  readonly heads: number;
}

/** Returns the most queries · keys at which a class is faster unfused; undefined if it was not measured. */
export function crossoverOf(table: CrossoverTable, { backend, dtype, dim, heads }: CrossoverClass): number | undefined {
  return table.pairs[backend]?.[dtypeClassOf(dtype)]?.[dimClassOf(dim)]?.[headClassOf(heads)];
}

/**
 * An unfused step holds seven arrays of the scores' size at once, so 1/32 leaves three quarters of the memory for
 * everything else.
 */
export const defaultScoresShare: number = 1 / 32;

/** Crossovers of a dtype for which the fused step is faster at every measured size. */
const never: Crossovers = dimClasses.map(() => headClasses.map(() => 0));

/**
 * The table used on machines that `orchard tune` has not measured.
 *
 * cpu: `orchard tune` on two cores of a Xeon with AVX-512 and OpenBLAS. No size was faster unfused in at least three
 * rounds of four. By the median, the unfused step was up to 1.3 times as fast for 8 rows of 2 heads with dims of 128
 * and 256, and 1.1 to 3 times slower elsewhere. metal: not measured, so it always runs fused.
 */
export const shippedTable: CrossoverTable = {
  pairs: { cpu: { float64: never, float32: never, narrow: never } },
  scoresShare: defaultScoresShare,
};
