/**
 * What a kernel found wrong with its operands, reported when the host next waits for the device: a check at the call
 * itself would have to wait for it. See `docs/decisions/0005-indices-that-a-device-checks.md`.
 */
import { getOrMake } from "../../core/collections.ts";
import type { MetalContext } from "./context.ts";

/** A look at what a kernel left in memory. */
export interface DeviceCheck {
  /** Whether the kernel is done. */
  isDone(): boolean;
  /** @throws what is wrong. Called once. */
  run(): void;
}

interface Pending {
  readonly checks: DeviceCheck[];
  /** A check may read what the host shares with the device, which would run the next one inside it. */
  isRunning: boolean;
}

const pending = new WeakMap<MetalContext, Pending>();

/** Has `check` run once its kernel is done and the host reads something. */
export function checkLater(context: MetalContext, check: DeviceCheck): void {
  getOrMake(pending, context, (): Pending => ({ checks: [], isRunning: false })).checks.push(check);
}

/**
 * Runs the checks of kernels that are done, in the order of their calls; the first that throws ends it, and does not
 * run again.
 */
export function runChecks(context: MetalContext): void {
  const own = pending.get(context);
  if (own === undefined || own.isRunning) return;
  own.isRunning = true;
  try {
    while (own.checks[0]?.isDone()) own.checks.shift()!.run();
  } finally {
    own.isRunning = false;
  }
}
