/** Rounds numbers to the dtype of scales and biases. */
import { bfloat16ToNumber, numberToBfloat16 } from "../../tensor/bfloat16.ts";
import type { ScaleDType } from "../formats.ts";

/** Rounds a number to a dtype, to nearest even. */
export type Encode = (value: number) => number;

export const encodeTo: Readonly<Record<ScaleDType, Encode>> = {
  float32: Math.fround,
  float16: Math.f16round,
  bfloat16: (value) => bfloat16ToNumber(numberToBfloat16(value)),
};
