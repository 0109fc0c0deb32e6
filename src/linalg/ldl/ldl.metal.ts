import type { MetalImplementation } from "../../backend/backend.ts";

/** There is no kernel, because each step must search a row that the previous step changed. */
export const ldlMetal: MetalImplementation<undefined> = {
  unsupported: () => "no kernel factorizes symmetric indefinite matrices, or solves with their factors",
  run: () => null,
};
