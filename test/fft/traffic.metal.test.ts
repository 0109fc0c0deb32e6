/** Transforms on metal: the bytes of device memory that they access, and long lines in one and in two steps. */
import { describe, expect, test } from "bun:test";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { transformPairs } from "../../src/fft/transform.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { on } from "../linalg/run.ts";
import { watched } from "../linalg/traffic.ts";
import { Random } from "../ops/samples.ts";
import { usually } from "../support/repeats.ts";
import { distance, transformOf } from "./definition.ts";

/** Lengths and their passes over device memory: one for up to 4096 elements, two for longer lines. */
const lengths = usually(
  [
    ...([16, 343, 1000, 2048, 3125, 4000, 4096] as const).map((length) => ({ length, passes: 1 })),
    ...([4116, 8192, 9261, 16_384, 65_536] as const).map((length) => ({ length, passes: 2 })),
  ],
  ({ length }) => length < 20_000,
);

const drawn = (random: Random, shape: readonly number[]): Tensor => {
  const count = shape.reduce((product, size) => product * size, 1);
  return tensor(
    Float32Array.from({ length: count }, () => random.next() - 0.5),
    { shape },
  );
};

describe.skipIf(whyUnavailable("metal") !== undefined)("Fourier transforms on metal read and write memory once", () => {
  for (const { length, passes } of lengths)
    test(`${length} elements take ${passes === 1 ? "one pass" : "two passes"}`, () => {
      const random = new Random(length);
      const rows = Math.max(1, Math.floor(4096 / length));
      const x = on("metal", true, () => drawn(random, [rows, length, 2]).clone());
      const transform = () => transformPairs("fft", x, { axis: 1, inverse: false, scale: 1 });
      transform(); // compiles the kernel
      const { read, written, dispatches, result } = watched(transform);
      const each = rows * length * 8;
      expect((read + written) / (2 * passes * each)).toBeLessThan(1.1);
      expect(dispatches).toBe(passes);
      const values = Float64Array.from(x.dataSync() as Float32Array).subarray(0, 2 * length);
      const some = Array.from({ length: 64 }, () => random.integer(0, length - 1));
      const expected = transformOf(values, -1, some);
      const got = result.dataSync();
      const pairs = some.flatMap((k) => [Number(got[2 * k]), Number(got[2 * k + 1])]);
      const wanted = some.flatMap((_, at) => [expected[2 * at], expected[2 * at + 1]]);
      expect(distance(pairs, wanted)).toBeLessThan(4e-7);
    });
});
