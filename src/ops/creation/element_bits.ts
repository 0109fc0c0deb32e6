import { encoderOf } from "../../backend/reference/elements.ts";
import { bytesOf, type DType, dtypeFacts } from "../../tensor/dtype.ts";
import type { Scalar } from "../../tensor/promotion.ts";

const bytes = new ArrayBuffer(8);
const words = new Uint32Array(bytes);

/** A value as the bits of one element: the lower and the upper 32, so that every backend stores the same. */
export function elementBits(dtype: DType, value: Scalar): [number, number] {
  words.fill(0);
  const { array: ArrayOf } = dtypeFacts[dtype];
  const element = new ArrayOf(bytes, 0, 8 / bytesOf(dtype)) as { [index: number]: number | bigint };
  element[0] = encoderOf(dtype)(value);
  return [words[0]!, words[1]!];
}
