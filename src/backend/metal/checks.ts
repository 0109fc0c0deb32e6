/**
 * What a kernel found wrong with its operands. A check at the call itself would have to wait for the device: instead,
 * every tensor that is computed from the result remembers the check, and who reads one of them gets its error. See
 * `docs/decisions/0005-indices-that-a-device-checks.md`.
 */
import { getOrMake } from "../../core/collections.ts";
import type { DeferredCheck } from "../../tensor/storage.ts";
import type { MetalContext } from "./context.ts";

/** A look at what a kernel left in memory. */
export interface DeviceCheck {
  /** Whether the kernel is done. */
  isDone(): boolean;
  /** Called once, after the kernel is done. @throws what is wrong. */
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
    this.check = null; // first: it may read memory, and whoever reads looks at what is done
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

/** Has `check` run once its kernel is done. What depends on it carries it: see {@link DeferredCheck}. */
export function checkLater(context: MetalContext, check: DeviceCheck): DeferredCheck {
  const own = new PendingCheck(check);
  getOrMake(pending, context, () => [] as PendingCheck[]).push(own);
  return own;
}

/** Runs the checks of kernels that are done, in the order of their calls, while their operands are as they were. */
export function runChecks(context: MetalContext): void {
  const own = pending.get(context);
  while (own?.[0]?.isDone) own.shift()!.outcome();
}
