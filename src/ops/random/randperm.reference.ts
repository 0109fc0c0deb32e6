import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import type { PermutationAttributes } from "./randperm.ts";

export const permutationReference: Implementation<PermutationAttributes> = {
  run({ outputs: [output], attributes }) {
    const count = output!.size;
    const walk = (place: number): number => {
      let at = feistel(attributes, attributes.swaps && place < 2 ? 1 - place : place);
      while (at >= count) at = feistel(attributes, at);
      return at;
    };
    store(
      output!,
      Array.from({ length: count }, (_, place) => BigInt(walk(place))),
    );
  },
};

function feistel({ leftBits, rightBits, keys }: PermutationAttributes, place: number): number {
  let left = Math.floor(place / 2 ** rightBits);
  let right = place % 2 ** rightBits;
  for (let round = 0; round < keys.length; round += 2) {
    left = lowest(left ^ mixed(right + keys[round]!), leftBits);
    right = lowest(right ^ mixed(left + keys[round + 1]!), rightBits);
  }
  return left * 2 ** rightBits + right;
}

const lowest = (word: number, bits: number): number => (word >>> 0) % 2 ** bits;

/** The finaliser of MurmurHash3 (Appleby). */
function mixed(word: number): number {
  let x = word >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}
