/**
 * Counts the memory traffic of the batched kernels of linear algebra on the software device, relative to the minimum:
 * each matrix read once, and each result written once.
 */
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { bytesOf } from "../../src/tensor/dtype.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

/** The counts of one call. */
export interface Traffic {
  /** Device memory read and written. */
  readonly bytes: number;
  /** The bytes of the operands, or of a triangle of each, and of the results. */
  readonly leastBytes: number;
  readonly dispatches: number;
}

const sizeOf = (tensors: readonly Tensor[]): number =>
  tensors.reduce((sum, { size, dtype }) => sum + size * bytesOf(dtype), 0);
/** The fraction of a square matrix in a triangle with its diagonal. */
const triangleShare = ({ shape }: Tensor): number => (shape.at(-1)! + 1) / (2 * shape.at(-1)!);

/** Runs a call on Metal and counts. */
export function measureTraffic(
  call: (...operands: Tensor[]) => Tensor[],
  operands: readonly Tensor[],
  readsTriangle = false,
): Traffic {
  const context = metalContext();
  const run = (): Tensor[] => withStrict(true, () => withBackend("metal", () => call(...operands)));
  run(); // operands are on the device from here on
  context.wait();
  context.report({ clear: true });
  context.configure("count", true);
  try {
    const results = run();
    context.wait();
    const { dispatches } = context.report({ clear: true });
    return {
      bytes: dispatches.reduce(
        (sum, each) => sum + each.counters.device_bytes_read + each.counters.device_bytes_written,
        0,
      ),
      leastBytes: sizeOf(operands) * (readsTriangle ? triangleShare(operands[0]) : 1) + sizeOf(results),
      dispatches: dispatches.reduce((sum, { count }) => sum + count, 0),
    };
  } finally {
    context.configure("count", false);
  }
}
