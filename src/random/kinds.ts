/** Parameter kinds for random numbers. */
import { ArgumentError } from "../core/errors.ts";
import type { Kind } from "../core/parameters.ts";

/** Accepts a 64-bit number: a seed, or the number of calls a generator has served. */
export const seed: Kind<bigint> = {
  expected: "a whole number of at least 0 and below 2^64 (a bigint from 2^53 on)",
  parse(value) {
    if (typeof value !== "bigint" && !Number.isSafeInteger(value)) return undefined;
    const integer = BigInt(value as number | bigint);
    return integer >= 0n && integer < 2n ** 64n ? integer : undefined;
  },
  error: [ArgumentError, "invalidSeed"],
};
