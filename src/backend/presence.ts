/**
 * Warns when the installed package is imported and the dylib of the first backend is missing. In a clone, the first
 * operation warns instead, since dylibs may be built between the import and the first use.
 */
import { packaged } from "../core/packaged.ts";
import { warnOnce } from "../core/warn.ts";
import { cpuLibraryCandidates } from "./cpu/loader.ts";
import { whyMissing } from "./library.ts";
import { libraryCandidates } from "./metal/loader.ts";
import type { BackendName } from "./names.ts";
import { getBackend } from "./policy.ts";

const missing: Readonly<Record<BackendName, () => string | undefined>> = {
  metal: () => whyMissing("ORCHARD_LIBRARY", libraryCandidates()),
  cpu: () => whyMissing("ORCHARD_CPU_LIBRARY", cpuLibraryCandidates()),
  reference: () => undefined,
};

if (packaged) {
  const name = getBackend();
  const why = missing[name]();
  // the same text as in dispatch, so that it is printed only once
  if (why !== undefined) warnOnce(`${name} is unavailable: ${why}`);
}
