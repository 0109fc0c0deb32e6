/** The backends by name. Each is opened at its first use, so importing the package loads no dylib. */
import { observer } from "../observe/observer.ts";
import type { Backend } from "./backend.ts";
import { cpuBackend } from "./cpu/backend.ts";
import { metalBackend } from "./metal/backend.ts";
import { metalCopies } from "./metal/copies.ts";
import type { BackendName } from "./names.ts";
import { getBackend, orderFrom } from "./policy.ts";
import { referenceBackend } from "./reference/backend.ts";

export const backends: Readonly<Record<BackendName, Backend>> = {
  metal: metalBackend,
  cpu: cpuBackend,
  reference: referenceBackend,
};

observer?.countDeviceCopies(metalCopies);

const looked: Partial<Record<BackendName, { readonly why: string | undefined }>> = {};

/** Returns why a backend can't be used; determined once. */
export function whyUnavailable(name: BackendName): string | undefined {
  looked[name] ??= { why: backends[name].unavailable() };
  return looked[name].why;
}

/** Returns the first available backend in the current order, for composite operations. */
export const firstBackend = (): BackendName =>
  orderFrom[getBackend()].find((name) => whyUnavailable(name) === undefined)!;
