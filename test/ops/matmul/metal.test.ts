// Properties of Metal's matrix products besides correct results: tiles of every size, the bytes that are moved, and
// copies that are avoided.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type MetalContext, metalContext } from "../../../src/backend/metal/context.ts";
import { withGpuFamily } from "../../../src/backend/metal/gpu_family.ts";
import { pipelineFor } from "../../../src/backend/metal/launch.ts";
import type { DispatchCounters } from "../../../src/backend/metal/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { contiguous } from "../../../src/ops/copy/copy.ts";
import { ones } from "../../../src/ops/creation/full.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { addmm } from "../../../src/ops/matmul/addmm.ts";
import { launchProduct } from "../../../src/ops/matmul/matmul.metal.ts";
import { matmul } from "../../../src/ops/matmul/matmul.ts";
import { planOf } from "../../../src/ops/matmul/plan.ts";
import { problemOf } from "../../../src/ops/matmul/problem.ts";
import {
  fragmentTiles,
  REGISTER_BUDGET,
  registersOf,
  type Tile,
  threadgroupBytes,
  threadsOf,
  tileFor,
  tiles,
} from "../../../src/ops/matmul/tiles.ts";
import { expand } from "../../../src/ops/view/expand.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import { bytesOf, type DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { checkFindings } from "../run.ts";
import { type Block, expandedBlock, type Layout, layouts, makeBlock, place, Random, rounder } from "../samples.ts";
import { compare } from "../tolerance.ts";
import { matmulOracle } from "./products.ts";

const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
const metalTypes = { float32: "float", float16: "half", bfloat16: "bfloat" } as const;
const nameOf = ({ rows, columns, depth }: Tile) => `${rows}x${columns}x${depth}`;

/** The kernels with tiles, the elements that they read at once, and the dtypes that they multiply. */
const tileTables = [
  { kernel: "tiled", table: tiles, constants: [0, 0, 0, 0], width: 4, dtypes: ["float32", "float16", "bfloat16"] },
  {
    kernel: "fragments",
    table: fragmentTiles,
    constants: [0, 0, 0, 0, 0, 0],
    width: 8,
    dtypes: ["float16", "bfloat16"],
  },
] as const;
type Tiled = (typeof tileTables)[number]["kernel"];

/** A matrix, and its values for the oracle. */
interface PlacedBlock {
  readonly tensor: Tensor;
  readonly block: Block;
}

function operandOf(shape: readonly number[], dtype: DType, layout: Layout, random: Random): PlacedBlock {
  const made = makeBlock({ shape }, dtype, random);
  const block = layout === "expanded" ? expandedBlock(made) : made;
  return { tensor: place(block, layout, "metal", random), block };
}

function turned({ tensor, block: { shape, values, dtype } }: PlacedBlock): PlacedBlock {
  const [rows, columns] = shape as [number, number];
  const exchanged = values.map((_, at) => values[(at % rows) * columns + Math.floor(at / rows)]);
  return { tensor: transpose(tensor, 0, 1), block: { shape: [columns, rows], dtype, values: exchanged } };
}

const zerosOf = (shape: readonly [number, number]) => ({
  shape,
  values: new Array<number>(shape[0] * shape[1]).fill(0),
});

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("matrix products on metal are correct", () => {
  let context: MetalContext;
  beforeAll(() => {
    context = metalContext();
    context.configure("check", true);
    context.configure("count", true);
  });
  afterAll(() => context.configure("count", false));

  /** The kernels that ran during `body`. */
  function dispatchesOf(body: () => Tensor | readonly Tensor[]): readonly DispatchCounters[] {
    context.wait();
    context.report({ clear: true });
    onMetal(body);
    context.wait();
    const { dispatches, findings } = context.report({ clear: true });
    expect(findings).toEqual([]);
    return dispatches;
  }

  const kernelsOf = (body: () => Tensor | readonly Tensor[]): string[] =>
    dispatchesOf(body).flatMap(({ kernel, count }) => new Array<string>(count).fill(kernel));

  /** A tile's kernel, into a result with gaps or without, compared with the formula. */
  function expectProduct(
    kernel: Tiled,
    tile: Tile,
    a: PlacedBlock,
    b: PlacedBlock,
    random: Random,
    { layout = "strided", splits = 1 }: { readonly layout?: Layout; readonly splits?: number } = {},
  ): void {
    const { dtype } = a.block;
    const out = place({ ...a.block, ...zerosOf([a.block.shape[0], b.block.shape[1]]) }, layout, "metal", random);
    const inputs = [a.tensor, b.tensor];
    const problem = problemOf({ operation: "matmul", inputs, outputs: [out], attributes: { alpha: 1, beta: 0 } });
    onMetal(() => launchProduct({ problem, kernel, tile, splits }));
    const exact = matmulOracle(a.block, b.block, (value) => value);
    const plain = matmulOracle(a.block, b.block, rounder(dtype));
    const got = Array.from(out.dataSync() as ArrayLike<number>);
    expect(compare(dtype, got, exact.values, plain.values, { flash: true })).toBeUndefined();
    checkFindings({ name: nameOf(tile) });
  }

  describe("tiles of matmul are correct", () => {
    const each = tileTables.flatMap(({ table, dtypes, ...rest }) =>
      table.flatMap((tile) => dtypes.map((dtype) => ({ ...rest, tile, dtype }))),
    );
    for (const { kernel, width, tile, dtype } of each) {
      const { rows, columns, depth } = tile;
      const name = `${kernel} ${nameOf(tile)}`;

      test(`tiles ${name} are correct in ${dtype}, in every layout, at their edges`, () => {
        const random = new Random(rows);
        for (const [m, n, k] of [
          [rows, columns, depth],
          [rows + 1, columns - 1, depth + 1],
          [rows - 1, columns + 1, 1],
        ] as const)
          for (const [at, layout] of layouts.entries()) {
            const a = operandOf([m, k], dtype, layout, random);
            const b = operandOf([k, n], dtype, layouts[(at * 5 + m) % layouts.length], random);
            expectProduct(kernel, tile, a, b, random);
          }
      });

      // The first tiles are in bounds along both axes, and the last ones are not.
      test(`tiles ${name} are correct in ${dtype}, read by ${width} elements`, () => {
        const random = new Random(columns);
        const [m, n, k] = [rows + width, columns + width, 2 * depth + width];
        const stored = (shape: readonly [number, number], byRows: boolean) =>
          byRows
            ? operandOf(shape, dtype, "offset", random)
            : turned(operandOf(shape.toReversed(), dtype, "offset", random));
        for (const aByRows of [true, false])
          for (const bByRows of [true, false]) {
            const [a, b] = [stored([m, k], aByRows), stored([k, n], bByRows)];
            expect([a, b].map(({ tensor }) => tensor.offset % width)).toEqual([0, 0]);
            const splits = aByRows === bByRows ? 1 : 2;
            expectProduct(kernel, tile, a, b, random, { layout: bByRows ? "offset" : "strided", splits });
          }
      });
    }

    test("tiles fit into the threadgroup memory and the threads of an M1", () => {
      for (const { kernel, tile, dtype, constants } of each) {
        const bytes = bytesOf(dtype);
        const type = metalTypes[dtype];
        const name = `${kernel}_${type}_${type}_${nameOf(tile)}`;
        const { info } = pipelineFor(context, { file: `matmul/${kernel}.metal`, name, constants });
        expect(info.staticThreadgroupBytes).toBe(threadgroupBytes(tile, bytes));
        expect(info.staticThreadgroupBytes).toBeLessThanOrEqual(32 * 1024);
        expect(threadsOf(tile)).toBeLessThanOrEqual(info.maxTotalThreads);
        // An NVIDIA GPU's thread can have 255 registers.
        expect(registersOf(tile, bytes)).toBeLessThanOrEqual(kernel === "tiled" ? REGISTER_BUDGET : 255);
      }
    });

    test.each([
      [2048, 2048, "64x64x32"],
      [1024, 1024, "64x64x32"],
      [4096, 256, "64x64x32"],
      [1023, 1024, "32x32x32"],
      [39, 40, "32x32x32"],
      [39, 39, "16x16x16"],
      [8, 40, "8x64x32"],
      [40, 8, "64x8x32"],
      [9, 4096, "16x64x32"],
      [4096, 16, "64x16x32"],
      [2, 2, "16x16x16"],
    ])("a result of %d x %d uses tiles of %s", (m, n, name) => {
      const [a, b] = onMetal(() => [expand(ones([1, 1]), [m, 3]), expand(ones([1, 1]), [3, n])]);
      const out = onMetal(() => expand(ones([1, 1]), [m, n]));
      const inputs = [a, b];
      const call = { operation: "matmul", inputs, outputs: [out], attributes: { alpha: 1, beta: 0 } };
      expect(nameOf(tileFor(problemOf(call)))).toBe(name);
      expect(planOf(problemOf(call)).kernel).toBe("tiled");
    });
  });

  test.each([
    [2048, 2048, "bfloat16", "fragments_bfloat_bfloat_64x128x64"],
    [512, 1024, "float16", "fragments_half_half_64x64x64"],
    [100, 300, "bfloat16", "fragments_bfloat_bfloat_32x32x64"],
    [100, 300, "float32", "tiled_float_float_32x32x32"],
  ] as const)("a result of %d x %d of %p uses %p on an NVIDIA GPU", (m, n, dtype, name) => {
    const run = () => matmul(ones([m, 3], { dtype }), ones([3, n], { dtype }));
    const kernels = kernelsOf(() => withGpuFamily("nvidia", run));
    expect(kernels.filter((kernel) => /^(fragments|tiled)/.test(kernel))).toEqual([name]);
  });

  const shapes = [[44, 42], [42], [1, 42], [44, 1]].map((shape) => ({ shape }));
  test.each(shapes)("an input of $shape is scaled and added on an NVIDIA GPU", ({ shape }) => {
    const random = new Random(7);
    const [input, a, b] = [shape, [44, 18], [18, 42]].map((each) =>
      place(makeBlock({ shape: each }, "float16", random), "contiguous", "metal", random),
    );
    const run = () => onMetal(() => addmm(input, a, b, { alpha: 0.5, beta: 2 })).toArray();
    expect(kernelsOf(() => withGpuFamily("nvidia", () => addmm(input, a, b)))).toEqual([
      "fragments_half_half_32x32x64",
    ]);
    expect(withGpuFamily("nvidia", run)).toEqual(run());
  });

  test.each<[number, number, boolean, string]>([
    [1, 40, false, "vector_across"], // a row times a matrix is computed as the transposed matrix times a column
    [1, 40, true, "vector_along"],
    [40, 1, false, "vector_along"],
    [1, 1, false, "vector_along"],
    [2, 40, false, "tiled"],
    [40, 2, false, "tiled"],
  ])("a result of %d x %d uses a kernel for vectors if it is one: transposed %p, %s", (m, n, isTransposed, name) => {
    const [a, b] = onMetal(() => [ones([m, 48]), isTransposed ? transpose(ones([n, 48]), 0, 1) : ones([48, n])]);
    const kernels = kernelsOf(() => matmul(a, b));
    expect(kernels).toHaveLength(1);
    expect(kernels[0]).toStartWith(`${name}_float_float`);
  });

  describe("no kernel copies an operand", () => {
    const small = (shape: readonly number[]) => onMetal(() => ones(shape));
    const square = () => transpose(small([40, 50]), 0, 1);
    const views: readonly (readonly [string, () => readonly [Tensor, Tensor]])[] = [
      ["transposed", () => [square(), transpose(small([33, 40]), 0, 1)]],
      ["with a step", () => [slice(small([80, 60]), { dim: 0, step: 2 }), slice(small([60, 70]), { dim: 1, step: 2 })]],
      ["broadcast along rows", () => [expand(small([1, 40]), [50, 40]), expand(small([40, 1]), [40, 33])]],
      ["a batch that is broadcast", () => [expand(small([1, 8, 9]), [3, 8, 9]), small([3, 9, 7])]],
      ["a batch between the axes", () => [transpose(small([8, 3, 9]), 0, 1), transpose(small([9, 3, 7]), 0, 1)]],
      ["a transposed matrix and a column", () => [square(), slice(small([80]), { dim: 0, step: 2 })]],
      ["a row and a transposed matrix", () => [slice(small([100]), { dim: 0, step: 2 }), square()]],
    ];
    test.each(views)("%s are not copied", (_, made) => {
      const [a, b] = made();
      const kernels = kernelsOf(() => matmul(a, b));
      expect(kernels).toHaveLength(1);
      expect(kernels[0]).toMatch(/^(tiled|vector_along|vector_across)_float_float/);
    });

    test("integers are not copied", () => {
      const [a, b] = onMetal(() => [ones([20, 30], { dtype: "int32" }), ones([33, 20], { dtype: "int32" })]);
      expect(kernelsOf(() => matmul(transpose(a, 0, 1), transpose(b, 0, 1)))).toEqual(["whole_int"]);
    });

    test("the bias of addmm, which is broadcast, is not copied", () => {
      const [bias, left, right] = [small([33]), square(), transpose(small([33, 40]), 0, 1)];
      const kernels = kernelsOf(() => addmm(bias, left, right, { beta: 2 }));
      expect(kernels).toEqual(["tiled_float_float_32x32x32"]);
    });

    test("operands of gradients, which are transposed, are not copied", () => {
      const leaves = [small([40, 50]), small([50, 33])] as const;
      for (const leaf of leaves) leaf.requiresGrad = true;
      const cotangent = small([40, 33]);
      const product = onMetal(() => matmul(...leaves));
      const kernels = kernelsOf(() => grad([product], [...leaves], { gradOutputs: [cotangent] }));
      expect(kernels).toEqual(new Array(2).fill("tiled_float_float_32x32x32"));
    });
  });

  /**
   * Elements of the operands that a product reads. The difference between float32 and float16 is 2 bytes per element:
   * parameters, which are counted too, are the same.
   */
  function elementsOf(m: number, k: number, n: number, turn: (x: Tensor) => Tensor) {
    const counters = (["float32", "float16"] as const).map((dtype: DType) => {
      const [a, b] = onMetal(() => [turn(ones([m, k], { dtype })), ones([k, n], { dtype })]);
      const [dispatch, ...others] = dispatchesOf(() => matmul(a, b));
      expect(others).toEqual([]);
      return dispatch.counters;
    });
    const difference = (name: "device_bytes_read" | "device_bytes_written") =>
      (counters[0][name] - counters[1][name]) / 2;
    return { read: difference("device_bytes_read"), written: difference("device_bytes_written") };
  }

  const asItIs = (x: Tensor): Tensor => x;
  /** The same matrix, stored by columns. */
  const byColumns = (x: Tensor): Tensor =>
    transpose(
      onMetal(() => contiguous(transpose(x, 0, 1))),
      0,
      1,
    );

  describe("kernels move the minimum that their tiles allow", () => {
    test.each([
      [64, 64, 64],
      [45, 37, 77],
      [33, 5, 130],
      [17, 20, 9],
      [1024, 3, 1025],
    ])("%d x %d times %d columns moves the minimum", (m, k, n) => {
      const { rows, columns } = tiles.find(({ fits }) => fits({ m, n }))!;
      const least = m * k * Math.ceil(n / columns) + k * n * Math.ceil(m / rows);
      for (const turn of [asItIs, byColumns])
        expect(elementsOf(m, k, n, turn)).toEqual({ read: least, written: m * n });
    });

    test.each([
      [64, 64],
      [19, 133],
      [1, 2050],
    ])("%d x %d times a column reads the matrix once, and the column once for 4 rows", (m, k) => {
      expect(elementsOf(m, k, 1, asItIs)).toEqual({ read: m * k + k * Math.ceil(m / 4), written: m });
    });

    test("a matrix stored by columns times a column: the matrix is read once, the column once for 32 rows", () => {
      expect(elementsOf(70, 133, 1, byColumns)).toEqual({ read: 70 * 133 + 3 * 133, written: 70 });
    });
  });

  test("results are the same in every order of threadgroups", () => {
    const random = new Random(3);
    const operand = (shape: readonly number[]) =>
      place(makeBlock({ shape }, "float32", random), "contiguous", "metal", random);
    const pairs = [
      [operand([45, 70]), operand([70, 50])],
      [operand([7, 1030]), operand([1030, 9])],
      [operand([3, 9001]), operand([9001])],
    ] as const;
    const run = (seed: number) => {
      context.configure("seed", seed);
      return onMetal(() => pairs.map(([a, b]) => Buffer.from(matmul(a, b).dataSync().buffer).toString("hex")));
    };
    const first = run(1);
    for (const seed of [2, 3]) expect(run(seed)).toEqual(first);
    context.configure("seed", 1);
  });
});
