import { type PhiloxKey, philox } from "./philox.ts";

/**
 * A permutation of 0 … n − 1 in which every element is a function of its index. It needs no sort, and no memory besides
 * the result.
 *
 * A Feistel network of {@link ROUNDS} rounds permutes the numbers of `leftBits + rightBits` bits: in turn, one half is
 * changed by a mix of the other half and a key (Luby and Rackoff, 1988). An index that lands at n or beyond is permuted
 * again until it is below n (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). A network produces only
 * even permutations, so another bit of the key decides whether indices 0 and 1 are swapped first. Even and odd
 * permutations are then equally frequent.
 */
export interface Permutation {
  readonly leftBits: number;
  readonly rightBits: number;
  /** Whether indices 0 and 1 are swapped first. */
  readonly swaps: boolean;
  /** The 32-bit keys, one per round. */
  readonly keys: readonly number[];
}

/** The number of rounds of the Feistel network. */
export const ROUNDS = 24;
const LEAST_BITS = 6;

/** Creates the permutation of n numbers for a key; its round keys are the words of blocks 0 to 6. */
export function permutationOf(n: number, key: PhiloxKey, counter: readonly [number, number] = [0, 0]): Permutation {
  const bits = Math.max(LEAST_BITS, Math.ceil(Math.log2(Math.max(n, 1))));
  const leftBits = bits >> 1;
  const words = Array.from({ length: ROUNDS / 4 + 1 }, (_, block) => philox([block, 0, ...counter], key)).flat();
  const swaps = n > 1 && words[ROUNDS] % 2 === 1;
  return { leftBits, rightBits: bits - leftBits, swaps, keys: words.slice(0, ROUNDS) };
}

/** Returns the number at an index of a permutation of n. */
export function permuted(permutation: Permutation, n: number, index: number): number {
  let at = feistel(permutation, permutation.swaps && index < 2 ? 1 - index : index);
  while (at >= n) at = feistel(permutation, at);
  return at;
}

function feistel({ leftBits, rightBits, keys }: Permutation, index: number): number {
  let left = Math.floor(index / 2 ** rightBits);
  let right = index % 2 ** rightBits;
  for (let round = 0; round < keys.length; round += 2) {
    left = lowest(left ^ mixed(right + keys[round]), leftBits);
    right = lowest(right ^ mixed(left + keys[round + 1]), rightBits);
  }
  return left * 2 ** rightBits + right;
}

const lowest = (word: number, bits: number): number => (word >>> 0) % 2 ** bits;

/** The finalizer of MurmurHash3 (Appleby). */
function mixed(word: number): number {
  let x = word >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}
