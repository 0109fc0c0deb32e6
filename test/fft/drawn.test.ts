/** Transforms of drawn lengths, axes, batches, layouts, scales and directions on every backend, by their definition. */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../src/backend/names.ts";
import {
  contiguous,
  fft,
  permute,
  tensor,
  viewAsComplex,
  viewAsReal,
  withBackend,
  withStrict,
} from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { places } from "../linalg/run.ts";
import { checkFindings } from "../ops/run.ts";
import { type Block, type Layout, layouts, makeBlock, place, Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";
import { seed } from "../support/some.ts";
import { distance, transformOf, wholeSpectrum } from "./definition.ts";

const kinds = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"] as const;
type Kind = (typeof kinds)[number];
type Norm = "backward" | "ortho" | "forward";

const toReal = (kind: Kind) => kind === "irfft" || kind === "hfft";
const fromReal = (kind: Kind) => kind === "rfft" || kind === "ihfft";
const isInverse = (kind: Kind) => kind.startsWith("i");
const isPositive = (kind: Kind) => kind === "ifft" || kind === "irfft" || kind === "ihfft";

interface Drawn {
  readonly kind: Kind;
  /** The shape of complex numbers, or of real ones. */
  readonly shape: readonly number[];
  readonly axis: number;
  readonly n: number;
  readonly norm: Norm;
  readonly layout: Layout;
}

const pick = <T>(random: Random, choices: readonly T[]): T => choices[random.integer(0, choices.length - 1)]!;

/** Lengths of each kind of algorithm: short, powers, products of small primes, primes, and long ones. */
function drawLength(random: Random, most: number): number {
  const kind = random.integer(0, 4);
  if (kind === 0) return random.integer(1, 24);
  if (kind === 1) return 2 ** random.integer(0, Math.floor(Math.log2(most)));
  if (kind === 2)
    return pick(random, [6, 15, 30, 35, 60, 77, 121, 143, 169, 210, 243, 360, 375, 512, 600, 625, 720, 1000]);
  if (kind === 3) return pick(random, [17, 31, 37, 61, 67, 97, 127, 131, 257, 263, 509, 521, 787, 1009]);
  return random.integer(1, most);
}

function draw(random: Random, most: number): Drawn {
  const kind = pick(random, kinds);
  const n = Math.min(most, drawLength(random, most));
  const own = toReal(kind) ? Math.floor(n / 2) + 1 : n;
  const size = random.integer(0, 3) === 0 ? Math.max(1, own + random.integer(-3, 3)) : own;
  const others = Array.from({ length: random.integer(0, 2) }, () => random.integer(1, n > 200 ? 3 : 20));
  const axis = random.integer(0, others.length);
  return {
    kind,
    shape: others.toSpliced(axis, 0, size),
    axis,
    n,
    norm: pick(random, ["backward", "ortho", "forward"] as const),
    layout: pick(
      random,
      layouts.filter((each) => each !== "expanded"),
    ),
  };
}

const factorOf = (norm: Norm, n: number, inverse: boolean): number =>
  norm === "ortho" ? n ** -0.5 : (norm === "backward") === inverse ? 1 / n : 1;

/** The expected result: pairs, or real numbers, row-major. */
function expected({ kind, shape, axis, n, norm }: Drawn, values: readonly number[]): number[] {
  const step = fromReal(kind) ? 1 : 2;
  const inner = shape.slice(axis + 1).reduce((size, each) => size * each, 1);
  const outer = shape.slice(0, axis).reduce((size, each) => size * each, 1);
  const size = shape[axis];
  const length = fromReal(kind) ? Math.floor(n / 2) + 1 : n;
  const width = toReal(kind) ? 1 : 2;
  const result = new Array<number>(outer * length * inner * width);
  for (let line = 0; line < outer * inner; line++) {
    const [block, within] = [Math.floor(line / inner), line % inner];
    const x = new Float64Array(2 * Math.max(n, size));
    for (let j = 0; j < size; j++)
      for (let part = 0; part < step; part++)
        x[2 * j + part] = values[((block * size + j) * inner + within) * step + part];
    const whole = toReal(kind) ? wholeSpectrum(x.slice(0, 2 * (Math.floor(n / 2) + 1)), n) : x.slice(0, 2 * n);
    const transformed = transformOf(whole, isPositive(kind) ? 1 : -1);
    const scale = factorOf(norm, n, isInverse(kind));
    for (let k = 0; k < length; k++)
      for (let part = 0; part < width; part++)
        result[((block * length + k) * inner + within) * width + part] = scale * transformed[2 * k + part];
  }
  return result;
}

function run(drawn: Drawn, x: Tensor): number[] {
  const { kind, axis: dim, n, norm } = drawn;
  const result = fft[kind](x, { n, dim, norm }) as Tensor;
  const real = toReal(kind) ? result : viewAsReal(result);
  return Array.from(real.dataSync() as ArrayLike<number>);
}

/** The operand in its layout. Complex numbers are contiguous, or have the axes of memory in reverse order. */
function operandOf({ kind, layout }: Drawn, block: Block, backend: BackendName, random: Random): Tensor {
  if (fromReal(kind)) return place(block, layout, backend, random);
  const x = viewAsComplex(tensor(block.values, { dtype: block.dtype, shape: block.shape }) as Tensor) as Tensor;
  const reversed = x.shape.map((_, axis) => axis).reverse();
  return layout === "transposed" ? permute(contiguous(permute(x, reversed)), reversed) : x;
}

/**
 * Bounds the norm of the error relative to the result's norm: a few roundings per level of the algorithm, or per sum of
 * the definition.
 */
const tolerance = { float32: 4e-7, float64: 4e-15 } as const;

describe.each(places)("the Fourier transforms, $backend $dtype", ({ backend, dtype }) => {
  const count = repeats({ usual: backend === "cpu" ? 40 : 25, all: 600 });
  const most = backend === "reference" ? 300 : 1200;

  test(`${count} drawn transforms are within their error, seed ${seed}`, () => {
    const random = new Random(
      seed + 100 * places.findIndex((each) => each.backend === backend && each.dtype === dtype),
    );
    for (let at = 0; at < count; at++) {
      const drawn = draw(random, most);
      const shape = fromReal(drawn.kind) ? drawn.shape : [...drawn.shape, 2];
      const block = makeBlock({ shape }, dtype, random);
      const got = withStrict(true, () =>
        withBackend(backend, () => run(drawn, operandOf(drawn, block, backend, random))),
      );
      const error = distance(got, expected(drawn, block.values));
      if (!(error < tolerance[dtype])) expect([drawn, error]).toEqual([drawn, 0]);
    }
    if (backend === "metal") checkFindings({ name: "fft" });
  });

  // Rows and columns are transformed as lanes of vectors, whose last ones may have none.
  if (backend !== "cpu") return;
  test(`each short length of each kind is correct, in batches of short axes, seed ${seed}`, () => {
    const random = new Random(seed);
    for (let n = 1; n <= 40; n++)
      for (const kind of kinds) {
        const own = toReal(kind) ? Math.floor(n / 2) + 1 : n;
        const shape = [random.integer(1, 40), own, ...(random.integer(0, 1) === 0 ? [] : [random.integer(1, 6)])];
        const drawn: Drawn = { kind, shape, axis: 1, n, norm: "ortho", layout: "contiguous" };
        const block = makeBlock({ shape: fromReal(kind) ? shape : [...shape, 2] }, dtype, random);
        const got = withStrict(true, () =>
          withBackend("cpu", () => run(drawn, operandOf(drawn, block, "cpu", random))),
        );
        const error = distance(got, expected(drawn, block.values));
        if (!(error < tolerance[dtype])) expect([drawn, error]).toEqual([drawn, 0]);
      }
  });
});
