import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";

export const copyReference: Implementation<undefined> = {
  run({ inputs: [input], outputs: [output] }) {
    const { dtype, shape } = output!;
    if (isFloat(input!.dtype)) store(output!, byWayOf(dtype, toNumbers(input!, shape)));
    else if (isFloat(dtype)) store(output!, byWayOf(dtype, toIntegers(input!, shape).map(roundedTo(dtype))));
    else store(output!, toIntegers(input!, shape));
  },
};

/** What becomes a half is rounded to float32 first, as in PyTorch and in the kernels. */
const byWayOf = (dtype: DType, values: ArrayLike<number>): ArrayLike<number> =>
  dtype === "float16" || dtype === "bfloat16" ? Float32Array.from(values) : values;

/** The number with which an integer is rounded to a float once. */
const roundedTo = (dtype: DType): ((value: bigint) => number) => (dtype === "float64" ? Number : toOddNumber);

/**
 * An integer as a number; what float64 has no bits for makes the last bit odd, so that the number lies halfway between
 * two of float32 only where the integer does (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums",
 * 2008).
 */
function toOddNumber(value: bigint): number {
  if (BigInt.asIntN(54, value) === value) return Number(value);
  const cut = value & ~0xfffn;
  return Number(cut === value ? value : cut | 0x800n);
}
