/**
 * Hooks that run once a gradient is complete. For a model's last layers, that is long before the backward pass ends.
 */
import type { Tensor } from "../tensor/tensor.ts";

const hooks = new WeakMap<Tensor, () => void>();

/**
 * Calls `hook` as soon as a backward pass has accumulated the whole gradient of a leaf into its `grad`, before the pass
 * ends. A leaf has at most one hook. Returns a function that removes it.
 */
export function onArrival(leaf: Tensor, hook: () => void): () => void {
  hooks.set(leaf, hook);
  return () => void (hooks.get(leaf) === hook && hooks.delete(leaf));
}

/** Returns the hook of a leaf. */
export const arrivalHookOf = (leaf: Tensor): (() => void) | undefined => hooks.get(leaf);

/** Called once when a pass ends. @param isComplete whether it ended without an error */
export type PassEnd = (isComplete: boolean) => void;

let ends: Set<PassEnd> | null = null;

/** Calls `end` when the current backward pass ends, only once even if it is added several times. */
export const atEndOfPass = (end: PassEnd): void => void ends?.add(end);

/** Runs a pass, then the functions that were added by {@link atEndOfPass}. */
export function withPassEnds(pass: () => void): void {
  const around = ends;
  const added = new Set<PassEnd>();
  ends = added;
  let isComplete = false;
  try {
    pass();
    isComplete = true;
  } finally {
    ends = around;
    for (const end of added) end(isComplete);
  }
}
