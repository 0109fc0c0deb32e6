/** Tests the generated kernels of metal: groups, products with chains, and products with normalizations. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { metalContext } from "../../src/backend/metal/context.ts";
import * as orchard from "../../src/index.ts";
import { compile, nn, optim, randint, randn, type Tensor, withBackend } from "../../src/index.ts";
import { checkKernels } from "../support/checked.ts";
import { testFolder } from "../support/folder.ts";

checkKernels();

const onMetal = (body: () => void) => () => withBackend("metal", () => orchard.tidy(body));

/** Returns the dispatches of a call. */
function dispatches(run: () => unknown): number {
  const before = metalContext().statistics().dispatches;
  run();
  return metalContext().statistics().dispatches - before;
}

const listed = (results: readonly Tensor[]) => results.map((each) => each.toArray());

/** Compares replays with plain calls, and returns the dispatches of each. */
function compared<Values>(
  fn: (values: Values) => readonly Tensor[],
  draw: () => Values,
): { plain: number; compiled: number } {
  const compiled = compile(fn);
  for (let call = 0; call < 5; call++) {
    const values = draw();
    expect(listed(compiled(values))).toEqual(listed(fn(values)));
  }
  const values = draw();
  return { plain: dispatches(() => fn(values)), compiled: dispatches(() => compiled(values)) };
}

/** Rows, terms of a sum and columns: tiles of 16 x 16 and 32 x 32, partial ones, and sums that are not split. */
const sizes = [
  [40, 48, 72],
  [33, 20, 100],
  [64, 33, 128],
] as const;

describe("a product and the operations on its elements are one dispatch", () => {
  test.each([
    ...sizes.map((of) => ["float32", false, of] as const),
    ["float16", false, sizes[0]],
    ["bfloat16", true, sizes[1]],
    ["float32", true, sizes[2]],
  ] as const)("%s is one dispatch, contraction %p, %p", (dtype, contract, [m, k, n]) =>
    withBackend("metal", () => {
      metalContext().configure("contract", contract);
      try {
        const drawn = (...shape: number[]): Tensor => randn(shape).to(dtype);
        const draw = () => ({ x: drawn(m, k), weight: drawn(n, k), bias: drawn(n), residual: drawn(m, n) });
        const layer = ({ x, weight, bias, residual }: ReturnType<typeof draw>) => {
          const before = orchard.linear(x, weight, bias);
          return [before, orchard.gelu(before, { approximate: "tanh" }).mul(1.5).add(residual)] as const;
        };
        const found = compared(layer, draw);
        expect([found.plain, found.compiled]).toEqual([4, 1]);
        const onlyLast = (values: ReturnType<typeof draw>) => [layer(values)[1]];
        expect(compared(onlyLast, draw).compiled).toBe(1);
      } finally {
        metalContext().configure("contract", false);
      }
    }),
  );

  test("with contraction, a scaled product and a sum after it round twice", () =>
    withBackend("metal", () => {
      metalContext().configure("contract", true);
      try {
        type Triple = Readonly<Record<"x" | "y" | "z", Tensor>>;
        const draw = (): Triple => ({ x: randn([40, 40]), y: randn([40, 40]), z: randn([40, 40]) });
        const scaled = ({ x, y, z }: Triple) => [orchard.addmm(z, x, y, { alpha: 0.7, beta: 0 }).add(z)];
        expect(compared(scaled, draw)).toEqual({ plain: 2, compiled: 1 });
      } finally {
        metalContext().configure("contract", false);
      }
    }));

  test(
    "an operation on the transposed product, or on a part of it, is a separate dispatch",
    onMetal(() => {
      type Pair = Readonly<Record<"x" | "y", Tensor>>;
      const draw = (): Pair => ({ x: randn([40, 40]), y: randn([40, 40]) });
      const transposed = ({ x, y }: Pair) => [x.matmul(y).transpose(0, 1).contiguous().neg()];
      expect(compared(transposed, draw).compiled).toBeGreaterThan(1);
      const halves = ({ x, y }: Pair) => [
        x
          .matmul(y)
          .narrow(0, 0, 20)
          .add(y.narrow(0, 0, 20)),
      ];
      expect(compared(halves, draw).compiled).toBe(2);
    }),
  );
});

describe("a product and the normalization of its rows are one dispatch", () => {
  test.each([
    [64, 48, 128, "float32"],
    [65, 40, 96, "float32"],
    [72, 33, 100, "float16"],
  ] as const)("%p x %p x %p is one dispatch, %s", (rows, k, width, dtype) =>
    withBackend("metal", () => {
      const drawn = (...shape: number[]): Tensor => randn(shape).to(dtype);
      const draw = () => ({
        x: drawn(rows, k),
        weight: drawn(width, k),
        residual: drawn(rows, width),
        scale: drawn(width),
        bias: drawn(width),
      });
      const layer = ({ x, weight, residual, scale, bias }: ReturnType<typeof draw>) => {
        const product = orchard.linear(x, weight);
        return [product, orchard.layerNorm(product.add(residual), [width], { weight: scale, bias })] as const;
      };
      compared(layer, draw);
      const plainRows = ({ x, weight, scale }: ReturnType<typeof draw>) => [
        orchard.rmsNorm(orchard.linear(x, weight), [width], { weight: scale }),
      ];
      const found = compared(plainRows, draw);
      expect([found.plain, found.compiled]).toEqual([2, 1]);
    }),
  );
});

describe("a product, the normalization of its rows and a product of them are one dispatch", () => {
  test.each([
    [64, 48, 128, 300, "float32"],
    [70, 24, 100, 40, "bfloat16"],
  ] as const)("%p x %p x %p x %p is one dispatch, %s", (rows, k, width, out, dtype) =>
    withBackend("metal", () => {
      const drawn = (...shape: number[]): Tensor => randn(shape).to(dtype);
      const draw = () => ({
        x: drawn(rows, k),
        weight: drawn(width, k),
        scale: drawn(width),
        second: drawn(out, width),
        residual: drawn(rows, out),
      });
      type Drawn = ReturnType<typeof draw>;
      const plain = ({ x, weight, scale, second }: Drawn) => [
        orchard.linear(orchard.rmsNorm(orchard.linear(x, weight), [width], { weight: scale }), second),
      ];
      expect(compared(plain, draw)).toEqual({ plain: 3, compiled: 1 });
      const activated = (values: Drawn) => [orchard.silu(plain(values)[0]).add(values.residual)];
      expect(compared(activated, draw)).toEqual({ plain: 5, compiled: 1 });
      const transposed = ({ x, weight, scale }: Drawn) => [
        orchard.rmsNorm(orchard.linear(x, weight), [width], { weight: scale }).transpose(0, 1).matmul(x),
      ];
      compared(transposed, draw);
    }),
  );
});

describe("the gradients of a weight and of a bias read the same gradient in one dispatch", () => {
  test.each([
    [40, 48, 72, "float32"],
    [33, 70, 19, "float32"],
    [120, 33, 100, "float16"],
    [9, 260, 31, "bfloat16"],
  ] as const)("%p rows, %p to %p, %s", (rows, inputs, outputs, dtype) =>
    withBackend("metal", () => {
      const drawn = (...shape: number[]): Tensor => randn(shape).to(dtype);
      const draw = () => ({ gradient: drawn(rows, outputs), x: drawn(rows, inputs), other: drawn(rows, outputs) });
      type Drawn = ReturnType<typeof draw>;
      const both = ({ gradient, x }: Drawn) => [gradient.transpose(0, 1).matmul(x), gradient.sum(0)];
      expect(compared(both, draw)).toEqual({ plain: 2, compiled: 1 });
      const apart = ({ gradient, x, other }: Drawn) => [gradient.transpose(0, 1).matmul(x), other.sum(0)];
      expect(compared(apart, draw)).toEqual({ plain: 2, compiled: 2 });
    }),
  );
});

test("a product is not stored apart from its normalized rows if nothing else reads it", () =>
  withBackend("metal", () => {
    const draw = () => ({ x: randn([40, 24]), weight: randn([96, 24]), scale: randn([96]) });
    type Drawn = ReturnType<typeof draw>;
    const both = ({ x, weight, scale }: Drawn) => {
      const product = orchard.linear(x, weight);
      return [orchard.rmsNorm(product, [96], { weight: scale }), product];
    };
    const onlyRows = (values: Drawn) => both(values).slice(0, 1);
    const bytesOf = (fn: (values: Drawn) => readonly Tensor[]) => {
      expect(compared(fn, draw).compiled).toBe(1);
      const compiled = compile(fn);
      for (let call = 0; call < 3; call++) compiled(draw());
      const [, plain, fused] = / (\d+) bytes of operands, (\d+) with fusion/.exec(compiled.explain())!;
      return Number(plain) - Number(fused);
    };
    const bytes = 4 * 40 * 96;
    expect([bytesOf(onlyRows), bytesOf(both)]).toEqual([2 * bytes, bytes]);
  }));

test("a product of normalized rows whose sum reads rows of other threadgroups is a separate dispatch", () =>
  withBackend("metal", () => {
    const draw = () => ({ x: randn([64, 24]), weight: randn([64, 24]), second: randn([64, 64]), scale: randn([64]) });
    const both = ({ x, weight, second, scale }: ReturnType<typeof draw>) => {
      const rows = orchard.rmsNorm(orchard.linear(x, weight), [64], { weight: scale });
      return [orchard.linear(rows, second).add(rows.transpose(0, 1))];
    };
    expect(compared(both, draw)).toEqual({ plain: 4, compiled: 2 });
  }));

test("the sources of generated kernels are written to a folder", () =>
  withBackend("metal", () => {
    const folder = join(testFolder("compile_dump").path, "sources");
    const compiled = compile((x: Tensor) => x.matmul(x).relu(), { dump: folder });
    for (let call = 0; call < 3; call++) compiled(randn([40, 40]));
    const [name, ...others] = readdirSync(folder);
    expect([others, name]).toEqual([[], expect.stringMatching(/^compiled_chain-[0-9a-f]{12}\.metal$/)]);
    expect(readFileSync(join(folder, name), "utf8")).toContain("kernel void compiled_chain(");
    const unwritable = compile((x: Tensor) => x.neg().exp(), { dump: join(folder, name) });
    unwritable(randn([3]));
    expect(() => unwritable(randn([3]))).toThrow(orchard.FileError);
  }));

describe("training steps on metal", () => {
  test.each([
    ["layer norm, gelu", { layers: 2, heads: 2, width: 48 }, 24],
    ["wide rows", { layers: 1, heads: 2, width: 144 }, 16],
  ] as const)("a GPT with %s is bit-identical to plain steps, with fewer dispatches", (_, size, context) =>
    withBackend("metal", () => {
      const make = (isCompiled: boolean) => {
        orchard.manualSeed(5);
        const model = new nn.GPT({ vocabularySize: 40, contextLength: context, ...size });
        const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 });
        const step = (x: Tensor, y: Tensor) => {
          const loss = orchard.crossEntropy(model.forward(x).reshape([-1, 40]), y);
          loss.backward();
          optimizer.step();
          optimizer.zeroGrad();
          return loss;
        };
        return { model, step: isCompiled ? compile(step, { state: [model, optimizer] }) : step };
      };
      const [plain, compiled] = [make(false), make(true)];
      for (let at = 0; at < 5; at++) {
        const [x, y] = [randint(0, 40, [2, context]), randint(0, 40, [2 * context])];
        metalContext().configure("check", false); // other tests check the kernels of plain steps and of recordings
        const expected = plain.step(x, y).item();
        metalContext().configure("check", at > 3);
        expect(compiled.step(x, y).item()).toBe(expected);
      }
      expect(listed(compiled.model.parameters())).toEqual(listed(plain.model.parameters()));
      const [x, y] = [randint(0, 40, [2, context]), randint(0, 40, [2 * context])];
      const counts = [plain, compiled].map(({ step }) => dispatches(() => step(x, y)));
      expect(counts[1]).toBeLessThan(0.9 * counts[0]);
    }),
  );
});
