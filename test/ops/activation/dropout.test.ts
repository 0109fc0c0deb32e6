/**
 * Dropout on every backend: its pattern by definition, the same in forward and backward, and probabilities of 0 and 1.
 */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { dropout } from "../../../src/ops/activation/dropout.ts";
import { full, ones } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { defaultGenerator, Generator, manualSeed } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { philoxByDefinition } from "../../random/philox.oracle.ts";
import { floats, unarySamples } from "../elementwise/oracle.ts";
import { checkFindings, tested, testTable } from "../run.ts";
import type { OperationRow } from "../table.ts";

const SEED = 0x9_1234_5678;

const key = philoxByDefinition([0, 0, 0, 0], [SEED % 2 ** 32, Math.floor(SEED / 2 ** 32)])
  .slice(0, 2)
  .map(Number);
const blocks = new Map<number, bigint[]>();

/** Whether the first call of a generator with the seed keeps an element. */
function isKept(p: number, index: number): boolean {
  const block = Math.floor(index / 4);
  const words = blocks.get(block) ?? philoxByDefinition([block, 0, 0, 0], key);
  blocks.set(block, words);
  return Number(words[index % 4]) >= Math.round(p * 2 ** 32);
}

const row = (p: number): OperationRow => ({
  name: `dropout ${p}`,
  compute: ([x]) => dropout(x, { p, generator: new Generator(SEED) }),
  dtypes: floats,
  samples: unarySamples(),
  oracle: ([x]) => ({
    shape: x.shape,
    values: x.values.map((value, index) => (isKept(p, index) ? value / (1 - p) : 0)),
  }),
  accuracy: { ulps: 1 },
  gradient: true,
});

testTable("dropout", [row(0.1), row(0.5)]);

const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as Float32Array);

describe.each(tested)("dropout on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withBackend(backend, body);

  test("the gradient has the forward's pattern, which depends on an element's index and not on its address", () => {
    on(() => {
      const x = transpose(ones([50, 41]), 0, 1);
      const leaf = ones([41, 50]);
      leaf.requiresGrad = true;
      const generator = new Generator(7);
      const start = generator.getState();
      const y = dropout(leaf, { p: 0.25, generator });
      const [gradient] = grad([y], [leaf], { gradOutputs: [full([41, 50], 2, { dtype: "float32" })] });
      expect(numbers(gradient)).toEqual(numbers(y).map((value) => 2 * value));
      generator.setState(start);
      expect(numbers(dropout(x, { p: 0.25, generator }))).toEqual(numbers(y));
      expect(numbers(dropout(x, { p: 0.25, generator }))).not.toEqual(numbers(y));
      const dropped = numbers(y).filter((value) => value === 0).length / y.size;
      expect(Math.abs(dropped - 0.25)).toBeLessThan(0.05);
      if (backend === "metal") checkFindings({ name: "dropout" });
    });
  });

  test("a probability of 1 drops everything, and makes no NaN", () => {
    on(() => {
      const x = tensor([1, Number.POSITIVE_INFINITY, Number.NaN, -2, 0], { requiresGrad: true });
      const y = dropout(x, { p: 1 });
      expect(numbers(y)).toEqual([0, 0, 0, 0, 0]);
      const [gradient] = grad([y], [x], { gradOutputs: [full([5], Number.POSITIVE_INFINITY)] });
      expect(numbers(gradient)).toEqual([0, 0, 0, 0, 0]);
    });
  });

  test("kept elements may be infinite or NaN, and dropped ones too", () => {
    on(() => {
      const values = new Array<number>(40).fill(Number.POSITIVE_INFINITY);
      const got = numbers(dropout(tensor(values), { p: 0.5, generator: new Generator(SEED) }));
      expect(got).toEqual(values.map((value, index) => (isKept(0.5, index) ? value : 0)));
    });
  });

  test("manualSeed repeats a pattern, and the next call has another", () => {
    on(() => {
      const draw = () => numbers(dropout(ones([64])));
      manualSeed(3);
      const first = draw();
      expect(draw()).not.toEqual(first);
      manualSeed(3);
      expect(draw()).toEqual(first);
    });
  });
});

test("p = 0 and training = false return x itself, and draw nothing from the generator", () => {
  const x = ones([3]);
  const before = defaultGenerator.getState();
  expect(dropout(x, { p: 0 })).toBe(x);
  expect(dropout(x, { p: 0.9, training: false })).toBe(x);
  expect(defaultGenerator.getState()).toEqual(before);
  dropout(x, { p: 0.9 });
  expect(defaultGenerator.getState()).not.toEqual(before);
});
