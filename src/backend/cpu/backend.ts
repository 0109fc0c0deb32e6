import { allocateHost } from "../../tensor/memory.ts";
import type { Backend } from "../backend.ts";

/** C++ vector kernels and BLAS, on the machine's own processors. */
export const cpuBackend: Backend = {
  name: "cpu",
  unavailable: () => "its dylib is not there yet",
  allocate: (byteLength) => allocateHost(byteLength),
  reach: () => undefined,
};
