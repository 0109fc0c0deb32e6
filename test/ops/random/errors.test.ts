import { expect, test } from "bun:test";
import { ArgumentError, DisposedError, DTypeError, type OrchardError, ShapeError } from "../../../src/core/errors.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { bernoulli } from "../../../src/ops/random/bernoulli.ts";
import { multinomial } from "../../../src/ops/random/multinomial.ts";
import { rand, randLike, uniform } from "../../../src/ops/random/rand.ts";
import { randint } from "../../../src/ops/random/randint.ts";
import { normal, randn } from "../../../src/ops/random/randn.ts";
import { randperm } from "../../../src/ops/random/randperm.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { FloatDType } from "../../../src/tensor/dtype.ts";
import { on, tested } from "../../random/backends.ts";

type Kind = new (...parameters: never[]) => OrchardError;
const integer = "int32" as FloatDType;

const cases: readonly (readonly [string, (generator: Generator) => unknown, Kind, ...string[]])[] = [
  ["a negative size", (generator) => rand([2, -1], { generator }), ShapeError, "[rand]", "-1"],
  ["a size that is not a number", (generator) => randn([Number.NaN], { generator }), ShapeError, "[randn]", "NaN"],
  ["an integer dtype", (generator) => rand([1], { generator, dtype: integer }), DTypeError, "[rand]", "int32", "float"],
  ["normal integers", (generator) => randn([1], { generator, dtype: integer }), DTypeError, "[randn]", "int32"],
  ["a like of integers", (generator) => randLike(tensor([1n]), { generator }), DTypeError, "[randLike]", "int64"],
  ["an empty interval", (generator) => uniform(1, 0, [1], { generator }), ArgumentError, "[uniform]", "1 and 0"],
  ["an endless interval", (generator) => uniform(-1e308, 1e308, [1], { generator }), ArgumentError, "[uniform]"],
  ["NaN as an end", (generator) => uniform(Number.NaN, 1, [1], { generator }), ArgumentError, "NaN"],
  ["a negative deviation", (generator) => normal(0, -1, [1], { generator }), ArgumentError, "[normal]", "-1"],
  ["an infinite mean", (generator) => normal(Infinity, 1, [1], { generator }), ArgumentError, "[normal]", "Infinity"],
  ["an empty range", (generator) => randint(3, 3, [1], { generator }), ArgumentError, "[randint]", "3 and 3"],
  ["a fraction", (generator) => randint(0, 2.5, [1], { generator }), ArgumentError, "[randint]", "2.5"],
  [
    "a range beyond uint8",
    (generator) => randint(0, 257, [1], { generator, dtype: "uint8" }),
    DTypeError,
    "uint8",
    "255",
  ],
  ["a range beyond int64", (generator) => randint(0, 2n ** 64n, [1], { generator }), DTypeError, "int64"],
  ["a range with gaps", (generator) => randint(0, 4096, [1], { generator, dtype: "float16" }), DTypeError, "2048"],
  ["a negative n", (generator) => randperm(-1, { generator }), ShapeError, "[randperm]", "-1"],
  ["too many for int8", (generator) => randperm(129, { generator, dtype: "int8" }), DTypeError, "128", "127"],
  ["a probability above 1", (generator) => bernoulli(1.5, [1], { generator }), ArgumentError, "[bernoulli]", "1.5"],
  ["a probability that is none", (generator) => bernoulli(Number.NaN, [1], { generator }), ArgumentError, "NaN"],
  ["integers as probabilities", (generator) => bernoulli(tensor([1n]), { generator }), DTypeError, "int64"],
  ["no categories", (generator) => multinomial(tensor(new Float32Array(0)), 1, { generator }), ShapeError, "[0]"],
  ["a rank too many", (generator) => multinomial(tensor([[[1]]]), 1, { generator }), ShapeError, "[1, 1, 1]"],
  [
    "a number of samples of 0",
    (generator) => multinomial(tensor([1]), 0, { generator }),
    ArgumentError,
    "numSamples",
    "0",
  ],
  [
    "more samples than categories",
    (generator) => multinomial(tensor([1, 2]), 3, { generator }),
    ArgumentError,
    "replacement",
  ],
  ["integers as weights", (generator) => multinomial(tensor([1n]), 1, { generator }), DTypeError, "int64"],
];

test.each(cases)("%s is rejected, and draws nothing from the generator", (_, body, kind, ...said) => {
  const generator = new Generator(1);
  let error: unknown;
  try {
    body(generator);
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(kind);
  for (const part of said) expect((error as OrchardError).message).toContain(part);
  expect(generator.getState().offset).toBe(0n);
});

for (const backend of tested.filter((name) => name !== "metal"))
  for (const replacement of [false, true])
    for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY])
      test(`a weight of ${wrong} is rejected on ${backend}, replacement ${replacement}`, () => {
        const draw = () => multinomial(tensor([1, wrong, 1]), 2, { replacement });
        expect(() => on(backend, draw)).toThrow(ArgumentError);
        expect(() => on(backend, draw)).toThrow(/\[multinomial\] expected finite weights of at least 0, got/);
      });

for (const backend of tested.filter((name) => name !== "metal"))
  test(`too few weights above 0 are an error on ${backend}`, () => {
    expect(() => on(backend, () => multinomial(tensor([1, 0, 0]), 2))).toThrow(
      /expected as many weights above 0 in a row as samples/,
    );
    expect(() => on(backend, () => multinomial(tensor([0, 0]), 2, { replacement: true }))).toThrow(
      /expected as many weights above 0 in a row as samples/,
    );
  });

test("a disposed tensor is rejected", () => {
  const p = tensor([0.5]);
  p.dispose();
  expect(() => bernoulli(p)).toThrow(DisposedError);
  expect(() => multinomial(p, 1)).toThrow(DisposedError);
});
