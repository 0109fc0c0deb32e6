import { join } from "node:path";
import { environment } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";

/** Where a run of the suite leaves what its parts report; a run inside another one has a folder of its own. */
export const reportFolder = (): string => environment("ORCHARD_REPORT") ?? join(packageRoot, "report");

/** What the tests of operations write: one line for each thing that a backend lacks, `exp float64 on metal: why`. */
export const gapsFile = (): string => join(reportFolder(), "gaps.txt");

/** Bytes of compiled kernels that the suite may keep in the cache. */
export const suiteCacheLimit: number = 2 ** 31;
