import { describe, expect, test } from "bun:test";
import { configure as configureCpu, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { bernoulli } from "../../../src/ops/random/bernoulli.ts";
import { multinomial } from "../../../src/ops/random/multinomial.ts";
import { rand, randLike, uniform } from "../../../src/ops/random/rand.ts";
import { randint, randintLike } from "../../../src/ops/random/randint.ts";
import { normal, randn, randnLike } from "../../../src/ops/random/randn.ts";
import { randperm } from "../../../src/ops/random/randperm.ts";
import { Generator } from "../../../src/random/generator.ts";
import { philox } from "../../../src/random/philox.ts";
import { type DType, dtypes, type FloatDType, isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { backendsOf, bytesOf, on, tested } from "../../random/backends.ts";
import { bunWords } from "../../support/program.ts";
import { place, Random, rounder } from "../samples.ts";

const floats: readonly FloatDType[] = ["float64", "float32", "float16", "bfloat16"];
const shapes = [[], [0], [1], [2], [3], [5], [7, 3], [2, 0, 3], [1023], [1025], [3, 7, 331]] as const;
const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

type Draw = (shape: readonly number[], generator: Generator) => Tensor;
const draws: [name: string, dtype: DType, draw: Draw][] = [
  ...floats.flatMap((dtype): [string, DType, Draw][] => [
    ["rand", dtype, (shape, generator) => rand(shape, { generator, dtype })],
    ["uniform", dtype, (shape, generator) => uniform(-3.3, 7.7, shape, { generator, dtype })],
    ["randn", dtype, (shape, generator) => randn(shape, { generator, dtype })],
    ["normal", dtype, (shape, generator) => normal(0.7, 2.9, shape, { generator, dtype })],
    ["bernoulli", dtype, (shape, generator) => bernoulli(0.3, shape, { generator, dtype })],
  ]),
  ...dtypes.map((dtype): [string, DType, Draw] => {
    const high = dtype === "bool" ? 2 : 100;
    return ["randint", dtype, (shape, generator) => randint(0, high, shape, { generator, dtype })];
  }),
  ["randint", "int64", (shape, generator) => randint(-(2n ** 63n), 2n ** 63n - 1n, shape, { generator })],
  ["randint", "int64", (shape, generator) => randint(-7n, 2n ** 40n, shape, { generator })],
  ["bernoulli", "bool", (shape, generator) => bernoulli(0.5, shape, { generator, dtype: "bool" })],
  ["bernoulli", "int32", (shape, generator) => bernoulli(1, shape, { generator, dtype: "int32" })],
];

describe("every backend draws the same bytes", () => {
  for (const [name, dtype, draw] of draws)
    test(`${name} ${dtype} has the same bytes on every backend`, () => {
      for (const shape of shapes) {
        const [first, ...others] = backendsOf(dtype).map((backend) =>
          bytesOf(on(backend, () => draw(shape, new Generator(99)))),
        );
        expect(first).toStartWith(`${dtype}[${shape.join(", ")}]`);
        for (const other of others) expect(other).toBe(first);
      }
    });

  const permuted: readonly DType[] = dtypes.filter((dtype) => dtype !== "bool");
  test.each(permuted)("randperm %s has the same bytes on every backend", (dtype) => {
    for (const n of [0, 1, 2, 3, 5, 64, 100, ...(["int64", "float32", "uint32"].includes(dtype) ? [1025, 5000] : [])]) {
      const [first, ...others] = backendsOf(dtype).map((backend) =>
        bytesOf(on(backend, () => randperm(n, { generator: new Generator(n), dtype }))),
      );
      for (const other of others) expect(other).toBe(first);
    }
  });

  for (const dtype of floats)
    test(`bernoulli and multinomial of ${dtype} have the same bytes in any layout`, () => {
      const random = new Random(5);
      for (const layout of ["contiguous", "offset", "transposed", "strided", "reversed"] as const) {
        const values = Array.from({ length: 5 * 203 }, () => rounder(dtype)(random.next()));
        const results = backendsOf(dtype).map((backend) => {
          const p = () => place({ shape: [5, 203], dtype, values }, layout, backend, new Random(1));
          const generator = new Generator(4);
          return on(backend, () =>
            [
              bernoulli(p(), { generator }),
              multinomial(p(), 17, { generator }),
              multinomial(p(), 9, { generator, replacement: true }),
            ].map(bytesOf),
          );
        });
        for (const other of results) expect(other).toEqual(results[0]);
      }
    });

  test("backends draw the same multinomial samples, for one category or many", () => {
    for (const count of [1, 2, 33, 1025, 4097]) {
      const weights = tensor(Float32Array.from({ length: count }, (_, i) => (i % 3) + 0.5));
      const results = tested.map((backend) =>
        on(backend, () =>
          [
            multinomial(weights, 1, { generator: new Generator(1) }),
            multinomial(weights, Math.min(count, 40), { generator: new Generator(2) }),
            multinomial(weights, 40, { generator: new Generator(3), replacement: true }),
          ].map(bytesOf),
        ),
      );
      for (const other of results) expect(other).toEqual(results[0]);
    }
  });

  test("every instruction set and number of threads of cpu gives the same bytes", () => {
    const { native } = cpuLibrary();
    const all = () => draws.map(([, , draw]) => bytesOf(on("cpu", () => draw([40000], new Generator(8)))));
    const wanted = all();
    try {
      for (const isa of cpuInfo(native).isas) {
        configureCpu(native, "isa", isa);
        expect(all()).toEqual(wanted);
      }
      for (const threads of ["1", "3"]) {
        configureCpu(native, "threads", threads);
        expect(all()).toEqual(wanted);
      }
    } finally {
      configureCpu(native, "isa", "auto");
      configureCpu(native, "threads", "auto");
    }
  });

  test.skipIf(!tested.includes("metal"))(
    "a Metal compiler that contracts, and one that flushes denormals, give the same bytes",
    async () => {
      const program = `
      import { withBackend } from "${import.meta.dir}/../../../src/backend/policy.ts";
      import { randn } from "${import.meta.dir}/../../../src/ops/random/randn.ts";
      import { uniform } from "${import.meta.dir}/../../../src/ops/random/rand.ts";
      import { multinomial } from "${import.meta.dir}/../../../src/ops/random/multinomial.ts";
      import { arange } from "${import.meta.dir}/../../../src/ops/creation/arange.ts";
      import { tensor } from "${import.meta.dir}/../../../src/ops/creation/tensor.ts";
      import { Generator } from "${import.meta.dir}/../../../src/random/generator.ts";
      withBackend("metal", () => {
        const generator = new Generator(6);
        const weights = tensor(Float32Array.from({ length: 999 }, (_, i) => 1 + (i % 7)));
        const drawn = [
          randn([20001], { generator }),
          uniform(-0.1, 0.3, [9999], { generator }),
          multinomial(weights, 50, { generator }),
          arange(-1, 1, 0.001),
        ];
        for (const x of drawn)
          console.log(Bun.hash(x.dataSync().buffer));
      });`;
      const outputs = [];
      for (const changes of [
        {},
        { ORCHARD_METAL_CONTRACT: "1" },
        { ORCHARD_METAL_CONTRACT: "1", ORCHARD_METAL_DENORMALS: "flush" },
      ]) {
        const child = Bun.spawn([...bunWords, "-e", program], {
          env: { ...process.env, ...changes },
          stderr: "inherit",
        });
        outputs.push(await new Response(child.stdout).text());
      }
      expect(outputs[0].trim().split("\n")).toHaveLength(4);
      expect(outputs[1]).toBe(outputs[0]);
      expect(outputs[2]).toBe(outputs[0]);
    },
  );
});

describe("how words become numbers", () => {
  const generator = () => new Generator(21);
  const wordsOf = (count: number, stream = 0) => {
    const key = generator().nextKey();
    return Array.from({ length: Math.ceil(count / 4) }, (_, block) => philox([block, 0, stream, 0], key)).flat();
  };
  const count = 4000;

  test("rand float32 is 24 bits of the word", () => {
    expect(numbersOf(rand([count], { generator: generator() }))).toEqual(
      wordsOf(count).map((word) => (word >>> 8) / 2 ** 24),
    );
  });

  test("rand float64 is 53 bits of two words, and rounds down to the float32", () => {
    const low = wordsOf(count, 1);
    const wanted = wordsOf(count).map((word, i) => Number((BigInt(word) << 21n) | BigInt(low[i] >>> 11)) / 2 ** 53);
    expect(numbersOf(rand([count], { generator: generator(), dtype: "float64" }))).toEqual(wanted);
    const narrow = numbersOf(rand([count], { generator: generator() }));
    expect(wanted.map((value) => Math.floor(value * 2 ** 24) / 2 ** 24)).toEqual(narrow);
  });

  test.each([
    ["float16", 11],
    ["bfloat16", 8],
  ] as const)("rand %s is the float32 with %d bits, rounded down", (dtype, bits) => {
    const wanted = numbersOf(rand([count], { generator: generator() })).map((value) => {
      const unit = 2 ** (Math.floor(Math.log2(value || 1)) + 1 - bits);
      return Math.floor(value / unit) * unit;
    });
    expect(numbersOf(rand([count], { generator: generator(), dtype }))).toEqual(wanted);
  });

  test("randn is the Box–Muller transform of the words, to 2 units in the last place", () => {
    const words = wordsOf(count);
    const cut = (word: number) => (word >= 2 ** 24 ? (word >>> 8) / 2 ** 24 : Math.max(word, 1) / 2 ** 32);
    const angle = (word: number) => {
      const quarter = Math.round(word / 2 ** 30);
      return 2 * Math.PI * (quarter / 4 + (Math.floor((word - quarter * 2 ** 30) / 64) * 64) / 2 ** 32);
    };
    const got = numbersOf(randn([count], { generator: generator() }));
    for (let i = 0; i < count; i += 2) {
      const radius = Math.sqrt(-2 * Math.log(cut(words[i])));
      const turn = angle(words[i + 1]);
      // Relative to the radius: near its zeros the rounding of the angle dominates.
      expect(Math.abs(got[i] - radius * Math.cos(turn))).toBeLessThanOrEqual(radius * 2 ** -22);
      expect(Math.abs(got[i + 1] - radius * Math.sin(turn))).toBeLessThanOrEqual(radius * 2 ** -22);
    }
  });

  test("randn float64 is close to the float32, and has 53 bits", () => {
    const wide = numbersOf(randn([count], { generator: generator(), dtype: "float64" }));
    const narrow = numbersOf(randn([count], { generator: generator() }));
    for (const [i, value] of wide.entries()) expect(Math.abs(value - narrow[i])).toBeLessThan(1e-4);
    expect(wide.filter((value) => Math.fround(value) === value).length).toBeLessThan(2);
  });

  test("randint is the upper part of 64 bits times the range", () => {
    const low = wordsOf(count, 1);
    const wanted = wordsOf(count).map(
      (word, i) => Number((((BigInt(word) << 32n) | BigInt(low[i])) * 1000n) >> 64n) - 500,
    );
    expect(numbersOf(randint(-500, 500, [count], { generator: generator() }))).toEqual(wanted);
  });

  test("uniform stays below its upper end in every dtype", () => {
    for (const dtype of floats)
      for (const [low, high] of [
        [1, 1 + 2 ** -7],
        [2047, 2048],
        [-5, -4.99],
        [3, 3],
      ] as const) {
        const values = numbersOf(uniform(low, high, [5000], { generator: generator(), dtype }));
        const least = rounder(dtype)(low);
        for (const value of values) expect(value === least || (value > low && value < high)).toBe(true);
      }
  });

  test("bernoulli of 0 is always 0 and of 1 always 1; values outside are clamped, and NaN is 0", () => {
    const p = tensor(Float32Array.from({ length: 6000 }, (_, i) => [0, 1, -2, 3, Number.NaN, 1][i % 6]));
    const wanted = Array.from({ length: 6000 }, (_, i) => [0, 1, 0, 1, 0, 1][i % 6]);
    for (const backend of tested) expect(numbersOf(on(backend, () => bernoulli(p)))).toEqual(wanted);
  });

  test("multinomial never draws a weight of 0, and without replacement no category twice", () => {
    const weights = tensor([
      [0, 3, 0, 1, 2, 0, 0.1],
      [5, 0, 1e-30, 0, 1, 1e30, 0],
    ]);
    for (const backend of tested) {
      const chosen = numbersOf(on(backend, () => multinomial(weights, 4, { generator: generator() })));
      expect(chosen.slice(0, 4).sort()).toEqual([1, 3, 4, 6]);
      expect(chosen.slice(4).sort()).toEqual([0, 2, 4, 5]);
    }
  });

  test.skipIf(!tested.includes("metal"))("if nothing is left to choose, metal returns −1", () => {
    const chosen = on("metal", () => multinomial(tensor([0, 2, Number.NaN, -1]), 3));
    expect(numbersOf(chosen)).toEqual([1, -1, -1]);
  });

  test("randperm contains every number once", () => {
    for (const n of [1, 2, 3, 63, 64, 65, 1000, 4096, 100003]) {
      const order = numbersOf(randperm(n, { generator: generator() }));
      expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
    }
  });

  test("the `…Like` functions keep shape and dtype, and options override them", () => {
    const x = tensor([[1, 2, 3]], { dtype: "float16" });
    expect([randLike(x), randnLike(x), randintLike(x, 0, 5)].map((y) => y.describe())).toEqual(
      new Array(3).fill("float16[1, 3]"),
    );
    expect(randnLike(x, { dtype: "float16", requiresGrad: true }).requiresGrad).toBe(true);
    expect(randint(0, 2, [2]).dtype).toBe("int64");
    expect(isFloat(rand([1]).dtype)).toBe(true);
  });
});
