import { ScriptMemory } from "../../tensor/memory.ts";
import type { Backend } from "../backend.ts";

/** The reference backend: plain TypeScript, always available; it defines every operation. Computes in float64. */
export const referenceBackend: Backend = {
  name: "reference",
  unavailable: () => undefined,
  allocate: (byteLength) => new ScriptMemory(byteLength),
  makeResident: () => undefined, // storages give the CPU access to their memory
};
