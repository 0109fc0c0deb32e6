import type { MetalImplementation } from "../../backend/backend.ts";

/** Each step waits for a search along a row that the step before has changed. */
export const ldlMetal: MetalImplementation<undefined> = {
  unsupported: () => "there is no kernel that factorises symmetric indefinite matrices, or solves with their factors",
  run: () => null,
};
