/**
 * Matrix products by the kernels with Metal 4's tensors, compared with the formula and with the kernels without
 * tensors.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withGpuFamily } from "../../../src/backend/metal/gpu_family.ts";
import { tensorUnits, withTensorUnits } from "../../../src/backend/metal/tensor_units.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { addmm } from "../../../src/ops/matmul/addmm.ts";
import { matmul } from "../../../src/ops/matmul/matmul.ts";
import { planOf } from "../../../src/ops/matmul/plan.ts";
import { problemOf } from "../../../src/ops/matmul/problem.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { repeats } from "../../support/repeats.ts";
import { seed } from "../../support/some.ts";
import { checkFindings } from "../run.ts";
import { layouts, makeBlock, place, Random, rounder } from "../samples.ts";
import { compare } from "../tolerance.ts";
import { matmulOracle } from "./products.ts";

const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
const pick = <Value>(random: Random, values: readonly Value[]): Value => values[random.integer(0, values.length - 1)]!;

/** The largest sizes; k is long enough that some sums are split. */
const sizes: readonly (readonly [number, number])[] = [
  [43, 43],
  [64, 32],
  [70, 43],
];

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("products with tensor instructions are correct", () => {
  const context = metalContext();
  const canRun = context.isSoftware || tensorUnits().use;
  beforeAll(() => context.configure("check", true));
  afterAll(() => context.configure("check", false));

  const cases = Array.from({ length: repeats({ usual: 3, all: 60 }) }, (_, at) => at);
  test.skipIf(!canRun).each(cases)("case %d agrees with the formula, in every layout", (at) => {
    const random = new Random(seed * 1000 + at);
    const dtype = pick<DType>(random, ["float16", "bfloat16"]);
    const [high, wide] = sizes[at % sizes.length];
    const [m, n, k] = [high - random.integer(0, 3), wide - random.integer(0, 3), random.integer(1, 160)];
    const [a, b] = [makeBlock({ shape: [m, k] }, dtype, random), makeBlock({ shape: [k, n] }, dtype, random)];
    const [left, right] = [
      place(a, pick(random, placed), "metal", random),
      place(b, pick(random, placed), "metal", random),
    ];
    const turn = random.next() < 0.5;
    const operand = turn ? onMetal(() => transpose(transpose(right, 0, 1).contiguous(), 0, 1)) : right;
    const got = onMetal(() => withTensorUnits(true, () => matmul(left, operand)));
    const plain = onMetal(() => withTensorUnits(false, () => matmul(left, operand)));
    const [exact, rounded] = [matmulOracle(a, b, (value) => value), matmulOracle(a, b, rounder(dtype))];
    for (const result of [got, plain]) {
      const values = Array.from(result.dataSync() as ArrayLike<number>);
      expect(compare(dtype, values, exact.values, rounded.values, { flash: true })).toBeUndefined();
    }
    checkFindings({ name: `matmul ${dtype} ${m} ${n} ${k}` });
  });
  const placed = layouts.filter((layout) => layout !== "expanded");

  test.skipIf(!canRun)("products are scaled and added to an input", () => {
    const random = new Random(seed);
    const blocks = [
      [44, 42],
      [44, 18],
      [18, 42],
    ].map((shape) => makeBlock({ shape }, "float16", random));
    const [input, a, b] = blocks.map((block) => place(block, "contiguous", "metal", random));
    const run = (use: boolean) =>
      onMetal(() => withTensorUnits(use, () => addmm(input, a, b, { alpha: 0.5, beta: 2 }))).toArray();
    expect(run(true)).toEqual(run(false));
  });

  test("16-bit floats use them where the GPU has matrix units, and codepaths() says why", () => {
    const of = (dtype: DType, shape: readonly [number, number]) =>
      place(makeBlock({ shape }, dtype, new Random(1)), "contiguous", "metal", new Random(1));
    const kernelOf = (dtype: DType, m: number) => {
      const [a, b, out] = [of(dtype, [m, 32]), of(dtype, [32, 40]), of(dtype, [m, 40])];
      const call = { operation: "matmul", inputs: [a, b], outputs: [out], attributes: { alpha: 1, beta: 0 } };
      return planOf(problemOf(call)).kernel;
    };
    withGpuFamily("apple9", () => {
      withTensorUnits(true, () => {
        expect(kernelOf("float16", 40)).toBe("tensor_tiled");
        expect(kernelOf("bfloat16", 40)).toBe("tensor_tiled");
        expect(kernelOf("float16", 8)).toBe("tiled");
        expect(kernelOf("float32", 40)).toBe("tiled");
      });
      withTensorUnits(false, () => expect(kernelOf("float16", 40)).toBe("tiled"));
    });
    if (context.isSoftware) expect(tensorUnits()).toEqual({ use: false, reason: "the GPU is older than apple10" });
    if (!canRun) return;
    resetCodepaths();
    onMetal(() => withTensorUnits(true, () => matmul(of("float16", [40, 32]), of("float16", [32, 40]))));
    const reasons = codepaths().map(({ operation, backend, reason }) => `${operation} ${backend} ${reason}`);
    expect(reasons).toContain("matmul metal matmul2d: set by withTensorUnits");
  });
});
