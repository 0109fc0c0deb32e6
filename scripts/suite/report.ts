import { join } from "node:path";
import { environment } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";

/** The folder of a run's reports; a run within another one has a separate folder. */
export const reportFolder = (): string => environment("ORCHARD_REPORT") ?? join(packageRoot, "report");

/**
 * The file to which tests of operations write the unsupported features of backends, one line each: `exp float64 on
 * metal: why`.
 */
export const gapsFile = (): string => join(reportFolder(), "gaps.txt");

/** Maximum bytes of compiled kernels that the suite keeps in the cache. */
export const suiteCacheLimit: number = 2 ** 31;
