/** Convolutions and spectrograms by their definitions, and mel filters compared with those of transformers. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OrchardError } from "../../src/core/errors.ts";
import { abs, fft, gradcheck, signal, square, tensor, viewAsReal, withBackend, withStrict } from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { distance, transformOf } from "../fft/definition.ts";
import { places } from "../linalg/run.ts";
import { makeBlock, Random } from "../ops/samples.ts";
import { errorOf } from "../support/errors.ts";
import { repeats } from "../support/repeats.ts";
import { seed } from "../support/some.ts";

const modes = ["full", "same", "valid"] as const;
type Mode = (typeof modes)[number];

/** z[k] = Σ x[j] y[k − j], and the part that a mode keeps. */
function convolution(x: readonly number[], y: readonly number[], mode: Mode): number[] {
  const [n, m] = [x.length, y.length];
  const whole = Array.from({ length: n + m - 1 }, (_, k) => {
    let sum = 0;
    for (let j = Math.max(0, k - m + 1); j <= Math.min(k, n - 1); j++) sum += x[j] * y[k - j];
    return sum;
  });
  if (mode === "full") return whole;
  const length = mode === "same" ? n : Math.max(n, m) - Math.min(n, m) + 1;
  const start = Math.floor((whole.length - length) / 2);
  return whole.slice(start, start + length);
}

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>);

describe.each(places)("convolutions and correlations of signals, $backend $dtype", ({ backend, dtype }) => {
  test(`drawn convolutions and correlations equal the definition, seed ${seed}`, () => {
    const random = new Random(seed);
    for (let at = 0; at < repeats({ usual: 20, all: 200 }); at++) {
      const [n, m, rows] = [random.integer(1, 150), random.integer(1, 150), random.integer(1, 3)];
      const x = makeBlock({ shape: [rows, n] }, dtype, random);
      const y = makeBlock({ shape: [m] }, dtype, random);
      const mode = modes[at % 3];
      const method = (["auto", "direct", "fft"] as const)[random.integer(0, 2)];
      const [a, b] = [x, y].map(({ values, shape }) => tensor(values, { dtype, shape }) as Tensor) as [Tensor, Tensor];
      for (const name of ["convolve", "correlate"] as const) {
        const got = withStrict(true, () => withBackend(backend, () => numbersOf(signal[name](a, b, { mode, method }))));
        const turned = name === "convolve" ? y.values : y.values.toReversed();
        const want = Array.from({ length: rows }, (_, row) =>
          convolution(x.values.slice(row * n, (row + 1) * n), turned, mode),
        ).flat();
        const error = distance(got, want);
        // roundings relative to the largest sums; of few elements the result may cancel
        const allowed = (dtype === "float32" ? 2e-6 : 4e-15) * (mode === "full" ? 1 : 100);
        if (!(error < allowed))
          expect([{ n, m, mode, method, name }, error]).toEqual([{ n, m, mode, method, name }, 0]);
      }
    }
  });
});

test("convolutions of complex numbers and of broadcast batches are right, with gradients", () => {
  const random = new Random(seed);
  const leaf = (...shape: number[]) =>
    tensor(makeBlock({ shape }, "float64", random).values, { dtype: "float64", shape, requiresGrad: true }) as Tensor;
  gradcheck((x, y) => signal.convolve(x, y, { mode: "same" }), [leaf(2, 1, 9), leaf(3, 4)]);
  gradcheck((x, y) => signal.correlate(x, y, { method: "fft" }), [leaf(9), leaf(4)]);
  gradcheck((x) => signal.spectrogram(x, { nFft: 6, hopLength: 2 }), [leaf(20)]);
  gradcheck((x) => viewAsReal(signal.convolve(fft.rfft(x), fft.rfft(x))), [leaf(7)]);
  const direct = 'method "direct" supports real signals and a second signal of one axis';
  expect(() => signal.convolve(leaf(9), leaf(2, 4), { method: "direct" })).toThrow(direct);
  expect(() => signal.correlate(fft.rfft(leaf(9)), leaf(4), { method: "direct" })).toThrow(direct);
});

test("mel filters match transformers and librosa", () => {
  const path = join(import.meta.dir, "..", "fixtures", "spectra", "mel.json");
  const banks = JSON.parse(readFileSync(path, "utf8")) as {
    readonly [name: string]: unknown;
    readonly sampleRate: number;
    readonly nFft: number;
    readonly nMels: number;
    readonly filters: readonly (readonly [filter: number, first: number, weights: readonly number[]])[];
  }[];
  for (const { sampleRate, nFft, filters, ...options } of banks) {
    const count = Math.floor(nFft / 2) + 1;
    const want = new Float64Array(options.nMels * count);
    for (const [filter, first, weights] of filters) want.set(weights, filter * count + first);
    const got = numbersOf(signal.melFilterbank(sampleRate, nFft, { ...options, dtype: "float64" } as object));
    expect(got.length).toBe(want.length);
    expect(Math.max(...got.map((weight, at) => Math.abs(weight - want[at])))).toBeLessThan(1e-9);
  }
});

test("spectrograms are powers of the spectra of frames", () => {
  const random = new Random(seed);
  const { values } = makeBlock({ shape: [60] }, "float64", random);
  const x = tensor(values, { dtype: "float64" });
  const got = numbersOf(signal.spectrogram(x, { nFft: 16, hopLength: 5, center: false }));
  const window = Array.from({ length: 16 }, (_, k) => 0.5 - 0.5 * Math.cos((2 * Math.PI * k) / 16));
  const want: number[] = [];
  const spectra = Array.from({ length: 9 }, (_, frame) =>
    transformOf(
      Float64Array.from({ length: 32 }, (_, at) => (at % 2 ? 0 : values[frame * 5 + at / 2] * window[at / 2])),
      -1,
    ),
  );
  for (let k = 0; k <= 8; k++) for (const each of spectra) want.push(each[2 * k] ** 2 + each[2 * k + 1] ** 2);
  expect(distance(got, want)).toBeLessThan(1e-14);
  const magnitudes = numbersOf(signal.spectrogram(x, { nFft: 16, hopLength: 5, center: false, power: 1 }));
  expect(distance(magnitudes, want.map(Math.sqrt))).toBeLessThan(1e-14);
  const centered = signal.stft(x, 16, { hopLength: 5, window: signal.hannWindow(16, { dtype: "float64" }) });
  const powers = square(abs(centered)) as Tensor;
  expect(distance(numbersOf(signal.spectrogram(x, { nFft: 16, hopLength: 5 })), numbersOf(powers))).toBeLessThan(1e-14);
});

test("errors say what does not fit", () => {
  const spectra = fft.fft(tensor([1, 2, 3, 4])).reshape([2, 2]);
  const codeOf = (body: () => unknown) => (errorOf(body) as OrchardError).code;
  expect(codeOf(() => signal.istft(spectra, 2, { window: tensor([0, 0]) }))).toBe("zeroWeight");
  expect(codeOf(() => signal.stft(tensor([1, 2, 3]), 8, { center: false }))).toBe("tooShort");
  expect(codeOf(() => signal.melFilterbank(8000, 64, { fMin: 4000 }))).toBe("invalidOption");
});
