/**
 * Properties of normalizations besides their formulas: gradients of gradients, rows far from zero, values that are not
 * finite, the same bits in any order, no copies, and tensors that the tape keeps.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { addLayerNorm, addRmsNorm, layerNorm, mul, rmsNorm, sum, tensor } from "../../../src/index.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { testVariants } from "../../linalg/variants.ts";
import { tested } from "../run.ts";
import { hash, makeBlock, place, Random } from "../samples.ts";
import { epsilon } from "../tolerance.ts";

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

type Compute = (...inputs: Tensor[]) => Tensor[];

/** The computations, with the shapes of their inputs for rows of a given length. */
const computations: Readonly<Record<string, { compute: Compute; inputs: readonly ("rows" | "vector")[] }>> = {
  layerNorm: {
    compute: (x, weight, bias) => [layerNorm(x, { weight, bias })],
    inputs: ["rows", "vector", "vector"],
  },
  rmsNorm: { compute: (x, weight) => [rmsNorm(x, { weight })], inputs: ["rows", "vector"] },
  addLayerNorm: {
    compute: (x, residual, weight, bias) => {
      const { out, sum } = addLayerNorm(x, residual, { weight, bias });
      return [out, sum];
    },
    inputs: ["rows", "rows", "vector", "vector"],
  },
  addRmsNorm: {
    compute: (x, residual, weight) => {
      const { out, sum } = addRmsNorm(x, residual, { weight });
      return [out, sum];
    },
    inputs: ["rows", "rows", "vector"],
  },
};
const names = Object.keys(computations);

/** Leaves on a backend, the same numbers everywhere. */
function leavesOf(
  name: string,
  backend: BackendName,
  dtype: DType,
  [rows, columns]: readonly [number, number],
): Tensor[] {
  const random = new Random(hash(name));
  return computations[name].inputs.map((kind) => {
    const shape = kind === "rows" ? [rows, columns] : [columns];
    const block = makeBlock({ shape, dtype: "float32" }, dtype, random);
    const leaf = place({ ...block, dtype }, "contiguous", backend, random);
    leaf.requiresGrad = true;
    return leaf;
  });
}

/** Random factors of results, always the same. */
const cotangentsOf = (outputs: readonly Tensor[], seed = 7): Tensor[] => {
  const random = new Random(seed);
  return outputs.map(({ shape, dtype }) =>
    place(makeBlock({ shape, dtype }, dtype, random), "contiguous", "reference", random),
  );
};

/** Σ c · y² over all results: its gradients depend on the results. */
const scalarOf = (outputs: readonly Tensor[]): Tensor =>
  cotangentsOf(outputs)
    .map((factor, at) => sum(mul(mul(outputs[at], outputs[at]), factor)) as Tensor)
    .reduce((total, part) => total.add(part) as Tensor);

/** The gradients of a scalar as a function of the inputs. */
const gradientsOf =
  (compute: Compute) =>
  (...inputs: Tensor[]): Tensor[] =>
    enableGrad(() => grad([scalarOf(compute(...inputs))], inputs, { createGraph: true }));

describe("norms have gradients of gradients", () => {
  for (const backend of ["cpu", "reference"] as const)
    test.each(names)(`%s has gradients of gradients on ${backend}`, (name) => {
      on(backend, () => {
        const { compute } = computations[name];
        gradcheck(gradientsOf(compute) as () => Tensor[], leavesOf(name, backend, "float64", [3, 5]));
      });
    });

  test("gradients of the third order equal finite differences", () => {
    const third = gradientsOf((...inputs) => gradientsOf(computations["layerNorm"].compute)(...inputs));
    on("cpu", () => gradcheck(third as () => Tensor[], leavesOf("layerNorm", "cpu", "float64", [2, 4])));
  });

  test("the gradient of a sum alone, and of the norm alone, is differentiable", () => {
    const parts: readonly Compute[] = [
      (x, residual) => [addRmsNorm(x, residual).sum],
      (x, residual) => [addRmsNorm(x, residual).out],
      (x, residual) => [addLayerNorm(x, residual).sum],
      (x, residual) => [addLayerNorm(x, residual).out],
    ];
    for (const compute of parts)
      on("cpu", () => {
        const [x, residual] = leavesOf("addRmsNorm", "cpu", "float64", [2, 4]) as [Tensor, Tensor];
        gradcheck(compute as () => Tensor[], [x, residual]);
        gradcheck(gradientsOf(compute) as () => Tensor[], [x, residual]);
      });
  });

  /**
   * Relative to the largest one: a gradient is a sum of products, each rounded to the dtype if it is a separate
   * operation.
   */
  const allowed = 16;
  const others: readonly (readonly [BackendName, DType])[] = [
    ...(tested.includes("metal")
      ? (["float32", "float16", "bfloat16"] as const).map((own) => ["metal", own] as const)
      : []),
    ...(["float32", "float16", "bfloat16"] as const).map((own) => ["cpu", own] as const),
  ];
  for (const [backend, dtype] of others)
    test.each(names)(`%s ${dtype} has gradients of gradients on ${backend}`, (name) => {
      const second = gradientsOf(gradientsOf(computations[name].compute));
      const numbers = (own: BackendName, kind: DType) =>
        on(own, () => {
          // The exact results are computed from the same numbers.
          const leaves = leavesOf(name, own, dtype, [3, 17]).map((leaf) => leaf.detach().to(kind));
          for (const leaf of leaves) leaf.requiresGrad = true;
          return second(...leaves).map((own) => Array.from(own.detach().dataSync() as ArrayLike<number>));
        });
      const exact = numbers("reference", "float64");
      for (const [at, own] of numbers(backend, dtype).entries()) {
        const largest = Math.max(...exact[at].map(Math.abs));
        const worst = Math.max(...own.map((value, k) => Math.abs(value - exact[at][k])));
        expect(worst / largest).toBeLessThan(allowed * epsilon[dtype]!);
      }
    });
});

testVariants(import.meta.path, "loses nothing to the mean on metal|read twice, on metal");

describe("rows far from zero are accurate", () => {
  const columns = 768;
  const random = new Random(3);
  const source = Float32Array.from({ length: 2 * columns }, () => 1e4 + random.next() * 2 - 1);

  /** Normalizes a row in float64, from the float32 numbers. */
  function exact(row: Float32Array): number[] {
    const mean = row.reduce((total, value) => total + value, 0) / columns;
    const variance = row.reduce((total, value) => total + (value - mean) ** 2, 0) / columns;
    return Array.from(row, (value) => (value - mean) / Math.sqrt(variance + 1e-5));
  }
  const expected = [...exact(source.slice(0, columns)), ...exact(source.slice(columns))];

  // A mean of 10,000 has an error of up to 5e-4 in float32; a variance computed as the difference of two squares has an
  // error of up to 6.
  test.each(tested)("layerNorm of 10,000 ± 1 loses nothing to the mean on %s", (backend) => {
    const out = on(backend, () => layerNorm(tensor(source, { shape: [2, columns] }))).dataSync();
    const worst = expected.reduce((most, value, at) => Math.max(most, Math.abs(out[at] - value)), 0);
    expect(worst).toBeLessThan(2e-6);
  });

  test.each(tested)("layerNorm of longer rows, which are read twice, on %s", (backend) => {
    const long = Float32Array.from({ length: 8200 }, (_, at) => source[at % columns]);
    const mean = long.reduce((total, value) => total + value, 0) / long.length;
    const variance = long.reduce((total, value) => total + (value - mean) ** 2, 0) / long.length;
    const out = on(backend, () => layerNorm(tensor(long))).dataSync();
    const worst = out.reduce((most, value, at) => {
      const want = (long[at] - mean) / Math.sqrt(variance + 1e-5);
      return Math.max(most, Math.abs(value - want));
    }, 0);
    expect(worst).toBeLessThan(2e-6);
  });

  test.each(tested)("gradients are off by no more than the mean's rounding on %s", (backend) => {
    const gradientFrom = (own: BackendName, dtype: "float32" | "float64") =>
      on(own, () => {
        const x = tensor(source, { shape: [2, columns] }).to(dtype);
        x.requiresGrad = true;
        const out = layerNorm(x);
        const [gradient] = grad([out], [x], {
          gradOutputs: [tensor(expected.map(Math.sin), { shape: [2, columns], dtype })],
        });
        return gradient.dataSync() as ArrayLike<number>;
      });
    const want = gradientFrom("reference", "float64");
    const got = gradientFrom(backend, "float32");
    const worst = Array.from(got).reduce((most, value, at) => Math.max(most, Math.abs(value - want[at])), 0);
    expect(worst).toBeLessThan(2e-3);
  });
});

test.each(tested)("values that are not finite affect their row, and the weight's sums, on %s", (backend) => {
  const rows = [
    [1, 2, 4, 8],
    [1, Number.NaN, 4, 8],
    [1, 2, Number.POSITIVE_INFINITY, 8],
    [3, -1, 0.5, 2],
  ];
  on(backend, () => {
    for (const compute of [layerNorm, rmsNorm] as const) {
      const [x, alone] = [rows, [rows[0], rows[3]]].map((own) => tensor(own, { requiresGrad: true }));
      const gradients = [x, alone].map((own) => {
        const [gradient] = grad([compute(own)], [own], {
          gradOutputs: [tensor(own.shape[0] === 4 ? slopes : [slopes[0], slopes[3]])],
        });
        return gradient.toArray() as number[][];
      });
      expect([gradients[0][0], gradients[0][3]]).toEqual(gradients[1]);
      expect(gradients[0][1].every(Number.isNaN)).toBe(true);
    }
  });
});
const slopes = [
  [1, 0.5, -1, 2],
  [1, 2, 3, 4],
  [0.5, 1, 2, -2],
  [-1, 0.25, 3, 1],
];

describe("results of normalizations are bit-identical", () => {
  /**
   * Hashes of results and gradients: rows of a SIMD-group, of a threadgroup and longer ones, in more than one chunk.
   */
  function allBytes(backend: BackendName, shapes: readonly (readonly [number, number])[]): Record<string, string[]> {
    return Object.fromEntries(
      names.flatMap((name) =>
        shapes.map((shape) => [`${name} of [${shape.join(", ")}]`, on(backend, () => bytesOf(name, backend, shape))]),
      ),
    );
  }

  function bytesOf(name: string, backend: BackendName, shape: readonly [number, number]): string[] {
    const leaves = leavesOf(name, backend, "float32", shape);
    const outputs = computations[name].compute(...leaves);
    const gradients = grad(outputs, leaves, { gradOutputs: cotangentsOf(outputs) });
    return [...outputs, ...gradients].map((own) =>
      Bun.hash(new Uint8Array(own.detach().dataSync().slice().buffer)).toString(16),
    );
  }

  test("results have the same bits on any number of the cpu's threads", () => {
    const shapes = [
      [600, 96],
      [130, 700],
    ] as const;
    const { native } = cpuLibrary();
    const { threads } = cpuInfo(native);
    const first = allBytes("cpu", shapes);
    try {
      for (const count of [1, 2, 3, 7]) {
        configure(native, "threads", String(count));
        expect(allBytes("cpu", shapes)).toEqual(first);
      }
    } finally {
      configure(native, "threads", String(threads));
    }
  });

  const isSoftware = tested.includes("metal") && metalContext().isSoftware;
  const before = isSoftware ? metalContext().report().settings : null;
  afterAll(() => {
    for (const name of ["seed", "workers"]) if (before?.[name]) metalContext().configure(name, before[name]);
  });

  test.skipIf(!isSoftware)(
    "results have the same bits in any order of threadgroups and with any number of workers",
    () => {
      const shapes = [
        [41, 40],
        [9, 600],
        [6, 4100],
        [3, 8200],
      ] as const;
      metalContext().configure("check", false);
      const first = allBytes("metal", shapes);
      for (const [seed, workers] of [
        [1, 1],
        [2, 2],
        [3, 5],
      ] as const) {
        metalContext().configure("seed", seed);
        metalContext().configure("workers", workers);
        expect(allBytes("metal", shapes)).toEqual(first);
      }
    },
  );
});

test.skipIf(!tested.includes("metal"))("threadgroups that process several rows give the cpu's results", () => {
  const shape = [4099, 1026] as const; // two rows per threadgroup, and one for the last
  const [metal, cpu] = (["metal", "cpu"] as const).map((backend) =>
    on(backend, () => computations["rmsNorm"].compute(...leavesOf("rmsNorm", backend, "float16", shape))[0]),
  );
  const [got, wanted] = [metal, cpu].map((own) => own.detach().dataSync() as Float32Array);
  expect(got.every((value, at) => Math.abs(value - wanted[at]) <= 2 ** -9 * Math.abs(wanted[at]))).toBe(true);
});

test.each(tested)("rows of any strides are read in place on %s", (backend) => {
  on(backend, () => {
    const [whole] = leavesOf("layerNorm", backend, "float32", [6, 8]);
    const x = whole.detach().reshape([2, 3, 8]).transpose(0, 2).slice({ dim: 0, step: 2 }).detach();
    x.requiresGrad = true;
    resetCodepaths();
    grad([layerNorm(x)], [x], { gradOutputs: [x.detach()] });
    expect(codepaths().map(({ operation, backend: own }) => [operation, own])).toEqual([
      ["normalizationForward", backend],
      ["normalizationBackward", backend],
    ]);
  });
});
