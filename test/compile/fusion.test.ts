/** Fused chains of elementwise operations, drawn: the bits match plain calls. */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import * as orchard from "../../src/index.ts";
import { compile, type Tensor, withBackend } from "../../src/index.ts";
import { hash, Random } from "../ops/samples.ts";
import { useChecker } from "../support/checked.ts";
import { repeats } from "../support/repeats.ts";

useChecker();

const { randn, tensor } = orchard;

type Step = (values: readonly Tensor[]) => Tensor;

const pick = <Value>(random: Random, values: readonly Value[]): Value => values[random.integer(0, values.length - 1)]!;

const { abs, add, exp, maximum, minimum, mul, neg, relu, sigmoid, sin, square, sub, tanh } = orchard;
const unary: readonly ((x: Tensor) => Tensor)[] = [exp, sin, abs, neg, relu, sigmoid, square, tanh];
type Binary = (a: Tensor, b: Tensor | number) => Tensor;
const binary = [add, sub, mul, maximum, minimum] as readonly Binary[];

const options = { dim: -1, keepdim: true } as const;
const folds: readonly ((x: Tensor) => Tensor)[] = [
  (x) => orchard.sum(x, options),
  (x) => orchard.mean(x, options),
  (x) => orchard.amax(x, options),
  (x) => orchard.amin(x, options),
  (x) => orchard.logsumexp(x, -1, true),
];

/** Metal kernels do not support float64. */
const castTypes = {
  cpu: ["float32", "float64", "int32", "bfloat16"],
  metal: ["float32", "float16", "int32", "bfloat16"],
} as const;
const chainTypes = {
  cpu: ["float32", "float32", "float64", "float16", "bfloat16"],
  metal: ["float32", "float32", "float16", "bfloat16"],
} as const;
type Backend = keyof typeof chainTypes;

/** An operation on earlier values of a chain: mostly the latest ones, as in a chain. */
function drawStep(random: Random, count: number, backend: Backend): Step {
  const one = () => Math.max(0, count - 1 - (random.next() < 0.6 ? 0 : random.integer(0, count - 1)));
  const [a, b] = [one(), one()];
  const kind = random.integer(0, 12);
  const [ofOne, ofTwo] = [pick(random, unary), pick(random, binary)];
  // along rows: a vector that the chain may write, the folds of rows and operations on them, and casts
  if (kind === 9) return (values) => ofTwo(values[a], values[b].flatten().narrow(0, 0, values[b].shape.at(-1)!));
  const [fold, ofFold] = [pick(random, folds), pick(random, unary)];
  if (kind === 10) return (values) => ofTwo(values[a], fold(values[b]));
  if (kind === 11) return (values) => ofTwo(values[a], ofFold(fold(values[b]).add(1)));
  const dtype = pick(random, castTypes[backend]);
  if (kind === 12) return (values) => values[a].to(dtype).to(values[a].dtype).add(values[b]);
  if (kind < 3) return (values) => ofOne(values[a]);
  if (kind < 5) return (values) => ofTwo(values[a], values[b]);
  if (kind < 6) return (values) => orchard.where(values[a].gt(0), values[a], values[b]);
  // a broadcast element of another value, which may be written by the chain
  const element = random.integer(0, 1);
  if (kind < 7) return (values) => ofTwo(values[a], values[b].flatten().narrow(0, element, 1));
  // a reduction ends a chain; values from before it are used after it
  if (kind < 8) return (values) => ofTwo(values[a], values[b].mean());
  return (values) => ofTwo(values[a], 0.5);
}

const shapes = [[4096], [4097], [3, 2051], [64, 129], [70_001], [2, 3, 2048]];

function drawChain(seed: number, backend: Backend) {
  const random = new Random(hash(`chain ${seed}`));
  const shape = pick(random, shapes);
  const steps = Array.from({ length: random.integer(2, 20) }, (_, at) => drawStep(random, 2 + at, backend));
  const isReturned = steps.map(() => random.next() < 0.2);
  const isTransposed = random.next() < 0.3;
  const dtype = pick(random, chainTypes[backend]);
  const fn = (x: Tensor, y: Tensor): readonly Tensor[] => {
    const values = [x, y];
    for (const step of steps) values.push(step(values));
    return values.filter((_, at) => at === values.length - 1 || isReturned[at - 2]);
  };
  const draw = () => {
    const sizes = isTransposed ? [...shape].reverse() : shape;
    const x = orchard.randn(sizes).to(dtype);
    return isTransposed ? x.permute(shape.map((_, axis) => shape.length - 1 - axis)) : x;
  };
  return { fn, draw };
}

const bits = (values: readonly Tensor[]) =>
  values.map((value) => Bun.hash(value.contiguous().clone().storage.hostBytes()).toString());

describe.each(["cpu", "metal"] as const)("drawn chains on %s", (backend) => {
  // fewer chains on metal, where each one compiles a kernel
  const count = backend === "metal" ? repeats({ usual: 4, all: 60 }) : repeats({ usual: 80, all: 3000 });
  const seeds = Array.from({ length: count }, (_, seed) => seed);
  const fused: number[] = [];

  test.each(seeds)("chains of seed %d are bit-identical to plain calls", (seed) =>
    withBackend(backend, () =>
      orchard.tidy(() => {
        const { fn, draw } = drawChain(seed, backend);
        const [compiled, separate] = [compile(fn), compile(fn, { fuse: false })];
        for (let call = 0; call < 4; call++) {
          const [x, y] = [draw(), draw()];
          const expected = bits(fn(x, y));
          expect(bits(compiled(x, y))).toEqual(expected);
          expect(bits(separate(x, y))).toEqual(expected);
        }
        fused.push(Number(/(\d+) of them fused/.exec(compiled.explain())![1]));
        expect(separate.explain()).toContain(" 0 of them fused");
        compiled.reset();
        separate.reset();
      }),
    ),
  );

  test("most drawn chains were fused", () => {
    expect(fused.filter((count) => count > 1).length).toBeGreaterThan(seeds.length / 2);
  });
});

test("rows of a softmax, a norm and a cast are one instruction, bit-identical to plain calls", () => {
  withBackend("cpu", () => {
    const chains: Readonly<Record<string, readonly [calls: number, fn: (x: Tensor, w: Tensor) => Tensor]>> = {
      softmax: [
        5,
        (x) => {
          const shifted = x.sub(x.amax(options)).exp();
          return shifted.div(shifted.sum(options));
        },
      ],
      norm: [
        9,
        (x, w) => {
          const centered = x.sub(x.mean(options));
          return centered.mul(centered.square().mean(options).add(1e-5).rsqrt()).mul(w).add(w);
        },
      ],
      fold: [2, (x) => x.exp().sum(options)],
      cast: [3, (x, w) => x.to("bfloat16").to("float32").mul(w)],
    };
    for (const [name, [calls, fn]] of Object.entries(chains)) {
      const compiled = compile(fn);
      for (const shape of [
        [64, 130],
        [3, 50, 384],
        [1, 5000],
      ])
        for (let call = 0; call < 4; call++) {
          const [x, w] = [orchard.randn(shape), orchard.randn([shape.at(-1)!])];
          expect([name, bits([compiled(x, w)])]).toEqual([name, bits([fn(x, w)])]);
        }
      expect(compiled.explain()).toContain(`${calls} calls, ${calls} of them fused into 1`);
    }
  });
});

test("a chain does not overwrite what its later pieces read", () => {
  withBackend("cpu", () => {
    // The chain is the last to use the mask. Its result, with elements four times as large, must not get that memory.
    const fn = (x: Tensor) => {
      const mask = x.gt(0);
      const total = x.sum();
      return orchard.where(mask, x, total).mul(2).sum({ dim: 0 });
    };
    const compiled = compile(fn);
    for (let call = 0; call < 5; call++) {
      const x = orchard.randn([16, 2048]);
      expect(bits([compiled(x)])).toEqual(bits([fn(x)]));
    }
    expect(compiled.explain()).toContain("2 of them fused into 1");
  });
});

test("a chain that divides integers by zero in a replay throws the plain error", () => {
  withBackend("cpu", () => {
    const compiled = compile((x: Tensor, y: Tensor) => x.add(1).floorDivide(y).mul(2));
    const all = (value: number) => orchard.full([5000], value, { dtype: "int32" });
    for (let call = 0; call < 4; call++) expect(compiled(all(7), all(2)).select(0, 4999).item()).toBe(8);
    const last = orchard.cat([all(2).narrow(0, 0, 4999), tensor([0], { dtype: "int32" })]);
    expect(() => compiled(all(7), last)).toThrow("zero");
    expect(compiled(all(7), all(2)).select(0, 0).item()).toBe(8);
  });
});

describe("operations whose results nothing reads", () => {
  test.each(["cpu", "metal"] as const)("%s: are not performed, except for those that may throw", (backend) =>
    withBackend(backend, () => {
      const program = (fn: (x: Tensor) => unknown, options = {}) => {
        const compiled = compile(fn, options);
        const plain: unknown[] = [];
        const results: unknown[] = [];
        for (let call = 0; call < 5; call++) {
          const x = randn([70, 70]);
          orchard.manualSeed(call);
          plain.push(listed(fn(x)));
          orchard.manualSeed(call);
          results.push(listed(compiled(x)));
        }
        expect(results).toEqual(plain);
        return compiled
          .explain()
          .split("\n")
          .filter((line) => line.startsWith("  ")).length;
      };
      const unread = (x: Tensor) => {
        x.exp().sum(1);
        orchard.softmax(x.matmul(x), -1).mul(2);
        orchard.rand([3]).add(1);
        const y = x.clone();
        y.add_(1);
        return [x.sum(0), y.narrow(0, 1, 2)];
      };
      const [needed, all] = [program(unread), program(unread, { fuse: false })];
      expect(all - needed).toBeGreaterThanOrEqual(6);
      const indices = tensor([0, 1], { dtype: "int64" });
      const checked = compile((x: Tensor, at: Tensor) => {
        orchard.embedding(at, x);
        return x.add(1);
      });
      const divided = compile((a: Tensor, b: Tensor) => {
        a.floorDivide(b);
        return a.add(b);
      });
      const [a, b] = [tensor([4, 6], { dtype: "int32" }), tensor([2, 3], { dtype: "int32" })];
      for (let call = 0; call < 4; call++) [checked(randn([2, 2]), indices), divided(a, b)];
      expect(() => listed(checked(randn([2, 2]), indices.add(1)))).toThrow("indices");
      if (backend === "cpu") expect(() => divided(a, b.mul(0))).toThrow("zero");
    }),
  );
});

const listed = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (orchard.Tensor.isTensor(each) ? each.toArray() : each)));

describe("fast: fusions that may change the last bits", () => {
  const largest = (x: Tensor) => x.abs().amax().item() as number;

  /** The largest error of a function's results against float64, of plain and of fast calls. */
  function errorsOf(fn: (x: Tensor) => Tensor, x: Tensor) {
    const fast = compile(fn, { fast: true });
    const exact = compile(fn);
    for (let call = 0; call < 3; call++) [fast(x), exact(x)];
    expect(bits([exact(x)])).toEqual(bits([fn(x)]));
    const wanted = withBackend("cpu", () => fn(x.to("float64")));
    const errorOf = (got: Tensor) => withBackend("cpu", () => largest(got.to("float64").sub(wanted)));
    return { plain: errorOf(fn(x)), fast: errorOf(fast(x)), scale: largest(wanted), fastText: fast.explain() };
  }

  test.each([2, 7, 16, 40, 64])("cpu: rows of %p elements are reduced in a chain", (width) =>
    withBackend("cpu", () => {
      const norm = (x: Tensor) => {
        const centered = x.sub(x.mean(-1, true));
        return centered.mul(centered.square().mean(-1, true).add(1e-5).rsqrt());
      };
      const { plain, fast, scale, fastText } = errorsOf(norm, randn([9000 / width + 3000, width].map(Math.ceil)));
      expect(fast).toBeLessThanOrEqual(2 * plain + 2 ** -23 * scale);
      expect(fastText).toMatch(/[6-9] of them fused into 1/);
    }),
  );

  test("metal: a product and a sum round once, if the compiler contracts them", () =>
    withBackend("metal", () => {
      metalContext().configure("contract", true);
      try {
        const polynomial = (x: Tensor) => x.mul(x).add(x).mul(x).add(x.mul(3)).mul(x).sub(x);
        const { plain, fast, scale } = errorsOf(polynomial, randn([64, 65]));
        expect(fast).toBeLessThanOrEqual(2 * plain + 2 ** -23 * scale);
        const [exact, contracted] = [{}, { fast: true }].map((options) => {
          const compiled = compile(polynomial, options);
          const x = orchard.tensor([1 + 2 ** -12, 3 - 2 ** -20, 5 / 7]);
          for (let call = 0; call < 3; call++) compiled(x);
          return bits([compiled(x)]);
        });
        expect(contracted).not.toEqual(exact);
      } finally {
        metalContext().configure("contract", false);
      }
    }));
});
