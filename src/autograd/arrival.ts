/** What happens when a gradient is complete: long before the backward pass is over, for the last layers of a model. */
import type { Tensor } from "../tensor/tensor.ts";

const hooks = new WeakMap<Tensor, () => void>();

/**
 * Calls `hook` whenever a backward pass has summed up the whole gradient of a leaf into its `grad`, at once and not at
 * the end of the pass. A leaf has one hook at most. Returns what removes it.
 */
export function onArrival(leaf: Tensor, hook: () => void): () => void {
  hooks.set(leaf, hook);
  return () => void (hooks.get(leaf) === hook && hooks.delete(leaf));
}

/** The hook of a leaf. */
export const arrivalHookOf = (leaf: Tensor): (() => void) | undefined => hooks.get(leaf);

/** Called once when a pass is over. @param isComplete whether it came to its end, and threw nothing */
export type PassEnd = (isComplete: boolean) => void;

let ends: Set<PassEnd> | null = null;

/** Within a backward pass: calls `end` when it is over, once however often it is given. */
export const atEndOfPass = (end: PassEnd): void => void ends?.add(end);

/** Runs a pass, then what was given to {@link atEndOfPass} meanwhile. */
export function withPassEnds(pass: () => void): void {
  const around = ends;
  const own = new Set<PassEnd>();
  ends = own;
  let isComplete = false;
  try {
    pass();
    isComplete = true;
  } finally {
    ends = around;
    for (const end of own) end(isComplete);
  }
}
