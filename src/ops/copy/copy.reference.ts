import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export const copyReference: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ inputs: [input], outputs: [output] }) {
    const { dtype, shape } = output;
    if (isFloat(input.dtype)) store(output, byWayOf(dtype, toNumbers(input, shape)));
    else if (isFloat(dtype)) store(output, byWayOf(dtype, toIntegers(input, shape).map(roundedTo(dtype))));
    else store(output, toIntegers(input, shape));
  },
};

/** Conversions to float16 and bfloat16 round to float32 first, as in PyTorch and in the kernels. */
const byWayOf = (dtype: DType, values: ArrayLike<number>): ArrayLike<number> =>
  dtype === "float16" || dtype === "bfloat16" ? Float32Array.from(values) : values;

/** Returns a conversion to a number after which the final rounding of an integer to a float is correct. */
const roundedTo = (dtype: DType): ((value: bigint) => number) => (dtype === "float64" ? Number : toOddNumber);

/**
 * Converts an integer to a number by rounding to odd: bits that float64 can't hold set the last bit. The number is then
 * halfway between two float32 numbers only if the integer is (Boldo and Melquiond, "Emulation of a FMA and correctly
 * rounded sums", 2008).
 */
function toOddNumber(value: bigint): number {
  if (BigInt.asIntN(54, value) === value) return Number(value);
  const cut = value & ~0xfffn;
  return Number(cut === value ? value : cut | 0x800n);
}
