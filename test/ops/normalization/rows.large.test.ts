/**
 * Rows of results so large that the cpu backend streams them past the caches: channels, rotated rows, gradients of
 * logits, bags of a table and their gradients, with each instruction set.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { batchNorm, crossEntropy, embeddingBag, rope, tensor, toDType } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { usually } from "../../support/repeats.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

/** Fills an array in a loop: `from` with a function takes several times as long. */
function filled<Values extends Float32Array | Float64Array>(values: Values, element: (at: number) => number): Values {
  for (let at = 0; at < values.length; at++) values[at] = element(at);
  return values;
}

const wave = (size: number, step: number) => filled(new Float32Array(size), (at) => Math.sin(at * step));

const known = new Map<string, Float64Array>();
/** The expected elements, computed once for all instruction sets. */
function oracle(name: string, size: number, element: (at: number) => number): (at: number) => number {
  const values = known.get(name) ?? filled(new Float64Array(size), element);
  known.set(name, values);
  return (at) => values[at];
}

/** The index of the first element whose error exceeds the bound; −1 if none does. */
function firstWrong(got: ArrayLike<number>, want: (at: number) => number, bound: number): number {
  for (let at = 0; at < got.length; at++) if (!(Math.abs(got[at] - want(at)) <= bound)) return at;
  return -1;
}

/** The rounding errors of numbers up to 1. */
const roundings: Readonly<Partial<Record<DType, number>>> = { float32: 2 ** -21, bfloat16: 2 ** -8 };
const dtypes = Object.entries(roundings) as [DType, number][];

describe.each(isas)("large rows are accurate with %s", (isa) => {
  /** In a usual run, instruction sets alternate, so each gets half of the cases. */
  const inTurn = <Case>(cases: readonly Case[]) =>
    usually(cases, (_, at) => cases.length === 1 || (at + isas.indexOf(isa)) % 2 === 0);
  const on = <Result>(body: () => Result): Result => {
    configure(native, "isa", isa);
    return withStrict(true, () => withBackend("cpu", body));
  };

  test.each(inTurn(dtypes))(
    "channels of %s with running statistics, which end inside a cache line, are correct",
    (dtype, rounding) => {
      const [batch, channels, inner] = [3, 5, dtype === "float32" ? 280_003 : 560_003];
      const size = batch * channels * inner;
      const x = on(() => toDType(tensor(wave(size, 0.3), { shape: [batch, channels, inner] }), dtype));
      const own = on(() => toDType(x, "float32")).dataSync() as Float32Array;
      const vector = (element: (channel: number) => number) =>
        Float32Array.from({ length: channels }, (_, channel) => element(channel));
      const [mean, variance] = [vector((channel) => channel / 8), vector((channel) => 1 + channel / 4)];
      const [weight, bias] = [vector((channel) => (channel + 1) / 16), vector((channel) => -channel / 16)];
      const want = oracle(`channels ${dtype}`, size, (at) => {
        const channel = Math.floor(at / inner) % channels;
        return ((own[at] - mean[channel]) / Math.sqrt(variance[channel] + 1e-5)) * weight[channel] + bias[channel];
      });
      const [runningMean, runningVar] = [tensor(mean), tensor(variance)];
      const norm = () => batchNorm(x, { runningMean, runningVar, weight: tensor(weight), bias: tensor(bias) });
      const got = on(() => toDType(norm(), "float32")).dataSync() as Float32Array;
      expect(firstWrong(got, want, 2 * rounding)).toBe(-1);
    },
  );

  test.each(inTurn(dtypes))("rotated rows of %s, which end inside a cache line, are correct", (dtype, rounding) => {
    const [heads, positions, size] = [3, 4099, dtype === "float32" ? 342 : 684];
    const x = on(() =>
      toDType(tensor(wave(heads * positions * size, 0.7), { shape: [heads, positions, size] }), dtype),
    );
    const own = on(() => toDType(x, "float32")).dataSync() as Float32Array;
    const half = size / 2;
    const frequencies = filled(new Float64Array(half), (pair) => 10_000 ** (-pair / half));
    const want = oracle(`rope ${dtype}`, own.length, (at) => {
      const [element, position] = [at % size, Math.floor(at / size) % positions];
      const angle = position * frequencies[element % half];
      const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
      return element < half ? own[at] * cosine - own[at + half] * sine : own[at - half] * sine + own[at] * cosine;
    });
    const got = on(() => toDType(rope(x), "float32")).dataSync() as Float32Array;
    expect(firstWrong(got, want, 2 * rounding)).toBe(-1);
  });

  test.each(inTurn(dtypes))("the gradient of logits of %s is correct", (dtype, rounding) => {
    const [slices, classes] = [67, dtype === "float32" ? 65_537 : 131_073];
    const logits = on(() => toDType(tensor(wave(slices * classes, 0.3), { shape: [slices, classes] }), dtype));
    logits.requiresGrad = true;
    const own = on(() => toDType(logits, "float32")).dataSync() as Float32Array;
    const target = (slice: number) => (slice * 7919) % classes;
    const targets = on(() => tensor(Int32Array.from({ length: slices }, (_, slice) => target(slice))));
    const sumOf = oracle(`sums ${dtype}`, slices, (slice) =>
      own.subarray(slice * classes, (slice + 1) * classes).reduce((sum, value) => sum + Math.exp(value), 0),
    );
    const least = Math.min(...Array.from({ length: slices }, (_, slice) => sumOf(slice)));
    const want = oracle(`logits ${dtype}`, own.length, (at) => {
      const slice = Math.floor(at / classes);
      return Math.exp(own[at]) / sumOf(slice) - (at % classes === target(slice) ? 1 : 0);
    });
    const [gradient] = on(() => grad([crossEntropy(logits, targets, { reduction: "sum" })], [logits]));
    const got = on(() => toDType(gradient, "float32")).dataSync() as Float32Array;
    const isTarget = (at: number) => at % classes === target(Math.floor(at / classes));
    const others = (at: number) => (isTarget(at) ? got[at] : want(at));
    const exponent = 2 ** -19; // differences of up to 14 are rounded before the exponential is computed
    expect(firstWrong(got, others, (Math.E / least) * Math.max(rounding, exponent))).toBe(-1);
    for (let slice = 0; slice < slices; slice++) {
      const at = slice * classes + target(slice);
      expect(Math.abs(got[at] - want(at))).toBeLessThanOrEqual(rounding);
    }
  });

  test.each(inTurn(["sum", "mean"] as const))(
    "the %s of the rows of large bags is correct, with padding and without",
    (mode) => {
      // The result has 16.9 MB. Columns are one block and a few, rows are two blocks and three.
      const [rows, width, length, bags] = [97, 1033, 19, 4099];
      const table = wave(rows * width, 0.9);
      const weight = on(() => tensor(table, { shape: [rows, width], requiresGrad: true }));
      const index = (place: number) => (place * 31 + ((place / 7) | 0)) % rows;
      const indices = on(() =>
        tensor(
          Int32Array.from({ length: bags * length }, (_, place) => index(place)),
          { shape: [bags, length] },
        ),
      );
      for (const paddingIndex of [undefined, 5]) {
        const counted = (bag: number) =>
          Array.from({ length }, (_, place) => index(bag * length + place)).filter((row) => row !== paddingIndex);
        const members = Array.from({ length: bags }, (_, bag) => counted(bag));
        const want = oracle(`bags ${mode} ${paddingIndex}`, bags * width, (at) => {
          const own = members[Math.floor(at / width)];
          let sum = 0;
          for (const row of own) sum += table[row * width + (at % width)];
          return mode === "mean" ? sum / own.length : sum;
        });
        const got = on(() => embeddingBag(indices, weight, { mode, paddingIndex })).dataSync() as Float32Array;
        expect(firstWrong(got, want, length * 2 ** -24)).toBe(-1);
      }
    },
  );

  test("the gradient of a table is correct, most of whose rows are in no bag", () => {
    const [rows, width, bags, length] = [4099, 1033, 5, 3];
    const weight = on(() => tensor(wave(rows * width, 0.9), { shape: [rows, width], requiresGrad: true }));
    const named = Int32Array.from({ length: bags * length }, (_, place) => (place * 977) % 11);
    const [gradient] = on(() => {
      const indices = tensor(named, { shape: [bags, length] });
      const cotangent = tensor(wave(bags * width, 0.4), { shape: [bags, width] });
      return grad([embeddingBag(indices, weight, { mode: "sum" })], [weight], { gradOutputs: [cotangent] });
    });
    const incoming = wave(bags * width, 0.4);
    const want = new Float64Array(rows * width);
    named.forEach((row, place) => {
      const bag = Math.floor(place / length);
      for (let column = 0; column < width; column++) want[row * width + column] += incoming[bag * width + column];
    });
    expect(firstWrong(gradient.dataSync() as Float32Array, (at) => want[at], 15 * 2 ** -24)).toBe(-1);
  });
});
