import { encoderOf } from "../../backend/reference/elements.ts";
import { bytesOf, type DType, dtypeFacts } from "../../tensor/dtype.ts";
import type { Scalar } from "../../tensor/promotion.ts";

const bytes = new ArrayBuffer(8);
const bits = new BigUint64Array(bytes);

/** Encodes a value as the bits of one element, with upper bits 0, so that every backend stores the same. */
export function elementBits(dtype: DType, value: Scalar): bigint {
  bits[0] = 0n;
  const { array: ArrayOf } = dtypeFacts[dtype];
  const element = new ArrayOf(bytes, 0, 8 / bytesOf(dtype));
  element[0] = encoderOf(dtype)(value);
  return bits[0];
}
