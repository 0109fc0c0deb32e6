/** Packing of what a cache keeps: q8_0 blocks written where they are wanted, without a turn through JavaScript. */
import { cpuCall } from "../backend/cpu/call.ts";
import { array, whole } from "../backend/fields.ts";
import { getBackend } from "../backend/policy.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Rows on three axes, of adjacent elements; the result is dense. */
export const packQ8Call = cpuCall(
  "packQ8",
  { sizes: array(whole, 3), strides: array(whole, 3), columns: whole, offset: whole, outOffset: whole },
  ["x", "output"],
);

/**
 * Writes x [a, b, c, columns] to `out` [a, b, c, bytes], which is dense, as `quantizeGgml` packs it. False, and `out`
 * is undefined, where it is not for the cpu backend, or a value is not finite: `quantizeGgml` names it.
 */
export function packQ8Into(out: Tensor, x: Tensor): boolean {
  if (getBackend() !== "cpu" || x.dtype !== "float32" || x.strides[3] !== 1 || !out.isContiguous) return false;
  const [sizes, strides] = [x.shape.slice(0, 3), x.strides.slice(0, 3)];
  const values = { sizes, strides, columns: x.shape[3]!, offset: x.offset, outOffset: out.offset };
  const status = packQ8Call.status(values, [x, out]);
  out.storage.version++;
  return status === 0;
}
