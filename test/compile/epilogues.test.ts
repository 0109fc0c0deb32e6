/** Matrix products and the elementwise operations on their results, drawn: fused on cpu, the bits match plain calls. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import * as orchard from "../../src/index.ts";
import { compile, loadProgram, manualSeed, randn, type Tensor, withBackend } from "../../src/index.ts";
import { hash, Random } from "../ops/samples.ts";
import { testFolder } from "../support/folder.ts";
import { repeats } from "../support/repeats.ts";

const { path: folder } = testFolder("epilogues");

/** Rows, columns and terms of products: by dot products, small ones, in parts of columns, in parts of the sum. */
const sizes = [
  ...[[64, 512, 196] as const, [40, 2048, 130] as const, [128, 96, 64] as const, [8, 4096, 160] as const],
  ...[[700, 33, 70] as const, [260, 640, 400] as const, [24, 8192, 20] as const, [64, 64, 4000] as const],
];
const dtypes = ["float32", "float32", "float32", "bfloat16", "float64", "float16"] as const;

type Step = (values: readonly Tensor[], others: Others) => Tensor;

interface Others {
  readonly residual: Tensor;
  readonly row: Tensor;
  readonly column: Tensor;
}

/** Steps on the latest value, or on an earlier one. */
const steps: readonly Step[] = [
  ([...values]) => orchard.relu(values.at(-1)!),
  ([...values]) => orchard.gelu(values.at(-1)! as Tensor<"float32">, { approximate: "tanh" }),
  ([...values]) => orchard.silu(values.at(-1)!),
  ([...values]) => values.at(-1)!.mul(0.5),
  ([...values], { residual }) => values.at(-1)!.add(residual),
  ([...values], { row }) => values.at(-1)!.add(row),
  ([...values], { column }) => values.at(-1)!.mul(column),
  ([first, ...values]) => orchard.where(first.gt(0), values.at(-1) ?? first, first),
  ([...values]) => values.at(-1)!.to("float32").exp().to(values[0].dtype),
  ([first, ...values]) => (values.at(-1) ?? first).sub(first),
];

function drawn(seed: number) {
  const random = new Random(hash(`epilogue ${seed}`));
  const pick = <Value>(values: readonly Value[]): Value => values[random.integer(0, values.length - 1)];
  const [rows, columns, terms] = pick(sizes);
  const dtype = pick(dtypes);
  const isBatched = rows % 4 === 0 && random.next() < 0.3;
  const chosen = Array.from({ length: random.integer(1, 6) }, () => pick(steps));
  const isReturned = chosen.map(() => random.next() < 0.2);
  const [isTurned, hasBias] = [random.next() < 0.5, random.next() < 0.5];
  const shapeOf = (last: number) => (isBatched ? [4, rows / 4, last] : [rows, last]);
  const make = () => ({
    x: randn(shapeOf(terms)).to(dtype),
    weight: (isTurned ? randn([columns, terms]) : randn([terms, columns]).transpose(0, 1)).to(dtype),
    bias: randn([columns]).to(dtype),
    residual: randn(shapeOf(columns)).to(dtype),
    row: randn([columns]).to(dtype),
    column: randn(shapeOf(1)).to(dtype),
  });
  const fn = ({ x, weight, bias, ...others }: ReturnType<typeof make>): Tensor[] => {
    const values: Tensor[] = [hasBias ? orchard.linear(x, weight, bias) : orchard.linear(x, weight)];
    for (const step of chosen) values.push(step(values, others));
    return values.filter((_, at) => at === values.length - 1 || isReturned[at]);
  };
  return { fn, make, describe: `${dtype} ${rows} x ${columns} x ${terms}` };
}

const bitsOf = (tensors: readonly Tensor[]): string[] =>
  tensors.map((tensor) => Buffer.from(tensor.contiguous().storage.hostBytes()).toString("hex"));

const seeds = Array.from({ length: repeats({ usual: 40, all: 2_000 }) }, (_, seed) => seed);

test.each(seeds)("an epilogue has the bits of plain calls, seed %d", (seed) =>
  withBackend("cpu", () =>
    orchard.tidy(() => {
      manualSeed(seed);
      const { fn, make, describe } = drawn(seed);
      const compiled = compile(fn);
      for (let call = 0; call < 5; call++) {
        const given = make();
        expect(bitsOf(compiled(given)) + describe).toEqual(bitsOf(fn(given)) + describe);
      }
      expect(compiled.explain()).toMatch(/[23] replays/);
    }),
  ),
);

test("a linear layer, its activation and a residual are one call, also in a saved program", async () => {
  const weight = withBackend("cpu", () => randn([256, 128]));
  const compiled = compile((x: Tensor, y: Tensor) => orchard.gelu(orchard.linear(x, weight)).add(y), {
    state: weight,
  });
  const given = withBackend("cpu", () => [randn([64, 128]), randn([64, 256])] as const);
  withBackend("cpu", () => {
    for (let call = 0; call < 3; call++) compiled(...given);
  });
  expect(compiled.explain()).toContain("matmul + unary + binary");
  // three accesses less: gelu reads the product from a cache, and the sum reads what gelu wrote to a buffer
  const [bytes, fused] = /(\d+) bytes of operands, (\d+) with/.exec(compiled.explain())!.slice(1).map(Number);
  expect(bytes! - fused!).toBe(3 * 4 * 64 * 256);
  const path = join(folder, "epilogue.program");
  await compiled.save(path);
  const loaded = loadProgram(path);
  const both = withBackend("cpu", () => [compiled(...given), loaded(...given) as Tensor]);
  expect(bitsOf([both[1]])).toEqual(bitsOf([both[0]]));
  loaded.dispose();
});
