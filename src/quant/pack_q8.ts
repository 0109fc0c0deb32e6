/** Packs q8_0 blocks of a key-value cache in native code, straight into their destination. */
import { cpuCall } from "../backend/cpu/call.ts";
import { array, whole } from "../backend/fields.ts";
import { getBackend } from "../backend/policy.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Rows of adjacent elements, over three strided axes; the result is dense. */
export const packQ8Call = cpuCall(
  "packQ8",
  { sizes: array(whole, 3), strides: array(whole, 3), columns: whole, offset: whole, outOffset: whole },
  ["x", "output"],
);

/**
 * Writes x [a, b, c, columns] to `out` [a, b, c, bytes], which is dense, as `quantizeGgml` packs it. Returns false if
 * the call is not for the cpu backend, or if a value is not finite; `out` is undefined then, and `quantizeGgml` reports
 * the value.
 */
export function packQ8Into(out: Tensor, x: Tensor): boolean {
  if (getBackend() !== "cpu" || x.dtype !== "float32" || x.strides[3] !== 1 || !out.isContiguous) return false;
  const [sizes, strides] = [x.shape.slice(0, 3), x.strides.slice(0, 3)];
  const values = { sizes, strides, columns: x.shape[3], offset: x.offset, outOffset: out.offset };
  const status = packQ8Call.status(values, [x, out]);
  out.storage.version++;
  return status === 0;
}
