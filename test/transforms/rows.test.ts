/** Batch norm, rotary embeddings, bags of embeddings, distances and losses under vmap: one call for all examples. */
import { describe, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { getBackend } from "../../src/backend/policy.ts";
import type { Tensor } from "../../src/index.ts";
import * as orchard from "../../src/index.ts";
import { places } from "../linalg/run.ts";
import { usually } from "../support/repeats.ts";
import { seed } from "../support/some.ts";
import { type Call, COUNT, compare } from "./compare.ts";

const { add, manualSeed, mul, rand, randint, randn, square, sum, tensor, transforms, withBackend } = orchard;

/** Every combination of operands that have examples, except none. */
const combinations = (count: number): (0 | null)[][] =>
  Array.from({ length: 2 ** count - 1 }, (_, number) =>
    Array.from({ length: count }, (_each, at) => ((number + 1) & (1 << at) ? 0 : null)),
  );

/** Compares a function, and its gradient with respect to some operands, with each combination of shared operands. */
function compareAll(f: Call, values: readonly Tensor[], toward: readonly number[], tolerance: number): void {
  // metal is simulated: usually a third of many combinations runs there
  const isUsual = (_: unknown, at: number) => getBackend() !== "metal" || values.length < 4 || at % 3 === 0;
  for (const inDims of usually(combinations(values.length), isUsual)) {
    const given = values.map((x, at) => (inDims[at] === null ? x.select(0, 1) : x));
    compare(f, given, inDims, tolerance);
    for (const at of toward) {
      const gradient = transforms.grad((...own: Tensor[]) => sum(square(f(...own))) as Tensor, at) as Call;
      compare(gradient, given, inDims, 20 * tolerance);
    }
  }
}

describe.each(places)("vmap of functions of rows, $backend $dtype", ({ backend, dtype }) => {
  const tolerance = dtype === "float64" ? 1e-11 : 1e-5;
  const of = (shape: number[]): Tensor => randn([COUNT, ...shape], { dtype });
  const on = (body: () => void) => () => {
    manualSeed(seed);
    if (backend === "metal") metalContext().configure("check", true);
    withBackend(backend, body);
  };

  for (const training of [true, false])
    test(
      `batchNorm agrees with single examples, ${training ? "training" : "evaluation"}`,
      on(() => {
        const positive = (shape: number[]): Tensor => add(rand([COUNT, ...shape], { dtype }), 0.5) as Tensor;
        const shapes = [
          [4, 2],
          [3, 2, 5],
          [2, 3, 2, 2],
        ];
        for (const shape of usually(shapes, ({ length }) => backend !== "metal" || length === 3)) {
          const channels = shape[1];
          const f: Call = (x, weight, bias, mean, variance) => {
            const running = training ? {} : { runningMean: mean, runningVar: variance };
            return orchard.batchNorm(x, { weight: weight, bias: bias, training, ...running });
          };
          const values = [of(shape), positive([channels]), of([channels]), of([channels]), positive([channels])];
          compareAll(f, training ? values.slice(0, 3) : values, [0, 1, 2], tolerance);
          const [x, weight, ...others] = values as [Tensor, Tensor, ...Tensor[]];
          const shared = others.map((each) => each.select(0, 0));
          const pairs: Call = (own) => transforms.vmap((factors: Tensor) => f(own, factors, ...shared))(weight);
          compare(pairs, [x], [0], tolerance);
        }
      }),
    );

  test(
    "rope with positions of a sequence or of a batch agrees with single examples",
    on(() => {
      const x = of([2, 3, 4, 6]);
      compareAll((own) => orchard.rope(own, { interleaved: true, offset: 5 }), [x], [0], tolerance);
      const sequence = randint(0, 50, [COUNT, 4]);
      const batch = randint(0, 50, [COUNT, 2, 4]);
      for (const positions of [sequence, batch]) {
        const f: Call = (own, at) => orchard.rope(own, { positions: at as Tensor<"int64"> });
        compareAll(f, [x, positions], [0], tolerance);
      }
    }),
  );

  for (const mode of ["sum", "mean", "max"] as const)
    test(
      `embeddingBag agrees with single examples, ${mode}`,
      on(() => {
        const table = of([5, 3]);
        const rows = randint(0, 5, [COUNT, 4, 3]);
        for (const paddingIndex of [undefined, 2])
          compareAll(
            (index, own) => orchard.embeddingBag(index, own, { mode, paddingIndex }),
            [rows, table],
            [1],
            tolerance,
          );
        const all = randint(0, 5, [COUNT, 7]);
        const offsets = tensor(
          [
            [0, 2, 2, 4],
            [0, 0, 3, 7],
            [0, 1, 5, 6],
          ],
          { dtype: "int64" },
        );
        for (const includeLastOffset of [false, true]) {
          const f: Call = (index, own, starts) =>
            orchard.embeddingBag(index, own, { offsets: starts, mode, includeLastOffset, paddingIndex: 0 });
          compareAll(f, [all, table, offsets], [1], tolerance);
        }
        if (mode !== "sum") return;
        const f: Call = (index, own, factors) => orchard.embeddingBag(index, own, { mode, perSampleWeights: factors });
        compareAll(f, [rows, table, of([4, 3])], [1, 2], tolerance);
      }),
    );

  test(
    "embedding agrees with single examples, even if only gradients differ between them",
    on(() => {
      compareAll(
        (index, own) => orchard.embedding(index, own),
        [randint(0, 5, [COUNT, 2, 4]), of([5, 3])],
        [1],
        tolerance,
      );
      const [index, table] = [randint(0, 5, [4, 3]), randn([5, 3], { dtype })];
      for (const mode of ["sum", "mean", "max"] as const) {
        const pulled: Call = (cotangent) =>
          transforms.grad((own: Tensor) => sum(mul(orchard.embeddingBag(index, own, { mode }), cotangent)) as Tensor)(
            table,
          );
        compare(pulled, [of([4, 3])], [0], tolerance);
      }
      const factors = randn([4, 3], { dtype });
      const pulled: Call = (cotangent) => {
        const f = (own: Tensor) => orchard.embeddingBag(index, table, { mode: "sum", perSampleWeights: own });
        return transforms.grad((own: Tensor) => sum(mul(f(own), cotangent)) as Tensor)(factors);
      };
      compare(pulled, [of([4, 3])], [0], tolerance);
    }),
  );

  test(
    "pdist, and crossEntropy with different weights, agree with single examples",
    on(() => {
      compareAll((x) => orchard.pdist(x), [of([5, 3])], [0], tolerance);
      const positive = add(rand([COUNT, 4], { dtype }), 0.5) as Tensor;
      for (const reduction of ["mean", "sum", "none"] as const) {
        const f: Call = (logits, targets, weight) =>
          orchard.crossEntropy(logits, targets, { weight: weight, reduction });
        compareAll(f, [of([6, 4]), randint(0, 4, [COUNT, 6]), positive], [0], tolerance);
      }
    }),
  );

  test(
    "indices of several axes agree with single examples",
    on(() => {
      const f: Call = (x, i, j) => orchard.at(x, i as Tensor<"int64">, j as Tensor<"int64">);
      compareAll(f, [of([4, 5, 2]), randint(-4, 4, [COUNT, 3, 1]), randint(-5, 5, [COUNT, 2])], [0], tolerance);
    }),
  );
});
