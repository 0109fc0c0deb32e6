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

/** Bytes that a backend, which must be there, may allocate in all. No limit of its own means that of all backends. */
export const memoryLimitOf = (backend: BackendName): number =>
  Math.min(limits[backend]() || Infinity, limitOfMemory().count);
