import { read } from "bun:ffi";
import { OrchardError } from "../../core/errors.ts";
import { observer } from "../../observe/observer.ts";
import type { DeferredCheck, Storage } from "../../tensor/storage.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Backend } from "../backend.ts";
import { whyMissing } from "../library.ts";
import { coversStorage } from "../snapshot.ts";
import { type MetalContext, metalContext } from "./context.ts";
import { noteEncoded, waitForReaders, waitForUsers } from "./journal.ts";
import { libraryCandidates } from "./loader.ts";
import { MetalMemory } from "./memory.ts";

const NO_CHECKS: readonly DeferredCheck[] = [];
/** The tickets of an operation without launches. */
const NOTHING = { first: 0, last: 0 };

/** The GPU on Apple Silicon; on Linux the software device. */
export const metalBackend: Backend = {
  name: "metal",

  unavailable() {
    const missing = whyMissing("ORCHARD_LIBRARY", libraryCandidates());
    if (missing !== undefined) return missing;
    try {
      metalContext();
      return undefined;
    } catch (error) {
      if (error instanceof OrchardError) return error.message;
      throw error;
    }
  },

  allocate: (byteLength, hint) => new MetalMemory(metalContext(), byteLength, hint),

  makeResident({ storage }: Tensor) {
    if (storage.memory.device === "metal") return;
    const memory = new MetalMemory(metalContext(), storage.memory.byteLength, { storage: "shared" });
    new Uint8Array(memory.contents()).set(new Uint8Array(storage.memory.hostBuffer(), 0, storage.memory.byteLength));
    storage.moveTo(memory);
    memory.moveToHint();
  },

  beforeChange: (storage) => waitForReaders(metalContext(), storage),
  beforeSwap: (storage) => waitForUsers(metalContext(), storage),

  ran({ inputs, outputs }, launched, recompute) {
    rememberChecks(inputs, outputs, launched?.checks);
    const context = metalContext();
    const tickets = launched ? { first: launched.first, last: launched.last } : NOTHING;
    const reads = inputs.map(({ storage }) => storage);
    const writes = outputs.map(({ storage }) => storage);
    if (observer) observer.encoded(tickets, completionOf(context));
    noteEncoded(context, { tickets, reads, writes, recompute: () => recomputeOnHost(writes, recompute) });
  },
};

/**
 * Attaches pending checks to results. A result is valid once the checks of its operands and of the operation pass; a
 * partly written storage also keeps its previous checks.
 */
function rememberChecks(
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  deferred: readonly DeferredCheck[] = NO_CHECKS,
): void {
  const hasChecks = ({ storage }: Tensor) => storage.checks.length > 0;
  if (deferred.length === 0 && !inputs.some(hasChecks) && !outputs.some(hasChecks)) return; // the usual case
  const all = [...deferred];
  for (const { storage } of inputs)
    for (const check of storage.checks) if (!check.hasPassed && !all.includes(check)) all.push(check);
  for (const output of outputs)
    if (all.length > 0 || output.storage.checks.length > 0) output.storage.dependOn(all, coversStorage(output));
}

const completionOf = (context: MetalContext) => () =>
  context.isClosed ? undefined : { completed: Number(read.u64(context.counterAddress, 0)) };

/** Moves outputs to host memory, including other contents of their storages, and computes into them. */
function recomputeOnHost(outputs: readonly Storage[], recompute: () => void): void {
  for (const storage of outputs) {
    const { memory } = storage;
    if (!(memory instanceof MetalMemory)) continue;
    storage.moveTo(memory.toHost());
  }
  recompute();
}
