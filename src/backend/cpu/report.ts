import { type CpuStatistics, statisticsFields } from "./abi.ts";
import type { Native } from "./loader.ts";
import { check, readText } from "./status.ts";

/** What the cpu backend computes with. */
export interface CpuInfo {
  /** The instruction set that is used: one of `isas`. */
  readonly isa: string;
  /** Those that the processor can run, the plainest first. */
  readonly isas: readonly string[];
  readonly threads: number;
  /** The library in which LAPACK comes; on macOS it computes products too. Null where there is none. */
  readonly blas: { readonly name: string; readonly path: string } | null;
  /** The LAPACK that the BLAS brings, with its version; null where the dylib's own linear algebra serves. */
  readonly lapack: string | null;
  /** Why libraries were passed over, one sentence each. */
  readonly blasProblems: readonly string[];
}

/** Describes the backend; looks for the BLAS where that was not done yet. */
export const cpuInfo = (native: Native): CpuInfo =>
  JSON.parse(readText((buffer, capacity) => native.orchard_cpu_describe(buffer, capacity)));

/** What the allocator counted since the dylib was loaded. */
export function cpuStatistics(native: Native): CpuStatistics {
  const numbers = new Float64Array(statisticsFields.length);
  check(native, native.orchard_cpu_statistics(numbers), "cpu statistics");
  return Object.fromEntries(statisticsFields.map((field, index) => [field, numbers[index]])) as CpuStatistics;
}
