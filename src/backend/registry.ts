/** The backends by name, each opened at its first use: importing the package loads no dylib. */
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

/** Why a backend can't be used; looked at once. */
export function whyUnavailable(name: BackendName): string | undefined {
  looked[name] ??= { why: backends[name].unavailable() };
  return looked[name].why;
}

/** The backend that runs a call which nothing else is said of: for operations that another one is made of. */
export const firstBackend = (): BackendName =>
  orderFrom[getBackend()].find((name) => whyUnavailable(name) === undefined)!;
