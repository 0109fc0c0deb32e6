import { memory } from "../../src/tensor/usage.ts";

/** An object can keep the next one reachable until its finalizer has run. */
const MOST_ROUNDS = 5;

/**
 * Collects unreachable objects, and lets the event loop run their finalizers, until no round changes the memory of
 * tensors. In a process that has run many files, a round takes a quarter of a second.
 */
export async function collectGarbage(): Promise<void> {
  let before = "";
  for (let round = 0; round < MOST_ROUNDS; round++) {
    Bun.gc(true);
    await Bun.sleep(2);
    const now = JSON.stringify(memory());
    if (now === before) return;
    before = now;
  }
}
