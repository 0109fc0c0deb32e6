/**
 * Up to which size attention is faster unfused: the table by which `path: "auto"` chooses. Facts only; `route.ts` has
 * the rules.
 */
import type { BackendName } from "../../backend/names.ts";
import type { DType } from "../../tensor/dtype.ts";

/** Head dimensions (the larger of dim and valueDim) up to and with each of these are one class. */
export const dimClasses = [32, 64, 128, 256] as const;

/** Numbers of batch · heads from each of these on, up to the next, are one class. */
export const headClasses = [1, 4, 16] as const;

/** dtypes that compute alike: float16 and bfloat16 are storage for float32. */
export const dtypeClasses = ["float64", "float32", "narrow"] as const;
export type DTypeClass = (typeof dtypeClasses)[number];

export const dtypeClassOf = (dtype: DType): DTypeClass =>
  dtype === "float64" || dtype === "float32" ? dtype : "narrow";

/** A row for each of {@link dimClasses}, a column for each of {@link headClasses}: see {@link CrossoverTable}. */
export type Crossovers = readonly (readonly number[])[];

export interface CrossoverTable {
  /**
   * The most queries · keys at which forward and backward together are faster unfused; 0: they never are. What is left
   * out was not measured.
   */
  readonly pairs: Readonly<Partial<Record<BackendName, Readonly<Partial<Record<DTypeClass, Crossovers>>>>>>;
  /** The scores of one call take at most this share of a backend's memory limit, or they are never made. */
  readonly scoresShare: number;
}

/** A call's class. */
export interface CrossoverClass {
  readonly backend: BackendName;
  readonly dtype: DType;
  /** The larger of dim and valueDim, at most 256. */
  readonly dim: number;
  /** batch · heads, at least 1. */
  readonly heads: number;
}

/** The most queries · keys at which a class is faster unfused; undefined where it was not measured. */
export function crossoverOf(table: CrossoverTable, { backend, dtype, dim, heads }: CrossoverClass): number | undefined {
  const row = dimClasses.findIndex((most) => dim <= most);
  const column = headClasses.findLastIndex((least) => heads >= least);
  return table.pairs[backend]?.[dtypeClassOf(dtype)]?.[row]?.[column];
}

/**
 * An unfused step holds seven arrays of the scores' size at once: this leaves three quarters of the memory to
 * everything else.
 */
export const defaultScoresShare: number = 1 / 32;

/** A kind of calls that is faster fused at every size that was measured. */
const never: Crossovers = dimClasses.map(() => headClasses.map(() => 0));

/**
 * What holds where `orchard tune` has not measured the machine.
 *
 * cpu: `orchard tune` on two cores of a Xeon with AVX-512 and OpenBLAS. In three rounds of four the unfused step was
 * nowhere faster; in the median it was by up to 1.3 for 8 rows of 2 heads with dims of 128 and 256, and took 1.1 to 3
 * times as long elsewhere. metal: left out. It is not measured, so that it is always fused.
 */
export const shippedTable: CrossoverTable = {
  pairs: { cpu: { float64: never, float32: never, narrow: never } },
  scoresShare: defaultScoresShare,
};
