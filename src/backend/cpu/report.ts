import { type CpuStatistics, statisticsFields } from "./abi.ts";
import type { Native } from "./loader.ts";
import { check, readText } from "./status.ts";

/** The configuration of the cpu backend. */
export interface CpuInfo {
  /** The instruction set in use, one of `isas`. */
  readonly isa: string;
  /** The instruction sets that the CPU supports, most basic first. */
  readonly isas: readonly string[];
  readonly threads: number;
  /** The BLAS library that provides LAPACK; on macOS it computes products too. Null if there is none. */
  readonly blas: { readonly name: string; readonly path: string } | null;
  /** The BLAS's LAPACK and its version; null if the dylib's built-in linear algebra is used. */
  readonly lapack: string | null;
  /** Why other libraries could not be used, one sentence each. */
  readonly blasProblems: readonly string[];
}

/** Describes the backend. Searches for the BLAS if that was not done yet. */
export const cpuInfo = (native: Native): CpuInfo =>
  JSON.parse(readText((buffer, capacity) => native.orchard_cpu_describe(buffer, capacity)));

/** Returns the allocator's statistics since the dylib was loaded. */
export function cpuStatistics(native: Native): CpuStatistics {
  const numbers = new Float64Array(statisticsFields.length);
  check(native, native.orchard_cpu_statistics(numbers), "cpu statistics");
  return Object.fromEntries(statisticsFields.map((field, index) => [field, numbers[index]])) as CpuStatistics;
}
