/** vmap of every operation, and of its gradient, against a loop over the examples. */
import { describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../src/backend/codepaths.ts";
import * as library from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { repeats } from "../support/repeats.ts";
import { difference, drawn, partsOf, type Sample, samples } from "./samples.ts";

const { add, grad, manualSeed, mul, ones, randn, stack, tensor, transforms, zeros } = library;
const { vmap } = transforms;

manualSeed(5);
const EXAMPLES = 3;
const data = (x: Tensor) => x.dataSync();
const isFloat = ({ dtype }: Tensor): boolean => dtype === "float32";

/** Operations whose result's shape depends on values, or that read values to check them. */
const reading = new Set([
  "bincount",
  "histc",
  "histogram",
  "maskedScatter",
  "maskedSelect",
  "nonzero",
  "unique",
  "uniqueConsecutive",
  "ctcLoss",
  "allClose",
  "equal",
]);
/** Views of memory positions, which the examples do not share. */
const ofMemory = new Set(["asStrided", "viewAsComplex"]);

const all = samples(6, "float32").filter(
  ({ name, operands }) => operands.length > 0 && !reading.has(name) && !ofMemory.has(name),
);

/** Products and sums whose order depends on the number of rows. */
const isExact = (found: Tensor, expected: Tensor) => difference(partsOf(found), partsOf(expected)) < 1e-5;

let seed = 1;
/** A pseudorandom number in [0, 1), the same in every run. */
function next(): number {
  seed = (seed * 1103515245 + 12345) % 2 ** 31;
  return seed / 2 ** 31;
}

interface Batch {
  readonly whole: readonly Tensor[];
  readonly inDims: readonly (number | null)[];
  readonly exampleAt: (index: number) => Tensor[];
}

/** Draws which operands have examples, and along which axis. */
function batchOf({ operands }: Sample): Batch {
  const isBatched = operands.map(() => next() > 0.35);
  if (!isBatched.includes(true)) isBatched[0] = true;
  const inDims = operands.map(({ rank }, at) => (isBatched[at] ? Math.floor(next() * (rank + 1)) : null));
  const whole = operands.map((operand, at) => {
    const axis = inDims[at]!;
    return axis === null ? operand : drawn(operand.dtype, operand.shape.toSpliced(axis, 0, EXAMPLES));
  });
  const exampleAt = (index: number) => whole.map((x, at) => (inDims[at] === null ? x : x.select(inDims[at], index)));
  return { whole, inDims, exampleAt };
}

function checkAgainstLoop(f: (operands: readonly Tensor[]) => readonly Tensor[], { whole, inDims, exampleAt }: Batch) {
  const expected = Array.from({ length: EXAMPLES }, (_, index) => f(exampleAt(index)));
  const mapped = vmap((...values: Tensor[]) => f(values), { inDims, randomness: "same" });
  const found = mapped(...(whole as Tensor[]));
  expect(found.length).toBe(expected[0].length);
  for (const [at, result] of found.entries())
    for (let index = 0; index < EXAMPLES; index++) {
      const [one, other] = [result.select(0, index), expected[index][at]];
      expect([one.dtype, ...one.shape]).toEqual([other.dtype, ...other.shape]);
      expect(isExact(one, other)).toBe(true);
    }
}

const draws = repeats({ usual: 2, all: 12 });

describe("every operation works under vmap", () => {
  test("there are hundreds of operations", () => expect(all.length).toBeGreaterThan(330));

  test.each(all.map((sample) => [sample.name, sample] as const))(
    "%s agrees with calls of single examples",
    (_, sample) => {
      for (let draw = 0; draw < draws; draw++) checkAgainstLoop(sample.call, batchOf(sample));
    },
  );
});

/** The gradients of the sum of a sample's float results with respect to its float operands. */
function gradientsOf({ call }: Sample) {
  return (operands: readonly Tensor[]): Tensor[] => {
    const places = [...operands.keys()].filter((at) => isFloat(operands[at]));
    const total = (...values: Tensor[]): Tensor => {
      const given = [...operands];
      for (const [index, at] of places.entries()) given[at] = values[index];
      return call(given)
        .filter(isFloat)
        .map((result) => result.square().sum() as Tensor)
        .reduce((sum, each) => add(sum, each) as Tensor);
    };
    return transforms.grad(total, [...places.keys()])(...places.map((at) => operands[at])) as Tensor[];
  };
}

describe("every operation has gradients for each example", () => {
  /** Operations without a derivative with respect to their first operand. */
  const without = new Set(["gammainc", "gammaincc", "zeta"]);
  const withGradient = all.filter(
    ({ name, operands, call }) =>
      !without.has(name) && operands.some(isFloat) && call(operands).some((result) => isFloat(result)),
  );
  test.each(withGradient.map((sample) => [sample.name, sample] as const))(
    "the gradient of %s agrees with calls of single examples",
    (_, sample) => {
      checkAgainstLoop(gradientsOf(sample), batchOf(sample));
    },
  );
});

describe("gradients combine with vmap", () => {
  const loss = (w: Tensor, x: Tensor, y: Tensor): Tensor => x.matmul(w).tanh().sub(y).square().mean();
  const [w, x, y] = [randn([3, 2]), randn([5, 4, 3]), randn([5, 4, 2])];

  test("outside of vmap are sums over the examples, inside they are per sample", () => {
    const perSample = vmap(transforms.grad(loss), { inDims: [null, 0, 0] })(w, x, y);
    expect([...perSample.shape]).toEqual([5, 3, 2]);
    const outside = transforms.grad((v: Tensor) => vmap((a: Tensor, b: Tensor) => loss(v, a, b))(x, y).sum())(w);
    expect(isExact(outside, perSample.sum({ dim: 0 }))).toBe(true);
    const leaf = Object.assign(w.clone(), { requiresGrad: true });
    const [closed] = grad(vmap((a: Tensor, b: Tensor) => loss(leaf, a, b))(x, y).sum(), [leaf]);
    expect(isExact(closed, outside)).toBe(true);
    const inner = vmap((a: Tensor, b: Tensor) => grad(loss(leaf, a, b), [leaf])[0])(x, y);
    expect(isExact(inner, perSample)).toBe(true);
  });

  test("hessians per sample are right: vmap, forward and reverse mode nest in any order", () => {
    const f = (v: Tensor): Tensor => v.sin().mul(v.sum()).sum();
    const points = randn([4, 3]);
    const perSample = vmap(transforms.hessian(f))(points);
    for (let at = 0; at < 4; at++)
      expect(isExact(perSample.select(0, at), transforms.hessian(f)(points.select(0, at)))).toBe(true);
    const total = (v: Tensor): Tensor => vmap(f)(v).sum();
    const whole = transforms.hessian(total)(points);
    for (let at = 0; at < 4; at++)
      expect(isExact(whole.select(0, at).select(1, at), perSample.select(0, at))).toBe(true);
    const along = transforms.jvp(vmap(f), [points], [ones([4, 3])]).tangent;
    const each = vmap((v: Tensor) => transforms.jvp(f, [v], [ones([3])]).tangent)(points);
    expect(isExact(along, each)).toBe(true);
  });

  test("tangents of unit vectors are a Jacobian", () => {
    const f = (v: Tensor): Tensor => v.cumsum({ dim: 0 }).sin();
    const at = randn([3]);
    const columns = vmap((t: Tensor) => transforms.jvp(f, [at], [t]).tangent, { outDims: 1 })(library.eye(3));
    expect(isExact(columns, transforms.jacobian(f)(at))).toBe(true);
  });
});

describe("vmap accepts axes and trees", () => {
  test("nested levels are an outer product", () => {
    const [a, b] = [randn([3]), randn([4])];
    const outer = vmap((p: Tensor) => vmap((q: Tensor) => p.mul(q))(b))(a);
    expect(data(outer)).toEqual(data(library.outer(a, b)));
  });

  test("inDims and outDims may be trees; unbatched results are repeated", () => {
    const tree = { a: randn([2, 5]), rest: [randn([5]), randn([3])] as const };
    const f = ({ a, rest: [b, c] }: typeof tree) => ({ product: a.mul(b), same: c });
    const inDims = [{ a: 1, rest: [0, null] }] as const;
    const { product, same } = vmap(f, { inDims, outDims: { product: -1, same: 0 } })(tree);
    expect(data(product)).toEqual(data(mul(tree.a, tree.rest[0]) as Tensor));
    expect([...same.shape]).toEqual([5, 3]);
  });

  test("every chunkSize gives the same results", () => {
    const x = randn([7, 3]);
    const f = (v: Tensor) => [v.exp(), v.sum()] as const;
    const whole = vmap(f, { outDims: [1, 0] })(x);
    for (const chunkSize of [1, 2, 7, 100]) {
      const parts = vmap(f, { outDims: [1, 0], chunkSize })(x);
      expect(parts.map(data)).toEqual(whole.map(data));
    }
  });

  test("tensors that the body creates can be written", () => {
    const f = (v: Tensor): Tensor => {
      const total = zeros([2]);
      total.add_(v.exp());
      total.mul_(2);
      return total;
    };
    const x = randn([4, 2]);
    expect(data(vmap(f)(x))).toEqual(data(mul(x.exp(), 2) as Tensor));
    const outside = zeros([2]);
    expect(() => vmap((v: Tensor) => outside.add_(v))(x)).toThrow("can't be written into a tensor from outside of it");
  });
});

describe("vmap draws random numbers as documented", () => {
  const x = zeros([6, 4]);
  const draw = (randomness: "same" | "different" | "error", f: (v: Tensor) => Tensor): Tensor => {
    manualSeed(1);
    return vmap(f, { randomness })(x);
  };
  const functions: Readonly<Record<string, (v: Tensor) => Tensor>> = {
    randn: (v) => add(v, randn([4])) as Tensor,
    dropout: (v) => library.dropout(add(v, 1) as Tensor, { p: 0.5, training: true }),
    bernoulli: (v) => library.bernoulli(add(v, 0.5) as Tensor),
    randperm: (v) => add(v, library.randperm(4)) as Tensor,
    "randn alone": () => randn([64]),
  };

  test.each(Object.entries(functions))("%s draws random numbers as documented", (_, f) => {
    const rows = (result: Tensor) => new Set(Array.from({ length: 6 }, (_, at) => String(data(result.select(0, at)))));
    expect(rows(draw("same", f)).size).toBe(1);
    expect(rows(draw("different", f)).size).toBeGreaterThan(2);
    expect(data(draw("different", f))).toEqual(data(draw("different", f)));
    expect(() => draw("error", f)).toThrow('random numbers require { randomness: "different" }');
  });

  test("nested vmap calls each follow their `randomness` option", () => {
    const nested = (outer: "same" | "different", inner: "same" | "different") =>
      vmap(
        (p: Tensor) => vmap((q: Tensor) => add(add(p, q), randn([2])) as Tensor, { randomness: inner })(zeros([3])),
        { randomness: outer },
      )(zeros([4]));
    const distinct = (found: Tensor) => {
      const pairs = found.reshape([12, 2]);
      return new Set(Array.from({ length: 12 }, (_, at) => String(data(pairs.select(0, at))))).size;
    };
    expect(distinct(nested("same", "same"))).toBe(1);
    expect(distinct(nested("different", "same"))).toBe(4);
    expect(distinct(nested("same", "different"))).toBe(3);
    expect(distinct(nested("different", "different"))).toBe(12);
  });
});

describe("vmap calls each operation once", () => {
  test("each operation is called once for all examples", () => {
    const w = randn([8, 8]);
    const f = (v: Tensor): Tensor => v.matmul(w).relu().add(1).softmax({ dim: -1 }).transpose(0, 1).sum({ dim: 0 });
    const count = (body: () => unknown): number => {
      resetCodepaths();
      body();
      return codepaths().reduce((total, { calls }) => total + calls, 0);
    };
    const x = randn([100, 2, 8]);
    f(x.select(0, 0));
    expect(count(() => vmap(f)(x))).toBe(count(() => f(x.select(0, 0))));
  });
});

describe("vmap reports its errors", () => {
  const x = ones([3, 2]);
  const cases: readonly (readonly [what: string, message: string, body: () => unknown])[] = [
    ["item", "can't be read", () => vmap((v: Tensor) => v.sum().item())(x)],
    ["dataSync", "can't be read", () => vmap((v: Tensor) => tensor([Number(v.dataSync()[0])]))(x)],
    ["nonzero", "can't be read", () => vmap((v: Tensor) => library.nonzero(v))(x)],
    ["sizes", "the same number of examples", () => vmap((a: Tensor, b: Tensor) => add(a, b))(x, ones([4, 2]))],
    ["no axis", "expected an argument with an axis", () => vmap((v: Tensor) => v, { inDims: null })(x)],
    ["an axis out of range", "inDims", () => vmap((v: Tensor) => v, { inDims: 2 })(x)],
    ["a promise", "got a promise", () => vmap(async (v: Tensor) => v)(x)],
    ["no tensor", "expected the function to return", () => vmap((_: Tensor): unknown => 1)(x)],
    ["a tree", "the structure of the tensors", () => vmap((v: Tensor) => v, { inDims: [0, 0] })(x)],
  ];
  test.each(cases)("%s is an error", (_, message, body) => expect(body).toThrow(message));

  test("a tensor of the body can't be read after vmap returned", async () => {
    const kept: Tensor[] = [];
    vmap((v: Tensor) => {
      kept.push(v.exp());
      return v;
    })(x);
    expect(() => kept[0].item()).toThrow();
    await expect(kept[0].data()).rejects.toThrow("can't be read");
    expect(stack([x, x]).shape[0]).toBe(2);
  });
});
