/**
 * Scans along an axis, in the order of the native kernels; h is what is carried along. cumsum: h = h + x[k]. cumprod: h = h · x[k].
 * exclusiveCumprod: the product of the elements before. shift: the element before, 0 at first. recurrence: h = a[k] · h + x[k].
 * shiftedRecurrence: h = a[k − 1] · h + x[k].
 */
export const scanNames = ["cumsum", "cumprod", "exclusiveCumprod", "shift", "recurrence", "shiftedRecurrence"] as const;
export type ScanName = (typeof scanNames)[number];

export interface ScanAttributes {
  readonly axis: number;
  /** Whether it runs from the last element to the first. */
  readonly reverse: boolean;
}
