/** The error of transforms in float32 is at most 1.5 times that of pocketfft, the library of SciPy. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { transformPairs } from "../../src/fft/transform.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { Random } from "../ops/samples.ts";
import { usually } from "../support/repeats.ts";
import { seed } from "../support/some.ts";
import { transformOf } from "./definition.ts";

const path = join(import.meta.dir, "..", "fixtures", "spectra", "pocketfft.json");
const { lengths, errors } = JSON.parse(readFileSync(path, "utf8")) as { lengths: number[]; errors: number[] };

/** A short length has too few errors for an average, so errors are averaged over a batch, as in the fixture. */
const NUMBERS = 4096;
const LEAST = 2; // a length of 1 has no error
/** Elements of a long transform that are computed by the definition. */
const SAMPLE = 32;

/** Approximately normal: the sum of twelve uniform numbers. */
const normal = (random: Random): number =>
  Math.fround(Array.from({ length: 12 }, () => random.next()).reduce((sum, each) => sum + each, -6));

/** The error of a batch of transforms relative to the result, in units of 2⁻²⁴. */
function errorOf(n: number, random: Random): number {
  const rows = Math.max(1, Math.floor(NUMBERS / n));
  const numbers = Float32Array.from({ length: rows * n * 2 }, () => normal(random));
  const x = tensor(numbers, { shape: [rows, n, 2] });
  const got = withStrict(true, () =>
    withBackend("cpu", () => transformPairs("fft", x, { axis: 1, inverse: false, scale: 1 }).dataSync()),
  );
  const which =
    n <= 256 ? Array.from({ length: n }, (_, k) => k) : Array.from({ length: SAMPLE }, () => random.integer(0, n - 1));
  let [error, size] = [0, 0];
  for (let row = 0; row < rows; row++) {
    const expected = transformOf(Float64Array.from(numbers.subarray(row * n * 2, (row + 1) * n * 2)), -1, which);
    for (const [at, k] of which.entries())
      for (const part of [0, 1]) {
        error += ((got[(row * n + k) * 2 + part] as number) - expected[2 * at + part]) ** 2;
        size += expected[2 * at + part] ** 2;
      }
  }
  return Math.sqrt(error / size) * 2 ** 24;
}

test(`errors are small at lengths from 1 to 2,000, and to a million, seed ${seed}`, () => {
  const random = new Random(seed);
  const drawn = new Set(Array.from({ length: 80 }, () => random.integer(0, 1999)));
  const chosen = usually(
    lengths.map((n, at) => [n, errors[at]] as const),
    ([n], at) => drawn.has(at) || (n > 2000 && n < 20_000 && at % 4 === 0),
  );
  const worse = chosen
    .filter(([n]) => n >= LEAST)
    .map(([n, theirs]) => ({ n, ratio: errorOf(n, random) / theirs, theirs }))
    .filter(({ ratio }) => !(ratio <= 1.5));
  expect(worse).toEqual([]);
});
