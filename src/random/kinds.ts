/** Parameter kinds for random numbers. */
import { ArgumentError } from "../core/errors.ts";
import type { Kind } from "../core/parameters.ts";

/** Accepts a 64-bit number: a seed, or the number of calls a generator has served. */
export const seed: Kind<bigint> = {
  expected: "a whole number of at least 0 and below 2^64 (a bigint from 2^53 on)",
  parse(value) {
    if (typeof value !== "bigint" && !Number.isSafeInteger(value)) return undefined;
    const own = BigInt(value as number | bigint);
    return own >= 0n && own < 2n ** 64n ? own : undefined;
  },
  error: [ArgumentError, "invalidSeed"],
};
