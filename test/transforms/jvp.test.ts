/** Tangents of every operation, against finite differences and against two backward passes. */
import { describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../src/backend/codepaths.ts";
import * as library from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { difference, type Sample, samples } from "./samples.ts";

const { add, enableGrad, gammainc, gammaincc, grad, manualSeed, mul, noGrad } = library;
const { randn, sub, tensor, transforms, zeros, zeta } = library;

manualSeed(11);
const isFloat64 = ({ dtype }: Tensor): boolean => dtype === "float64";

/**
 * Operations that are not compared: acosh, which is defined from 1 on, and operations on integers or with derivative 0.
 */
const without = new Set(["acosh", "bincount", "gridSample", "histogram", "nextafter", "unique", "uniqueConsecutive"]);
/** The derivative with respect to the first operand has no known closed form. */
const withoutFirst = { gammainc, gammaincc, zeta };
for (const name of Object.keys(withoutFirst)) without.add(name);

const drawnSamples = samples(6, "float64");
const differentiable = drawnSamples.filter(
  ({ name, operands, call }) =>
    !without.has(name) && operands.some(isFloat64) && call(operands).some((result) => isFloat64(result)),
);

/** The sample as a function of its float64 operands alone, with its float64 results. */
function ofFloats({ operands, call }: Sample) {
  const floats = operands.filter(isFloat64);
  const f = (...values: Tensor[]): Tensor[] => {
    const rest = [...values];
    return call(operands.map((operand) => (isFloat64(operand) ? rest.shift()! : operand))).filter(isFloat64);
  };
  return { floats, f };
}

const data = (x: Tensor) => x.dataSync();

/** (f(x + εt) − f(x − εt)) / 2ε. */
function centralDifferences(f: (...values: Tensor[]) => Tensor[], at: readonly Tensor[], along: readonly Tensor[]) {
  const epsilon = 1e-6;
  const moved = (step: number) => f(...at.map((x, index) => add(x, mul(along[index], step)) as Tensor));
  const [above, below] = [moved(epsilon), moved(-epsilon)];
  return above.map((result, index) => mul(sub(result, below[index]), 1 / (2 * epsilon)) as Tensor);
}

/** J t as the derivative of Jᵀ g with respect to g, which takes two backward passes. */
function doubleForm(f: (...values: Tensor[]) => Tensor[], at: readonly Tensor[], along: readonly Tensor[]): Tensor[] {
  return enableGrad(() => {
    const inputs = at.map((x) => Object.assign(x.clone(), { requiresGrad: true }));
    const outputs = f(...inputs);
    const live = outputs.filter(({ requiresGrad }) => requiresGrad);
    const cotangents = live.map(({ shape }) => zeros(shape, { dtype: "float64", requiresGrad: true }));
    const options = { createGraph: true, allowUnused: true } as const;
    const first = grad(live, inputs, { gradOutputs: cotangents, ...options }) as (Tensor | null)[];
    const roots = first.flatMap((root, index) => (root?.requiresGrad ? [{ root, seed: along[index] }] : []));
    if (roots.length === 0) return outputs.map(({ shape }) => zeros(shape, { dtype: "float64" }));
    const gradOutputs = roots.map(({ seed }) => seed);
    const found = grad(
      roots.map(({ root }) => root),
      cotangents,
      { gradOutputs, allowUnused: true },
    ) as (Tensor | null)[];
    return outputs.map((output) => {
      const index = live.indexOf(output);
      return (index >= 0 ? found[index] : null) ?? zeros(output.shape, { dtype: "float64" });
    });
  });
}

describe("every operation has the right tangent", () => {
  test("there are hundreds of tangents", () => expect(differentiable.length).toBeGreaterThan(290));

  test.each(differentiable.map((sample) => [sample.name, sample] as const))(
    "%s has the tangent of finite differences",
    (_, sample) => {
      const { floats, f } = ofFloats(sample);
      const along = floats.map(({ shape }) => randn(shape, { dtype: "float64" }));
      const { value, tangent } = transforms.jvp(f, floats as Tensor[], along);
      const plain = f(...floats);
      const expected = centralDifferences(f, floats, along);
      const twice = doubleForm(f, floats, along);
      for (const [index, result] of plain.entries()) {
        expect(difference(data(value[index]), data(result))).toBeLessThan(1e-14);
        expect(difference(data(tangent[index]), data(expected[index]))).toBeLessThan(1e-5);
        expect(difference(data(tangent[index]), data(twice[index]))).toBeLessThan(1e-9);
        expect(tangent[index].requiresGrad).toBe(false);
      }
    },
  );
});

test.each(Object.entries(withoutFirst))("%s has tangents of its second operand only", (_, compute) => {
  const [a, x, t] = [
    tensor([2.5], { dtype: "float64" }),
    tensor([1.5], { dtype: "float64" }),
    tensor([1], { dtype: "float64" }),
  ];
  const f = compute as (a: Tensor, x: Tensor) => Tensor;
  expect(() => transforms.jvp((own) => f(own, x), [a], [t])).toThrow("there is no derivative with respect to");
  const { tangent } = transforms.jvp((own) => f(a, own), [x], [t]);
  const [expected] = centralDifferences((own) => [f(a, own)], [x], [t]);
  expect(difference(data(tangent), data(expected))).toBeLessThan(1e-5);
});

describe("costs of forward mode", () => {
  /** The operations that a body runs. */
  function countOf(body: () => unknown): number {
    resetCodepaths();
    body();
    return codepaths().reduce((total, { calls }) => total + calls, 0);
  }
  const x = randn([8, 8]);
  const t = randn([8, 8]);
  const chains: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    "exp, sqrt, neg, scaling": (x) => x.exp().sqrt().neg().mul(3).add(1).relu(),
    "a multilayer perceptron": (x) => x.matmul(t).relu().matmul(t).add(1).relu().matmul(t).mul(0.5),
    "views and sums": (x) => x.transpose(0, 1).reshape([4, 16]).slice({ dim: 1, end: 8 }).sum({ dim: 1 }).exp(),
    softmax: (x) => x.softmax({ dim: 1 }).matmul(t).sum({ dim: 0 }),
  };

  test.each(Object.entries(chains))("%s takes at most 2.5 times the operations of the function", (_, f) => {
    f(x); // scalars are created once
    transforms.jvp(f, [x], [t]);
    const alone = countOf(() => f(x));
    const both = countOf(() => transforms.jvp(f, [x], [t]));
    expect(both / alone).toBeLessThanOrEqual(2.5);
  });

  test("the gradients of closed-over parameters are not computed", () => {
    const w = randn([8, 8], { requiresGrad: true });
    const f = (x: Tensor) => x.matmul(w);
    const alone = countOf(() => f(x));
    expect(countOf(() => noGrad(() => transforms.jvp(f, [x], [t])))).toBeLessThanOrEqual(2 * alone);
  });

  test("linearize runs the function once", () => {
    const { jvp } = transforms.linearize((x) => x.matmul(t).relu().matmul(t), x);
    jvp(t);
    expect(countOf(() => jvp(t))).toBeLessThanOrEqual(3);
  });
});

describe("compositions of transforms are correct", () => {
  const point = () => tensor([0.5, -1, 2], { dtype: "float64" });
  const one = () => tensor([1, 0.25, -0.5], { dtype: "float64" });
  const f = (x: Tensor): Tensor =>
    x
      .sin()
      .mul(x.cumsum({ dim: 0 }))
      .exp();

  /** The nth derivative along a direction, by nested transformations. */
  const along =
    (g: (x: Tensor) => Tensor, t: Tensor) =>
    (x: Tensor): Tensor =>
      transforms.jvp(g, [x], [t]).tangent;
  const numeric = (g: (x: Tensor) => Tensor, x: Tensor, t: Tensor) => centralDifferences((y) => [g(y)], [x], [t])[0];

  test("tangents of tangents of tangents are right", () => {
    const second = along(f, one());
    const third = along(second, one());
    const fourth = along(third, one());
    expect(difference(data(third(point())), data(numeric(second, point(), one())))).toBeLessThan(1e-6);
    expect(difference(data(fourth(point())), data(numeric(third, point(), one())))).toBeLessThan(1e-5);
  });

  test("gradients of tangents are tangents of gradients", () => {
    const gradient = transforms.grad((x: Tensor) => f(x).sum());
    const forwardOverReverse = transforms.jvp(gradient, [point()], [one()]).tangent;
    const reverseOverForward = transforms.grad((x: Tensor) => along(f, one())(x).sum())(point());
    expect(difference(data(forwardOverReverse), data(reverseOverForward))).toBeLessThan(1e-12);
    const { product } = transforms.hvp((x: Tensor) => f(x).sum(), [point()], [one()]);
    expect(data(product[0])).toEqual(data(forwardOverReverse));
    const matrix = transforms.hessian((x: Tensor) => f(x).sum())(point());
    expect(difference(data(matrix.matmul(one())), data(forwardOverReverse))).toBeLessThan(1e-12);
  });

  test("gradients reach a graph outside through primals, tangents and closed-over tensors", () => {
    const [x, t, w] = [point(), one(), point()].map((y) => Object.assign(y, { requiresGrad: true })) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const { value, tangent } = transforms.jvp((y: Tensor) => y.square().mul(w), [x], [t]);
    const found = grad([value.sum(), tangent.sum()], [x, t, w]);
    // value = x²w, tangent = 2xtw
    const expected = [mul(mul(2, w), add(x, t)), mul(mul(2, x), w), add(mul(x, x), mul(2, mul(x, t)))];
    for (const [index, gradient] of found.entries())
      expect(difference(data(gradient), data(expected[index] as Tensor))).toBeLessThan(1e-14);
  });

  test("checkpoint, withBackend, noGrad and hooks work in forward mode", () => {
    const expected = data(along(f, one())(point()));
    const block = (x: Tensor) => library.nn.checkpoint((y: Tensor) => f(y), x);
    expect(difference(data(along(block, one())(point())), expected)).toBeLessThan(1e-14);
    const third = data(along(along(f, one()), one())(point()));
    expect(difference(data(along(along(block, one()), one())(point())), third)).toBeLessThan(1e-12);
    const onReference = library.withBackend("reference", () => data(along(f, one())(point())));
    expect(difference(onReference, expected)).toBeLessThan(1e-13);
    expect(data(noGrad(() => along(f, one())(point())))).toEqual(expected);
    const hooked = (x: Tensor) => {
      const y = x.sin();
      y.registerHook((g) => g.mul(100) as Tensor);
      return y.mul(x.cumsum({ dim: 0 })).exp();
    };
    expect(data(along(hooked, one())(point()))).toEqual(expected);
    expect([...data(along((x) => noGrad(() => f(x)), one())(point()))]).toEqual([0, 0, 0]);
  });

  test("arguments and results may be trees", () => {
    type Point = { a: Tensor; rest: [Tensor, number] };
    const g = ({ a, rest: [b, scale] }: Point) => ({
      product: a.mul(b).mul(scale),
      parts: [a.add(1) as Tensor, 7] as const,
    });
    const at: Point = { a: point(), rest: [one(), 2] };
    const { value, tangent } = transforms.jvp(g, [at], [{ a: one(), rest: [point(), 2] }]);
    expect(value.parts[1]).toBe(7);
    expect(data(tangent.parts[0])).toEqual(data(one()));
    const expected = mul(2, add(mul(at.a, point()), mul(one(), one()))) as Tensor;
    expect(data(tangent.product)).toEqual(data(expected));
    const { pullback } = transforms.vjp(g, at);
    const [gradient] = pullback({ product: one(), parts: [point(), 7] });
    expect(data(gradient.a)).toEqual(data(add(mul(2, mul(one(), one())), point()) as Tensor));
  });

  test("jacobians of both modes agree, also in chunks", () => {
    const g = (a: Tensor, b: Tensor) => [a.matmul(b).tanh(), b.sum({ dim: 0 })] as const;
    const [a, b] = [randn([2, 3], { dtype: "float64" }), randn([3, 4], { dtype: "float64" })];
    const options = [
      { mode: "reverse" },
      { mode: "forward" },
      { mode: "reverse", chunkSize: 3 },
      { mode: "forward", chunkSize: 5 },
    ] as const;
    const all = options.map((option) => transforms.jacobian(g, { argnums: [0, 1], ...option })(a, b) as Tensor[][]);
    expect(all[0].map((row) => row.map(({ shape }) => [...shape]))).toEqual([
      [
        [2, 4, 2, 3],
        [2, 4, 3, 4],
      ],
      [
        [4, 2, 3],
        [4, 3, 4],
      ],
    ]);
    for (const other of all.slice(1))
      for (const [row, blocks] of other.entries())
        for (const [column, block] of blocks.entries())
          expect(difference(data(block), data(all[0][row][column]))).toBeLessThan(1e-14);
    const t = randn([2, 3], { dtype: "float64" });
    const byHand = transforms.jvp((x: Tensor) => g(x, b)[0], [a], [t]).tangent;
    const product = all[0][0][0]
      .reshape([8, 6])
      .matmul(t.reshape([6]))
      .reshape([2, 4]);
    expect(difference(data(product), data(byHand))).toBeLessThan(1e-14);
  });

  test("functionalCall uses other tensors, and puts the module's back", () => {
    const { nn } = library;
    class Tied extends nn.Module<[x: Tensor], Tensor> {
      readonly layers = [new nn.Linear(3, 3), new nn.Linear(3, 3)];
      readonly tied = this.layers[0].weight;
      forward(x: Tensor): Tensor {
        return this.layers.reduce((y, layer) => layer.forward(y).tanh(), x).matmul(this.tied);
      }
    }
    const module = new Tied();
    const before = [...module.namedParameters()];
    const x = randn([2, 3]);
    const state = Object.fromEntries(before.map(([name, { shape }]) => [name, randn(shape)]));
    const loss = (parameters: typeof state) => transforms.functionalCall(module, parameters, x).sum();
    const found = transforms.grad(loss)(state);
    expect([...module.namedParameters()]).toEqual(before);
    for (const [name, parameter] of module.namedParameters()) expect(parameter).toBe(new Map(before).get(name)!);
    const other = new Tied();
    other.loadStateDict({ ...state });
    other.forward(x).sum().backward();
    for (const [name, { grad: expected }] of other.namedParameters())
      expect(difference(data(found[name]), data(expected!))).toBeLessThan(1e-5);
    const fails = () => transforms.functionalCall(module, { nothing: x }, x);
    expect(fails).toThrow("the module has no parameter or buffer nothing");
  });
});

describe("jvp rejects trees and shapes that differ", () => {
  const x = tensor([1, 2]);
  test("trees and shapes that do not match are errors", () => {
    const f = (y: Tensor) => y.exp();
    expect(() => transforms.jvp(f, [x], [])).toThrow("expected a tangent for each of 1 tensors, got 0");
    const constant = (_: Tensor): unknown => 1;
    const promised = async (y: Tensor) => y;
    expect(() => transforms.jvp(f, [x], [tensor([1])])).toThrow("expected tangent 0 to have the shape of its tensor");
    expect(() => transforms.jvp(constant, [x], [x])).toThrow("expected the function to return a tensor");
    expect(() => transforms.jvp(promised, [x], [x])).toThrow("got a promise");
    expect(() => transforms.grad(f)(x)).toThrow("reduce it (sum, mean)");
    expect(() => transforms.jacobian(f, 1)(x)).toThrow("expected argument 1 to be a tensor");
  });
});
