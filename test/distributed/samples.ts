/** The data that ranks exchange in tests: elements computed from the rank. */
import { type DType, dtypes } from "../../src/tensor/dtype.ts";

/** The elements of a rank: whole numbers that every dtype can hold, different for each rank and index. */
export const elementsOf = (rank: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => ((rank * 7 + at * 3) % 11) + (at % 2));

/** Returns numbers as the dtype holds them: 0 or 1 for bool. */
export const asDType = (dtype: DType, values: readonly number[]): number[] =>
  dtype === "bool" ? values.map((value) => value % 2) : [...values];

export const SIZE = 24;

export { dtypes };
