/**
 * What a kernel found wrong with its operands, told when the host next waits for the device: a check at the call itself would have to wait
 * for it. See `docs/decisions/` on indices.
 */
import { getOrMake } from "../../collections.ts";
import type { MetalContext } from "./context.ts";

/** A look at what a kernel left in memory. */
export interface DeviceCheck {
  /** Whether the kernel is done. */
  isDone(): boolean;
  /** @throws what is wrong. Called once. */
  run(): void;
}

const pending = new WeakMap<MetalContext, DeviceCheck[]>();

/** Has `check` run once its kernel is done and the host reads something. */
export function checkLater(context: MetalContext, check: DeviceCheck): void {
  getOrMake(pending, context, () => [] as DeviceCheck[]).push(check);
}

/** Runs the checks of kernels that are done, in the order of their calls; the first that throws ends it, and is not asked again. */
export function runChecks(context: MetalContext): void {
  const checks = pending.get(context);
  while (checks?.[0]?.isDone()) checks.shift()!.run();
}
