import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { randomBits } from "../../src/ops/random/distribution.ts";
import {
  callKey,
  MULTIPLIERS,
  type PhiloxCounter,
  type PhiloxKey,
  philox,
  ROUNDS,
  WEYL,
} from "../../src/random/philox.ts";
import { on, tested } from "./backends.ts";

const ones = 0xffffffff;

/** `kat_vectors` of Random123 1.14, the lines of philox4x32 with 10 rounds. */
const vectors: readonly { counter: PhiloxCounter; key: PhiloxKey; words: readonly number[] }[] = [
  { counter: [0, 0, 0, 0], key: [0, 0], words: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8] },
  { counter: [ones, ones, ones, ones], key: [ones, ones], words: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd] },
  {
    counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    key: [0xa4093822, 0x299f31d0],
    words: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  },
];

test.each(vectors)("Philox gives the published words of counter $counter", ({ counter, key, words }) => {
  expect(philox(counter, key)).toEqual(words as [number, number, number, number]);
});

describe.each(tested)("the Philox generator on %s", (backend) => {
  test.each(vectors)("the generator gives the published words of counter $counter", ({ counter, key, words }) => {
    expect([...on(backend, () => randomBits([4], { key, counter }).dataSync())]).toEqual([...words]);
  });

  test("counters continue across blocks, also across 32 bits, and an odd end is truncated", () => {
    const key: PhiloxKey = [1, 2];
    const drawn = on(backend, () => randomBits([3, 5003], { key, counter: [0xfffffff0, 6, 7, 8] }).dataSync());
    const expected = Array.from({ length: 3753 }, (_, block) => {
      const low = 0xfffffff0 + block;
      return philox([low >>> 0, low > ones ? 7 : 6, 7, 8], key);
    });
    expect([...drawn]).toEqual(expected.flat().slice(0, 15009));
  });
});

test("the three sources have the same constants", () => {
  const sources = ["kernels/common/philox.h", "native/cpu/random/philox.h"];
  for (const source of sources) {
    const text = readFileSync(join(packageRoot, source), "utf8");
    const numbers = (name: RegExp) => [...(name.exec(text)?.[1] ?? "").matchAll(/0x[0-9a-f]+|\d+/g)].map(Number);
    expect(numbers(/philox_multipliers\[2\] = \{(.*?)\}/i)).toEqual([...MULTIPLIERS]);
    expect(numbers(/philox_weyl\[2\] = \{(.*?)\}/i)).toEqual([...WEYL]);
    expect(numbers(/philox_rounds = (\d+)/i)).toEqual([ROUNDS]);
  }
});

test("every bit of seed and offset affects the key", () => {
  const keys = new Set([callKey(0n, 0n).join()]);
  for (let bit = 0n; bit < 64n; bit++) keys.add(callKey(1n << bit, 0n).join()).add(callKey(0n, 1n << bit).join());
  expect(keys.size).toBe(129);
});
