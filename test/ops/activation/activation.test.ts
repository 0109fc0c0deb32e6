/** Activations on every backend. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { dropout } from "../../../src/ops/activation/dropout.ts";
import { gelu } from "../../../src/ops/activation/gelu.ts";
import { silu } from "../../../src/ops/activation/silu.ts";
import { swiglu } from "../../../src/ops/activation/swiglu.ts";
import { swigluGradient } from "../../../src/ops/activation/swiglu_gradient.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { randn } from "../../../src/ops/random/randn.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import { chunk } from "../../../src/ops/view/split.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { binarySamples, floats, mapped, sampleOf, specials, unarySamples } from "../elementwise/oracle.ts";
import { tested, testTable } from "../run.ts";
import { type Block, makeBlock, place, Random } from "../samples.ts";
import type { OperationRow, Sample } from "../table.ts";
import { compare } from "../tolerance.ts";
import * as oracle from "./oracle.ts";
import { gradientOf, leaf, testSecondGradients } from "./rows.ts";

const approximate = "tanh";
/**
 * The range begins above the zeros of the derivatives, near which a gradient has no accurate digits.
 * elementwise/accuracy.test.ts covers the full range.
 */
const risen = { low: -0.6, high: 8 } as const;

/**
 * The error that an exponential has in float64 because its argument is rounded, and in float32 where it is subnormal.
 */
const exponentRoundings = (blocks: readonly Block[], values: readonly number[]): number[] =>
  values.map((value, at) => {
    const x = blocks[0].values[at];
    return blocks[0].dtype === "float64" && Number.isFinite(x) ? Math.abs(value) * (8 + 2 * x ** 4) : 6 * 2 ** -118;
  });

/** Oracles that integrate are slow. */
const isSmall = ({ inputs: [spec] }: Sample): boolean => spec.shape.reduce((count, size) => count * size, 1) < 2000;

const activation = (name: string, compute: (x: Tensor) => Tensor, formula: (x: number) => number): OperationRow => ({
  name,
  compute: ([x]) => compute(x),
  dtypes: floats,
  samples: [...unarySamples(risen).filter(isSmall), sampleOf("specials", specials)],
  oracle: (blocks) => {
    const expected = mapped(blocks, formula);
    return { ...expected, roundings: exponentRoundings(blocks, expected.values) };
  },
  accuracy: { ulps: 6 },
  gradient: true,
});

testTable("activations", [
  activation("gelu", gelu, oracle.gelu.value),
  activation("geluTanh", (x) => gelu(x, { approximate }), oracle.geluTanh.value),
  activation("silu", silu, oracle.silu.value),
  {
    name: "swiglu",
    compute: ([gate, up]) => swiglu(gate, up),
    dtypes: floats,
    samples: binarySamples(risen),
    oracle: (blocks) => mapped(blocks, (gate, up) => oracle.silu.value(gate) * up),
    accuracy: { ulps: 7 },
    elementwise: true,
    gradient: true,
  },
]);

testTable(
  "activations take integers as float32",
  [
    activation("gelu of integers", gelu, oracle.gelu.value),
    activation("silu of integers", silu, oracle.silu.value),
  ].map((row) => ({
    ...row,
    dtypes: ["int32", "uint8", "bool"],
    samples: [{ inputs: [{ shape: [3, 5], values: { integers: [0, 3] } }], options: undefined }],
    oracle: (blocks: readonly Block[]) => ({ ...row.oracle(blocks, undefined, (x) => x), dtype: "float32" as const }),
    gradient: false,
  })) as OperationRow[],
);

testSecondGradients({
  gelu,
  "gelu by tanh": (x) => gelu(x, { approximate }),
  silu,
});

describe.each(["cpu", "reference"] as const)("gradients of gradients on %s", (backend) => {
  test("swiglu has gradients of gradients, broadcast, and with one gradient only", () => {
    withBackend(backend, () => {
      const operands = [leaf([3, 4], 1), leaf([3, 1], 2), leaf([4], 3)] as const;
      gradcheck(gradientOf(swiglu), [...operands]);
      const first = (cotangent: Tensor, gate: Tensor, up: Tensor) => gradientOf(swiglu)(cotangent, gate, up)[0];
      gradcheck(first, [...operands]);
      const second = (cotangent: Tensor, gate: Tensor, up: Tensor) => gradientOf(swiglu)(cotangent, gate, up)[1];
      gradcheck(second, [...operands]);
    });
  });
});

describe.each(tested)("activations on %s", (backend) => {
  const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as Float32Array, Number);

  test("infinities map to their limits, and gradients too; NaN stays", () => {
    withBackend(backend, () => {
      for (const compute of [gelu, (x: Tensor) => gelu(x, { approximate }), silu] as const) {
        const x = tensor([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, Number.NaN, -3e38, 3e38], {
          requiresGrad: true,
        });
        const y = compute(x);
        expect(numbers(y).map((value) => value + 0)).toEqual([0, 1 / 0, Number.NaN, 0, Math.fround(3e38)]);
        const [gradient] = grad([y], [x], { gradOutputs: [tensor([1, 1, 1, 1, 1])] });
        expect(numbers(gradient).map((value) => value + 0)).toEqual([0, 1, Number.NaN, 0, 1]);
      }
    });
  });

  // Both halves of a projection, side by side or interleaved, are read in place; each gradient is added to its half.
  test.each([
    ["halves", (x: Tensor) => chunk(x, 2, { dim: -1 })],
    ["pairs", (x: Tensor) => [slice(x, { dim: -1, step: 2 }), slice(x, { dim: -1, start: 1, step: 2 })]],
  ] as const)("swiglu of a packed projection equals its formula: %s", (_name, parts) => {
    const random = new Random(5);
    const block = makeBlock({ shape: [5, 14] }, "float32", random);
    const weights = makeBlock({ shape: [5, 7] }, "float32", random).values;
    const from = (index: number, half: number) =>
      _name === "halves" ? half * 7 + (index % 7) : 2 * (index % 7) + half;
    const of = (index: number, half: number) => block.values[Math.floor(index / 7) * 14 + from(index, half)];
    const wanted = new Array<number>(70).fill(0);
    for (let index = 0; index < 35; index++) {
      const [gate, up, row] = [of(index, 0), of(index, 1), Math.floor(index / 7) * 14];
      wanted[row + from(index, 0)] = weights[index] * up * oracle.silu.derivative(gate);
      wanted[row + from(index, 1)] = weights[index] * oracle.silu.value(gate);
    }
    withBackend(backend, () => {
      const x = place(block, "offset", backend, random);
      x.requiresGrad = true;
      const [gate, up] = parts(x) as readonly Tensor[];
      const y = swiglu(gate, up);
      const values = Array.from({ length: 35 }, (_, index) => oracle.silu.value(of(index, 0)) * of(index, 1));
      const near = (got: readonly number[], want: readonly number[]) =>
        want.filter((value, at) => !(Math.abs(got[at] - value) <= 1e-6 * Math.max(1, Math.abs(value))));
      expect(near(numbers(y), values)).toEqual([]);
      const [gradient] = grad([y], [x], { gradOutputs: [tensor(weights, { shape: [5, 7] })] });
      expect(near(numbers(gradient), wanted)).toEqual([]);
    });
  });
});

describe("activations on cpu equal those of one thread", () => {
  const { native } = cpuLibrary();
  const { isa: initial, isas } = cpuInfo(native);
  afterAll(() => {
    configure(native, "isa", initial);
    configure(native, "threads", "auto");
  });

  /**
   * Operations with separate kernels: both gradients of swiglu, and dropout. Long enough for several threads, with a
   * partial vector at the end.
   */
  function computed(): number[][] {
    const shape = [3, 22_111];
    const draw = (seed: number) => randn(shape, { generator: new Generator(seed) });
    const halves = chunk(randn([3, 44_222], { generator: new Generator(1) }), 2, { dim: -1 }) as [Tensor, Tensor];
    const results = [
      ...swigluGradient(draw(2), ...halves),
      dropout(halves[0], { p: 0.3, generator: new Generator(4) }),
    ];
    return results.map((result) => Array.from(result.dataSync() as Float32Array));
  }
  const wanted = withBackend("reference", computed);

  test.each(isas)("activations with %s equal reference, on one thread and on several", (isa) => {
    configure(native, "isa", isa);
    configure(native, "threads", "1");
    const single = withBackend("cpu", computed);
    configure(native, "threads", "4");
    expect(withBackend("cpu", computed)).toEqual(single);
    for (const [at, values] of wanted.entries())
      expect(compare("float32", single[at], values, undefined, { scaleUlps: 2 })).toBeUndefined();
  });
});
