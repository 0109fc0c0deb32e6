/** Legal programs, drawn: both passes of the software device's compiler have to accept them. */
import { expect, test } from "bun:test";
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { Random } from "../../../ops/samples.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { drawProgram, header } from "./program.ts";
import { refusal, versions } from "./refusal.ts";
import { pick } from "./types.ts";

/** Apple's compiler may not know the newest versions. */
const version = (random: Random) => pick(random, metalContext().isSoftware ? versions : versions.slice(0, 1));

const first = seed * 100_000;

test.each(Array.from({ length: repeats({ usual: 6, all: 100 }) }, (_, at) => first + at))(
  "the drawn program %d compiles",
  (at) => {
    const source = drawProgram(at);
    const problem = refusal(source, version(new Random(at)));
    if (problem !== undefined) throw new Error(`${problem}\n${source}`);
  },
);

test("programs have every kind of declaration and statement", () => {
  const marks: Readonly<Record<string, RegExp>> = {
    template: /template <typename T/,
    overloads: /\bo\d+\(half2 x\)/,
    spaces: /\bat\d+\(tile, i & 3\)/,
    functionConstant: /function_constant\(\d\)/,
    collective: /simd_shuffle_xor/,
    atomic: /atomic_fetch_/,
    choice: /switch \(/,
    loop: /while \(/,
    shared: /threadgroup float m\d+\[32\]/,
    operators: /operator\+=/,
    traits: /enable_if_t/,
    sized: /array<T, N>/,
    copies: /packed_float3 p/,
    matrices: /transpose\(m\)/,
    bits: /union U/,
    deduced: /decltype/,
    functors: /Op::init/,
    blocks: /simdgroup_multiply_accumulate/,
    initialized: /threadgroup float n/,
  };
  const all = Array.from({ length: 100 }, (_, at) => drawProgram(first + at)).join("\n");
  expect(Object.entries(marks).filter(([, mark]) => !mark.test(all))).toEqual([]);
});

test("an illegal program is rejected", () => {
  const source = drawProgram(first);
  expect(source).toStartWith(header);
  expect(refusal(source.replace("tile[t & 3] =", "tile = y; tile[t & 3] ="), "3.1")).toContain("error");
});
