/**
 * Checks of a kernel's operands on the device. Checking during the call would have to wait for the device. Instead,
 * every tensor computed from the result keeps the pending check, and reading one of them throws its error. See
 * `docs/decisions/0005-indices-that-a-device-checks.md`.
 */
import { getOrMake } from "../../core/collections.ts";
import type { DeferredCheck } from "../../tensor/storage.ts";
import type { MetalContext } from "./context.ts";

/** A check of a kernel's results in memory. */
export interface DeviceCheck {
  /** Whether the kernel is done. */
  isDone(): boolean;
  /** Runs the check, once, after the kernel is done. @throws the error. */
  run(): void;
}

class PendingCheck implements DeferredCheck {
  hasPassed = false;
  private error: unknown;

  constructor(private check: DeviceCheck | null) {}

  get isDone(): boolean {
    return this.check === null || this.check.isDone();
  }

  outcome(): unknown {
    const { check } = this;
    if (check === null) return this.error;
    this.check = null; // remove it first: the check may read memory, and reading runs finished checks
    try {
      check.run();
      this.hasPassed = true;
    } catch (error) {
      this.error = error;
    }
    return this.error;
  }
}

const pending = new WeakMap<MetalContext, PendingCheck[]>();

/** Schedules `check` for when its kernel is done. Dependent results carry it; see {@link DeferredCheck}. */
export function checkLater(context: MetalContext, check: DeviceCheck): DeferredCheck {
  const added = new PendingCheck(check);
  getOrMake(pending, context, () => []).push(added);
  return added;
}

/** Runs the checks of finished kernels in call order, while their operands are unchanged. */
export function runChecks(context: MetalContext): void {
  const waiting = pending.get(context);
  while (waiting?.[0]?.isDone) waiting.shift()!.outcome();
}
