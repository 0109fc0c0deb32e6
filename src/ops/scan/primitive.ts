/** The primitive of scans along an axis: `out[k]` is computed from a value carried along the elements before k. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";

/**
 * Operations, with h the carried value. cumsum: h = h + x[k]. cumprod: h = h · x[k]. exclusiveCumprod: the product of
 * the elements before k. shift: the element before k, 0 for the first. recurrence: h = a[k] · h + x[k].
 * shiftedRecurrence: h = a[k − 1] · h + x[k].
 */
export const scans = enumeration("Scan", [
  "cumsum",
  "cumprod",
  "exclusiveCumprod",
  "shift",
  "recurrence",
  "shiftedRecurrence",
]);
export type ScanName = NameOf<typeof scans>;

export interface ScanAttributes {
  readonly axis: number;
  /** Whether the scan runs from the last element to the first. */
  readonly reverse: boolean;
}

/** `from` is the dtype of x and a, `to` that of out. Without coefficients, a is x. */
export const scanCall = cpuCall("scan", { operation: oneOf(scans), from: dtype, to: dtype, slices: slices(3) }, [
  "x",
  "a",
  "out",
]);

/** The slices of x, a and out. */
export const scanParameters = slicesFor(3);
