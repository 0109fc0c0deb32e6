/** Recurrent layers beyond the fixtures: initial weights, dropout, gradients, rejected arguments. */
import { describe, expect, test } from "bun:test";
import {
  ArgumentError,
  amax,
  DTypeError,
  Generator,
  gradcheck,
  manualSeed,
  nn,
  randn,
  ShapeError,
  type Tensor,
  tensor,
  withBackend,
} from "../../../src/index.ts";

const options = () => ({ dtype: "float64", generator: new Generator(3) }) as const;
const draw = (...shape: number[]) => {
  const x = randn(shape, { dtype: "float64", generator: new Generator(1) });
  x.requiresGrad = true;
  return x;
};

test("weights and biases start uniform in ±1 / √hidden", () => {
  for (const parameter of new nn.GRU(5, 64, { generator: new Generator(1) }).parameters()) {
    expect(Number(amax(parameter.abs()).item())).toBeLessThanOrEqual(1 / 8);
    expect(Number(parameter.std().item())).toBeCloseTo(1 / 8 / Math.sqrt(3), 2);
  }
});

test("a custom initialization is used", () => {
  const lstm = new nn.LSTM(3, 4, { initialization: nn.llamaInitialization(1e-6) });
  const largest = new Map([...lstm.namedParameters()].map(([name, x]) => [name, Number(amax(x.abs()).item())]));
  expect(largest.get("bias_ih_l0")).toBe(0);
  expect([largest.get("weight_ih_l0")! > 0, largest.get("weight_ih_l0")! < 1e-4]).toEqual([true, true]);
});

test("dropout applies between layers, in training only, and not after the last one", () => {
  const x = draw(4, 2, 3);
  const [dropping, plain] = [0.5, 0].map((dropout) => new nn.RNN(3, 5, { ...options(), numLayers: 2, dropout }));
  const of = (layer: nn.RNN): unknown => layer.forward(x).output.toArray();
  const whole = of(plain);
  expect(of(dropping.eval() as nn.RNN)).toEqual(whole);
  manualSeed(1);
  expect(of(dropping.train() as nn.RNN)).not.toEqual(whole);
  const single = new nn.RNN(3, 5, { ...options(), dropout: 0.5 });
  expect(of(single)).toEqual(of(new nn.RNN(3, 5, options())));
});

test.each(["cpu", "reference"] as const)("gradients of gradients equal finite differences on %s", (backend) =>
  withBackend(backend, () => {
    const gru = new nn.GRU(2, 3, { ...options(), bidirectional: true });
    const x = draw(3, 2, 2);
    const forward = () => gru.forward(x, { lengths: [1, 3] }).output;
    gradcheck(forward, [x, ...gru.parameters()]);
  }),
);

test("padding changes nothing, and its outputs are 0", () => {
  const lstm = new nn.LSTM(2, 3, { ...options(), batchFirst: true, bidirectional: true, numLayers: 2 });
  const x = draw(2, 4, 2);
  const lengths = tensor([4, 2], { dtype: "int32" });
  const changed = x.detach().clone();
  changed.select(0, 1).narrow(0, 2, 2).fill_(100);
  const [one, other] = [x, changed].map((each) => lstm.forward(each, { lengths }));
  for (const name of ["output", "hidden", "cell"] as const) expect(one[name].toArray()).toEqual(other[name].toArray());
  expect(Number(amax(one.output.select(0, 1).narrow(0, 2, 2).abs()).item())).toBe(0);
  const alone = lstm.forward(x.narrow(0, 1, 1).narrow(1, 0, 2));
  const close = one.hidden.narrow(1, 1, 1).sub(alone.hidden) as Tensor;
  expect(Number(amax(close.abs()).item())).toBeLessThan(1e-15);
});

test("recurrent layers print their sizes and options", () => {
  expect(String(new nn.LSTM(2, 3, { numLayers: 2, bidirectional: true, projSize: 1 }))).toBe(
    "LSTM(2, 3, numLayers: 2, bidirectional: true, projSize: 1)",
  );
  expect(String(new nn.GRUCell(2, 3))).toBe("GRUCell(2, 3)");
});

describe("recurrent layers reject", () => {
  const gru = new nn.GRU(2, 3, { dtype: "float64" });
  test.each([
    ["a size of 0", ArgumentError, "invalidSize", () => new nn.RNN(0, 3)],
    ["a projection that is not smaller", ArgumentError, "invalidSize", () => new nn.LSTM(2, 3, { projSize: 3 })],
    ["an activation that is none", ArgumentError, "unknownChoice", () => new nn.RNNCell(2, 3, true, "gelu" as "relu")],
    ["a dropout of 1", ArgumentError, "invalidProbability", () => new nn.GRU(2, 3, { dropout: 1 })],
    ["another width", ShapeError, "wrongShape", () => gru.forward(draw(4, 1, 3))],
    ["another rank", ShapeError, "wrongShape", () => gru.forward(draw(2))],
    ["a sequence of no steps", ShapeError, "wrongShape", () => gru.forward(draw(0, 1, 2))],
    ["another dtype", DTypeError, "dtypesDiffer", () => gru.forward(randn([4, 1, 2]))],
    ["a state of another shape", ShapeError, "wrongShape", () => gru.forward(draw(4, 1, 2), { hidden: draw(1, 3) })],
    ["a state that is an array", ArgumentError, "invalidOption", () => gru.forward(draw(4, 1, 2), [] as object)],
    [
      "an option that is not there",
      ArgumentError,
      "unknownOption",
      () => gru.forward(draw(4, 1, 2), { cells: 1 } as object),
    ],
    ["a length of 0", ArgumentError, "invalidLengths", () => gru.forward(draw(4, 1, 2), { lengths: [0] })],
    ["a length beyond the steps", ArgumentError, "invalidLengths", () => gru.forward(draw(4, 1, 2), { lengths: [5] })],
    ["too few lengths", ArgumentError, "invalidLengths", () => gru.forward(draw(4, 2, 2), { lengths: [1] })],
  ] as const)("recurrent layers reject %s", (_, Class, code, call) => {
    expect(call).toThrow(Class as typeof ArgumentError);
    expect(call).toThrow(expect.objectContaining({ code }));
  });
});
