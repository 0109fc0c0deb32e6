/** Layers through `compile`: results, gradients and running statistics are bit-identical to plain calls. */
import { describe, expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { compile, manualSeed, nn, rand, type Tensor, withBackend } from "../../src/index.ts";
import { hash } from "../ops/samples.ts";
import { checkKernels } from "../support/checked.ts";
import { usually } from "../support/repeats.ts";

checkKernels();

/** A layer, and the shape of its input. */
type Make = () => readonly [layer: nn.Module, shape: readonly number[]];

type Layer = nn.Module<[x: Tensor], Tensor>;

const feedForward = (width: number, norm: Layer, activation: Layer) =>
  new nn.Sequential(new nn.Linear(20, width), norm, activation, new nn.Linear(width, 6));

const makers: Readonly<Record<string, Make>> = {
  Linear: () => [new nn.Linear(12, 40), [48, 12]],
  Conv1d: () => [new nn.Conv1d(3, 5, 3, { padding: 1 }), [2, 3, 9]],
  Conv2d: () => [new nn.Conv2d(3, 4, 3, { stride: 2 }), [2, 3, 8, 7]],
  ConvTranspose2d: () => [new nn.ConvTranspose2d(3, 4, 2), [2, 3, 5, 5]],
  MaxPool2d: () => [new nn.MaxPool2d(2), [2, 3, 8, 6]],
  AvgPool2d: () => [new nn.AvgPool2d(2), [2, 3, 8, 6]],
  BatchNorm1d: () => [new nn.BatchNorm1d(6), [9, 6]],
  BatchNorm2d: () => [new nn.BatchNorm2d(3), [4, 3, 5, 5]],
  LayerNorm: () => [new nn.LayerNorm(24), [7, 24]],
  RMSNorm: () => [new nn.RMSNorm(24), [7, 24]],
  GroupNorm: () => [new nn.GroupNorm(2, 6), [3, 6, 4]],
  InstanceNorm2d: () => [new nn.InstanceNorm2d(3, { affine: true }), [2, 3, 4, 5]],
  Dropout: () => [new nn.Dropout(0.3), [8, 9]],
  PReLU: () => [new nn.PReLU(), [5, 6]],
  Softmax: () => [new nn.Softmax(-1), [5, 70]],
  LogSoftmax: () => [new nn.LogSoftmax(-1), [5, 9]],
  MultiheadAttention: () => [new SelfAttention(16, 2), [2, 9, 16]],
  TransformerEncoderLayer: () => [new nn.TransformerEncoderLayer(16, 2, { dimFeedforward: 48 }), [2, 24, 16]],
  "Linear, layer norm, gelu": () => [feedForward(72, new nn.LayerNorm(72), new nn.GELU()), [64, 20]],
  "Linear, RMS norm, silu": () => [feedForward(40, new nn.RMSNorm(40), new nn.SiLU()), [50, 20]],
  "Linear, batch norm, tanh": () => [feedForward(40, new nn.BatchNorm1d(40), new nn.Tanh()), [50, 20]],
};

/** Attention of a sequence to itself. */
class SelfAttention extends nn.Module {
  private readonly attention: nn.MultiheadAttention;

  constructor(width: number, heads: number) {
    super();
    this.attention = new nn.MultiheadAttention(width, heads);
  }

  forward(x: Tensor): Tensor {
    return this.attention.forward(x, x, x).output;
  }
}

/** Calls: two or three recordings, then at least two replays. */
const CALLS = 5;

function check(name: string): void {
  const make = (isCompiled: boolean) => {
    manualSeed(hash(name));
    const [layer, shape] = makers[name]();
    const step = (x: Tensor) => {
      for (const parameter of layer.parameters()) parameter.grad = null;
      const result = (layer as nn.Sequential).forward(x);
      if (result.requiresGrad) result.square().sum().backward();
      return [result, ...layer.parameters().map(({ grad }) => grad!.clone())];
    };
    const own = isCompiled ? compile(step, { state: layer }) : step;
    return { layer, shape, own };
  };
  const [plain, compiled] = [make(false), make(true)];
  for (let call = 0; call < CALLS; call++) {
    const run = ({ own, shape }: typeof plain) => {
      manualSeed(call);
      return own(rand(shape).sub(0.4)).map((each) => each.toArray());
    };
    expect(run(compiled)).toEqual(run(plain));
  }
  const stateOf = ({ layer }: typeof plain) => Object.values(layer.stateDict()).map((each) => each.toArray());
  expect(stateOf(compiled)).toEqual(stateOf(plain));
  expect((compiled.own as ReturnType<typeof compile>).explain()).toMatch(/[2-9] replays/);
}

describe.each(["cpu", "metal"] as const)("replays of layers on %s", (backend) => {
  const names = Object.keys(makers);
  const drawn = backend === "cpu" ? names : usually(names, (name) => hash(name) % 5 === 0);
  test.each(drawn)("replays of %s are bit-identical to plain calls", (name) =>
    withBackend(backend, () => orchard.tidy(() => check(name))),
  );
});
