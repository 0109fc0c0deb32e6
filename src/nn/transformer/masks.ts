/** Converts masks of PyTorch's attention layers: bool, true = excluded, or floats that are added to the scores. */
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { zeros } from "../../ops/creation/full.ts";
import { add } from "../../ops/elementwise/arithmetic.ts";
import { logicalNot, logicalOr } from "../../ops/elementwise/logic.ts";
import { maskedFill } from "../../ops/indexing/masked_fill.ts";
import { pad } from "../../ops/join/pad.ts";
import { unflatten } from "../../ops/view/flatten.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import { hasDType, type Tensor } from "../../tensor/tensor.ts";

/** The sizes and dtype of the scores that a mask applies to. */
export interface MaskSizes {
  readonly batch: number;
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly dtype: FloatDType;
}

/** Returns `attnMask` as [queries, keys] or [batch, heads, queries, keys]. @throws {ShapeError} @throws {DTypeError} */
export function scoresMask(operation: string, mask: Tensor, sizes: MaskSizes): Tensor {
  const { batch, heads, queries, keys } = sizes;
  checkDType(operation, "attnMask", mask, sizes);
  if (sameShape(mask.shape, [queries, keys])) return mask;
  if (sameShape(mask.shape, [batch * heads, queries, keys])) return unflatten(mask, 0, [batch, heads]);
  const shapes = `${formatShape([queries, keys])} or ${formatShape([batch * heads, queries, keys])}`;
  throw new ShapeError(operation, "wrongShape", `expected attnMask to have shape ${shapes}, got ${mask.describe()}`);
}

/** Returns `keyPaddingMask` as [batch, 1, 1, keys]. @throws {ShapeError} @throws {DTypeError} */
export function paddingMask(operation: string, mask: Tensor, sizes: MaskSizes, isBatch: boolean): Tensor {
  checkDType(operation, "keyPaddingMask", mask, sizes);
  const shape = isBatch ? [sizes.batch, sizes.keys] : [sizes.keys];
  if (sameShape(mask.shape, shape)) return unsqueeze(unsqueeze(isBatch ? mask : unsqueeze(mask, 0), 1), 1);
  throw new ShapeError(
    operation,
    "wrongShape",
    `expected keyPaddingMask to have shape ${formatShape(shape)}, got ${mask.describe()}`,
  );
}

function checkDType(operation: string, name: string, mask: Tensor, { dtype }: MaskSizes): void {
  if (mask.dtype === "bool" || mask.dtype === dtype) return;
  throw new DTypeError(operation, "wrongDType", `expected ${name} to be bool or ${dtype}, got ${mask.describe()}`);
}

/** Extends a mask by `count` keys to which every query attends. */
export const withKeys = (mask: Tensor, count: number): Tensor =>
  count === 0 ? mask : pad(mask, [0, count], { value: mask.dtype === "bool" ? false : 0 });

/** Combines masks for `scaledDotProductAttention`: bool with true = attends if all masks are bool, else floats. */
export function mergedMask(masks: readonly Tensor[], dtype: FloatDType): Tensor | undefined {
  const [first, ...others] = masks;
  if (first === undefined) return undefined;
  if (masks.every((mask) => mask.dtype === "bool"))
    return logicalNot(others.reduce((all, mask) => logicalOr(all, mask), first));
  return masks.map((mask) => addedMask(mask, dtype)).reduce((sum, mask) => add(sum, mask));
}

/** Returns floats to add to the scores: −∞ where a bool mask is true. */
export const addedMask = (mask: Tensor, dtype: FloatDType): Tensor =>
  hasDType(mask, "bool") ? maskedFill(zeros(mask.shape, { dtype }), mask, Number.NEGATIVE_INFINITY) : mask;
