/** Compares products of random kinds, sizes, dtypes and layouts with their definition in float64. */
import { addmm } from "../../../../src/ops/matmul/addmm.ts";
import { linear } from "../../../../src/ops/matmul/linear.ts";
import { matmul } from "../../../../src/ops/matmul/matmul.ts";
import { product } from "../../../../src/ops/matmul/product.ts";
import { transposed } from "../../../../src/ops/matmul/views.ts";
import type { DType } from "../../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../../src/tensor/tensor.ts";
import { matmulOracle } from "../../../ops/matmul/products.ts";
import { type Block, type Layout, makeBlock, place, Random, rounder } from "../../../ops/samples.ts";
import { compare } from "../../../ops/tolerance.ts";

/** A random product: how to run it, and its definition, rounded after each step. */
export interface DrawnProduct {
  readonly name: string;
  readonly dtype: DType;
  run(): Tensor;
  expected(round: (value: number) => number): readonly number[];
}

/** Layouts with contiguous rows or columns, which the library supports. */
export const denseLayouts = ["contiguous", "offset", "transposed"] as const satisfies readonly Layout[];

const kinds = ["matmul", "batch", "heads", "linear", "addmm", "gradients"] as const;

/** Draws a product. Each operand has one of the layouts. */
export function drawProduct(seed: number, layouts: readonly Layout[] = denseLayouts): DrawnProduct {
  const random = new Random(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[random.integer(0, items.length - 1)]!;
  const kind = kinds[seed % kinds.length];
  const dtype = pick<DType>(["float32", "float16", "bfloat16"]);
  const [m, n, k] = [random.integer(2, 40), random.integer(2, 40), random.integer(1, 70)];
  const block = (shape: readonly number[]) => makeBlock({ shape }, dtype, random);
  const put = (given: Block) => place(given, pick(layouts), "metal", random);
  // A batch is stored as it is, or with its matrices transposed.
  const putBatch = (given: Block) =>
    random.next() < 0.5
      ? place(given, pick(["contiguous", "offset"]), "metal", random)
      : transposed(place(turned(given), pick(["contiguous", "offset"]), "metal", random));
  const name = `${seed}: ${kind} ${dtype} ${m} ${n} ${k}`;
  const alpha = pick([1, -0.5]);

  if (kind === "linear") {
    const [x, weight, bias] = [block([m, k]), block([n, k]), block([n])];
    const operands = [put(x), put(weight), place(bias, pick(["contiguous", "offset"]), "metal", random)] as const;
    return {
      name,
      dtype,
      run: () => linear(...operands),
      expected: (round) =>
        matmulOracle(x, turned(weight), round).values.map((sum, at) => round(sum + bias.values[at % n])),
    };
  }
  const shapes = batchShapes(kind, { m, n, k }, random);
  const [a, b] = [block(shapes[0]), block(shapes[1])];
  if (kind === "addmm") {
    const [input, beta] = [block([m, n]), pick([1, 2])];
    const operands = [place(input, pick(["contiguous", "offset"]), "metal", random), put(a), put(b)] as const;
    return {
      name,
      dtype,
      run: () => addmm(...operands, { alpha, beta }),
      expected: (round) =>
        matmulOracle(a, b, round).values.map((sum, at) => round(alpha * sum + beta * input.values[at])),
    };
  }
  // The gradients of a product are products with transposed factors.
  const isTurned = kind === "gradients";
  const operands = kind === "batch" || kind === "heads" ? [putBatch(a), putBatch(b)] : [put(a), put(b)];
  const run = isTurned
    ? () => product(transposed(operands[1]), transposed(operands[0]), alpha)
    : () => matmul(operands[0], operands[1]);
  return {
    name,
    dtype,
    run,
    expected: (round) =>
      isTurned
        ? matmulOracle(turned(b), turned(a), round).values.map((sum) => round(alpha * sum))
        : matmulOracle(a, b, round).values,
  };
}

/** The shapes of both factors: matrices, or batches that broadcast. */
function batchShapes(
  kind: (typeof kinds)[number],
  { m, n, k }: { m: number; n: number; k: number },
  random: Random,
): readonly [readonly number[], readonly number[]] {
  const [batch, heads] = [random.integer(2, 4), random.integer(2, 5)];
  if (kind === "batch")
    return [
      [batch, m, k],
      [random.next() < 0.3 ? 1 : batch, k, n],
    ];
  if (kind === "heads")
    return [
      [batch, heads, m, k],
      [batch, random.next() < 0.5 ? 1 : heads, k, n],
    ];
  return [
    [m, k],
    [k, n],
  ];
}

/** Swaps the last two axes of a block. */
function turned({ shape, dtype, values }: Block): Block {
  const [rows, columns] = shape.slice(-2) as [number, number];
  const size = rows * columns;
  const places = values.map((_, at) => {
    const [matrix, within] = [Math.floor(at / size), at % size];
    return matrix * size + (within % rows) * columns + Math.floor(within / rows);
  });
  return { shape: [...shape.slice(0, -2), columns, rows], dtype, values: places.map((from) => values[from]) };
}

/** Runs a product. Returns a description of the difference from its definition, if there is one. */
export function problemsOf({ name, dtype, run, expected }: DrawnProduct): string[] {
  const got = Array.from(run().dataSync() as ArrayLike<number>);
  const mismatch = compare(dtype, got, expected(exact), expected(rounder(dtype)), { flash: true });
  return mismatch ? [`${name}: ${JSON.stringify(mismatch)}`] : [];
}

const exact = (value: number): number => value;
