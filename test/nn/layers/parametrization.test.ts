/** Parameters that are computed from other parameters. Tests what PyTorch's fixtures (pytorch.test.ts) do not cover. */
import { describe, expect, test } from "bun:test";
import {
  ArgumentError,
  Generator,
  linalg,
  nn,
  optim,
  randn,
  ShapeError,
  type Tensor,
  tidy,
} from "../../../src/index.ts";
import { bitsOf } from "../../optim/run.ts";

const seeded = () => ({ generator: new Generator(4) });
const linear = () => new nn.Linear(3, 4, seeded());
const x = (...shape: number[]) => randn(shape, seeded());
const valuesOf = (own: Tensor) => Array.from(own.dataSync() as Float32Array);

class Doubled extends nn.Module<[x: Tensor], Tensor> {
  override forward(own: Tensor): Tensor {
    return own.mul(2);
  }
}

class Halved extends nn.Module<[x: Tensor], Tensor> {
  override forward(own: Tensor): Tensor {
    return own.mul(2);
  }

  rightInverse(value: Tensor): Tensor {
    return value.div(2);
  }
}

describe("a parametrization computes a parameter", () => {
  test("a parametrization replaces a parameter, and several apply in sequence", () => {
    const layer = linear();
    const before = valuesOf(layer.weight);
    expect(nn.registerParametrization(layer, "weight", new Doubled())).toBe(layer);
    expect(valuesOf(layer.weight)).toEqual(before.map((value) => 2 * value));
    nn.registerParametrization(layer, "weight", new Doubled());
    expect(valuesOf(layer.weight)).toEqual(before.map((value) => 4 * value));
    expect([...layer.namedParameters().keys()]).toEqual(["bias", "parametrizations.weight.original"]);
    expect([...layer.namedModules().keys()]).toEqual([
      "",
      "parametrizations",
      "parametrizations.weight",
      "parametrizations.weight.0",
      "parametrizations.weight.1",
    ]);
    expect(layer.forward(x(2, 3)).shape).toEqual([2, 4]);
  });

  test("a parametrization with an inverse keeps the value, and supports assigning other values", () => {
    const layer = linear();
    const before = valuesOf(layer.weight);
    nn.registerParametrization(layer, "weight", new Halved());
    expect(valuesOf(layer.weight)).toEqual(before);
    const next = x(4, 3);
    (layer as { weight: Tensor }).weight = next;
    expect(valuesOf(layer.weight)).toEqual(valuesOf(next));
    expect(valuesOf(layer.stateDict()["parametrizations.weight.original"])).toEqual(valuesOf(next.div(2)));
    expect(() => Object.assign(layer, { weight: x(3, 4) })).toThrow(ShapeError);
  });

  test("a parametrization is trained, converted and frozen through its original tensors", () => {
    const layer = nn.weightNorm(linear());
    const optimizer = new optim.SGD(layer.parameters(), { lr: 0.1 });
    const before = valuesOf(layer.weight);
    layer.forward(x(2, 3)).square().sum().backward();
    optimizer.step();
    expect(valuesOf(layer.weight)).not.toEqual(before);
    expect(layer.parameters().every((own) => own.grad?.shape.join() === own.shape.join())).toBe(true);
    layer.to("float16");
    expect([layer.weight.dtype, layer.forward(x(2, 3).to("float16")).dtype]).toEqual(["float16", "float16"]);
    const frozen = linear();
    frozen.weight.requiresGrad = false;
    expect([...nn.weightNorm(frozen).namedParameters().keys()]).toEqual(["bias"]);
  });

  test("a parametrization outlives a tidy, and can be removed", () => {
    const layer = linear();
    tidy(() => nn.weightNorm(nn.spectralNorm(layer, seeded()), "bias").forward(x(2, 3)));
    nn.removeParametrizations(layer, "bias");
    layer.eval();
    const computed = bitsOf([layer.weight]);
    nn.removeParametrizations(layer, "weight");
    expect(bitsOf([layer.weight])).toBe(computed);
    expect([...layer.namedParameters().keys()].toSorted()).toEqual(["bias", "weight"]);
    expect(layer.weight.isLeaf && Object.keys(layer).includes("weight")).toBe(true);
    expect([...layer.namedModules().keys()]).toEqual([""]);

    const other = nn.registerParametrization(linear(), "weight", new Doubled());
    const original = valuesOf(other.stateDict()["parametrizations.weight.original"]);
    nn.removeParametrizations(other, "weight", { leaveParametrized: false });
    expect(valuesOf(other.weight)).toEqual(original);
  });
});

describe("weightNorm keeps a weight's direction and norm apart", () => {
  test("weightNorm keeps the weight at first, with norms of the rows", () => {
    const layer = linear();
    const before = valuesOf(layer.weight);
    nn.weightNorm(layer);
    for (const [at, value] of valuesOf(layer.weight).entries()) expect(value).toBeCloseTo(before[at], 6);
    const { "parametrizations.weight.original0": g } = layer.stateDict();
    expect(g.shape).toEqual([4, 1]);
    expect(valuesOf(g)[0]).toBeCloseTo(Math.hypot(...before.slice(0, 3)), 6);
    expect(nn.weightNorm(new nn.LSTM(2, 3), "weight_hh_l0").forward(x(4, 1, 2)).output.shape).toEqual([4, 1, 3]);
  });
});

describe("spectralNorm bounds the largest singular value", () => {
  test("spectralNorm scales the largest singular value to 1, by steps in training only", () => {
    const layer = nn.spectralNorm(new nn.Linear(5, 7, { dtype: "float64", ...seeded() }), { ...seeded() });
    for (let step = 0; step < 200; step++) void layer.weight;
    expect(Number(linalg.matrixNorm(layer.weight, 2).item())).toBeCloseTo(1, 9);
    const far = nn.spectralNorm(linear(), { ...seeded() });
    const first = bitsOf(Object.values(far.stateDict()));
    far.eval().forward(x(2, 3));
    expect(bitsOf(Object.values(far.stateDict()))).toBe(first);
    far.train().forward(x(2, 3));
    expect(bitsOf(Object.values(far.stateDict()))).not.toBe(first);
  });

  test("two reads before a backward pass are two graphs", () => {
    const layer = nn.spectralNorm(linear(), { ...seeded() });
    const [first, second] = [layer.forward(x(2, 3)).sum(), layer.forward(x(2, 3)).sum()];
    first.backward();
    second.backward();
    expect(layer.parameters().every((own) => own.grad !== null)).toBe(true);
    layer.eval();
    const evaluated = layer.forward(x(2, 3)).sum();
    layer.train().forward(x(2, 3));
    evaluated.backward();
  });

  test("spectralNorm of a transposed convolution uses the second axis", () => {
    const layer = nn.spectralNorm(new nn.ConvTranspose2d(2, 5, 3));
    expect(layer.stateDict()["parametrizations.weight.0._u"].shape).toEqual([5]);
  });
});

test.each([
  [
    "a name that is not there",
    () => nn.weightNorm(linear(), "wieght"),
    ArgumentError,
    /Linear \(weight, bias\), got "wieght"/,
  ],
  ["a norm twice", () => nn.weightNorm(nn.weightNorm(linear())), ArgumentError, /the first parametrization of weight/],
  ["no tensor", () => nn.weightNorm(new nn.ReLU(), "training"), ArgumentError, /it has none/],
  ["another axis", () => nn.weightNorm(linear(), "weight", 2), ShapeError, /dim to be from -2 to 1/],
  ["another shape", () => nn.registerParametrization(linear(), "weight", new nn.Flatten(0)), ShapeError, /\[4, 3\]/],
  ["what is not there", () => nn.removeParametrizations(linear(), "weight"), ArgumentError, /with a parametrization/],
  [
    "one of several originals",
    () => nn.removeParametrizations(nn.weightNorm(linear()), "weight", false),
    ArgumentError,
    /weight has 2 trained tensors/,
  ],
] as const)("%s is rejected", (_, call, type, message) => {
  expect(call).toThrow(type);
  expect(call).toThrow(message);
});

test("a rejected parametrization changes nothing", () => {
  const layer = linear();
  const names = Object.keys(layer.stateDict());
  expect(() => nn.registerParametrization(layer, "weight", new nn.Flatten(0))).toThrow();
  expect(Object.keys(layer.stateDict())).toEqual(names);
});
