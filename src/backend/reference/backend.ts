import { ScriptMemory } from "../../tensor/memory.ts";
import type { Backend } from "../backend.ts";

/** Plain TypeScript: always there, and the definition of every operation. It reads float32 and computes in float64. */
export const referenceBackend: Backend = {
  name: "reference",
  unavailable: () => undefined,
  allocate: (byteLength) => new ScriptMemory(byteLength),
  makeResident: () => undefined, // storages show their memory to the CPU themselves
};
