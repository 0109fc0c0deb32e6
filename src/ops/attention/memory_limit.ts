import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { cpuStatistics } from "../../backend/cpu/report.ts";
import { metalContext } from "../../backend/metal/context.ts";
import type { BackendName } from "../../backend/names.ts";
import { limitOfMemory } from "../../tensor/reserve.ts";

const limits: Readonly<Record<BackendName, () => number>> = {
  metal: () => metalContext().statistics().memoryLimit,
  cpu: () => cpuStatistics(cpuLibrary().native).memoryLimit,
  reference: () => limitOfMemory().count,
};

/**
 * Returns the most bytes that an available backend may allocate in total. Without a limit for the backend, the limit
 * shared by all backends applies.
 */
export const memoryLimitOf = (backend: BackendName): number =>
  Math.min(limits[backend]() || Infinity, limitOfMemory().count);
