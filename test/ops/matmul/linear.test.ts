/** Linear layers on every backend: x · weightᵀ + bias in one product. */
import { describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { ones } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { linear } from "../../../src/ops/matmul/linear.ts";
import { randn } from "../../../src/ops/random/randn.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested, testTable } from "../run.ts";
import { type Block, type Layout, layouts, type OperandSpec } from "../samples.ts";
import type { Expected, OperationRow, Round, Sample } from "../table.ts";
import { matmulOracle, productDTypes, wrapped } from "./products.ts";

/** The rows of x times those of the weight, with the bias added to the whole sum. */
function linearOracle([x, weight, bias]: readonly Block[], round: Round): Expected {
  const [out, size] = weight.shape as [number, number];
  const columns = weight.values.map((_, at) => weight.values[(at % out) * size + Math.floor(at / out)]);
  const rows = x.shape.slice(0, -1).reduce((product, extent) => product * extent, 1);
  const product = matmulOracle(
    { ...x, shape: [rows, size] },
    { ...weight, shape: [size, out], values: columns },
    round,
  );
  const values = product.values.map((sum, at) => wrapped(x.dtype, round(sum + (bias?.values[at % out] ?? 0))));
  return { shape: [...x.shape.slice(0, -1), out], values };
}

function sample(
  x: readonly number[],
  out: number,
  places: readonly Layout[] = ["contiguous", "contiguous", "contiguous"],
): Sample {
  const shapes = [x, [out, x.at(-1)!], [out]];
  const inputs = places.map((layout, at): OperandSpec => ({ shape: shapes[at], layout }));
  return { inputs, options: undefined };
}

const samples: readonly Sample[] = [
  sample([5], 3),
  sample([1, 7], 4),
  sample([9, 7], 1),
  sample([0, 7], 4),
  sample([3, 0], 4),
  sample([3, 7], 0),
  sample([4, 5, 6], 7),
  sample([2, 3, 4, 5], 6),
  sample([33, 40], 34),
  sample([6, 5], 4, ["contiguous", "contiguous"]),
  sample([2, 3, 5], 4, ["strided", "transposed"]),
  ...layouts.map((layout, at) => sample([2, 3, 18], 9, [layout, layouts[(at + 2) % 6], layouts[(at + 4) % 6]])),
];

const longestSum = ([x, weight]: readonly Block[]): number =>
  Math.max(
    1,
    x.shape.at(-1)!,
    weight.shape[0],
    x.shape.slice(0, -1).reduce((product, size) => product * size, 1),
  ) + 1;

const row: OperationRow = {
  name: "linear",
  compute: ([x, weight, bias]) => linear(x, weight, bias),
  dtypes: productDTypes,
  samples,
  oracle: (blocks, _, round) => linearOracle(blocks, round),
  accuracy: { flash: true },
  sumLength: longestSum,
  gradient: true,
};

testTable("linear", [row]);

const leaf = (shape: readonly number[], seed: number): Tensor => {
  const x = randn(shape, { dtype: "float64", generator: new Generator(seed) });
  x.requiresGrad = true;
  return x;
};

test.each(["cpu", "reference"] as const)("linear has gradients of gradients on %s", (backend) => {
  withBackend(backend, () => {
    const operands = [leaf([2, 3, 4], 1), leaf([5, 4], 2), leaf([5], 3)] as const;
    gradcheck(
      (cotangent: Tensor, ...own: Tensor[]) => {
        for (const operand of own) operand.requiresGrad = true; // also in float64, for finite differences
        return enableGrad(() =>
          grad([linear(own[0], own[1], own[2])], own.slice(0, 2), { gradOutputs: [cotangent], createGraph: true }),
        );
      },
      [leaf([2, 3, 5], 4), ...operands],
    );
  });
});

describe.each(tested)("a weight of one axis is accepted on %s", (backend) => {
  test("the result and its gradients have no axis", () =>
    withBackend(backend, () => {
      const x = tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { requiresGrad: true },
      );
      const weight = tensor([10, 1], { requiresGrad: true });
      const bias = tensor(100, { requiresGrad: true });
      const y = linear(x, weight, bias);
      expect(y.toArray()).toEqual([112, 134]);
      expect(linear(tensor([1, 2]), weight).item()).toBe(12);
      expect(linear(tensor([[[1, 2]]]), weight).shape).toEqual([1, 1]);
      const gradients = grad([y], [x, weight, bias], { gradOutputs: [tensor([1, -2])] });
      expect(gradients.map((own) => own.toArray())).toEqual([
        [
          [10, 1],
          [-20, -2],
        ],
        [-5, -6],
        -1,
      ]);
    }));
});

test("a bias of null is no bias", () => {
  const [x, weight] = [ones([2, 3]), ones([4, 3])];
  expect(linear(x, weight, null).toArray()).toEqual(linear(x, weight).toArray());
});

describe.skipIf(!tested.includes("metal"))("linear on metal runs as one kernel", () => {
  const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
  const small = (shape: readonly number[]) => onMetal(() => ones(shape));

  /** The kernels that ran during `body`. */
  function kernelsOf(body: () => unknown): string[] {
    const context = metalContext();
    context.configure("count", true);
    context.wait();
    context.report({ clear: true });
    onMetal(body);
    context.wait();
    const { dispatches, findings } = context.report({ clear: true });
    context.configure("count", false);
    expect(findings).toEqual([]);
    return dispatches.flatMap(({ kernel, count }) => new Array<string>(count).fill(kernel));
  }
  const tile = "tiled_float_float_32x32x32";

  // One kernel, which also adds the bias. Leading axes are the rows of one matrix, or a batch if they are not
  // contiguous.
  test.each([
    ["of dense axes", () => small([3, 16, 24])],
    ["of a part of an axis", () => slice(small([3, 32, 24]), { dim: 1, step: 1, end: 16 })],
    ["of transposed axes", () => transpose(small([16, 3, 24]), 0, 1)],
  ] as const)("the forward %s is one kernel", (_name, make) => {
    const [weight, bias] = [small([40, 24]), small([40])];
    const x = make();
    const kernels = kernelsOf(() => linear(x, weight, bias));
    expect(kernels).toHaveLength(1);
    expect(kernels[0]).toMatch(/^tiled_float_float/);
  });

  test("the backward is two products and one sum", () => {
    const [x, weight, bias] = [small([3, 16, 24]), small([40, 24]), small([40])] as const;
    for (const operand of [x, weight, bias]) operand.requiresGrad = true;
    const y = onMetal(() => linear(x, weight, bias));
    const cotangent = small([3, 16, 40]);
    const kernels = kernelsOf(() => grad([y], [x, weight, bias], { gradOutputs: [cotangent] }));
    expect(kernels.filter((kernel) => kernel === tile)).toHaveLength(2);
    expect(kernels.filter((kernel) => !kernel.startsWith("tiled"))).toHaveLength(1);
  });
});
