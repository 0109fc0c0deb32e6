/** Activations, losses and containers as modules: each equals its operation with the same options. */
import { describe, expect, test } from "bun:test";
import * as orchard from "../../../src/index.ts";
import { ArgumentError, nn, randn, relu, type Tensor, tensor } from "../../../src/index.ts";
import { Generator } from "../../../src/random/generator.ts";

const operations = { ...orchard };
const { Linear, ModuleDict, ModuleList, Sequential } = nn;
const seeded = () => ({ generator: new Generator(5) });
const x = () => randn([4, 3], seeded());
const positive = () => orchard.exp(x());
const sides = () => tensor([[1, -1, 1], [-1, -1, 1], [1, 1, 1], [-1, 1, -1]]); // biome-ignore format: rows
const classes = () => tensor([2n, 0n, 1n, 2n]);
const labels = () => tensor([[1n, -1n, 0n], [0n, 2n, -1n], [-1n, 0n, 0n], [0n, 1n, 2n]]); // biome-ignore format: rows
const picture = () => randn([2, 3, 6, 6], seeded());
const volume = () => randn([2, 3, 4, 6, 6], seeded());
const cityBlock = (a: Tensor, b: Tensor): Tensor => orchard.sum(orchard.abs(orchard.sub(a, b) as Tensor), -1);
const factors = () => tensor([0.5, 1, 2]);

const bytesOf = (result: Tensor): string => Buffer.from(result.dataSync().buffer).toString("hex");

/** A module, the operands of a call, and the equivalent operation. */
type Row = readonly [module: nn.Module<never[], Tensor>, operands: readonly Tensor[], expected: Tensor];
const row = (module: unknown, operands: readonly Tensor[], expected: Tensor): Row => [
  module as nn.Module<never[], Tensor>,
  operands,
  expected,
];
const same = (module: unknown, operation: (x: Tensor) => Tensor) => row(module, [x()], operation(x()));

/** Convolutions and pooling along one, two and three axes. */
function convolutions(): Row[] {
  return ([1, 2, 3] as const).flatMap((rank) => {
    const whole = randn([2, 4, ...new Array<number>(rank).fill(5)], seeded());
    const conv = new nn[`Conv${rank}d`](4, 6, 3, { ...seeded(), stride: 2, padding: 1, dilation: 1, groups: 2 });
    const back = new nn[`ConvTranspose${rank}d`](4, 6, 3, { ...seeded(), stride: 2, outputPadding: 1, groups: 2 });
    const options = { stride: 2, padding: 1 };
    const own = { weight: conv.weight, bias: conv.bias! };
    return [
      row(conv, [whole], operations[`conv${rank}d`](whole, own.weight, { bias: own.bias, ...options, groups: 2 })),
      row(
        back,
        [whole],
        operations[`convTranspose${rank}d`](whole, back.weight, {
          bias: back.bias!,
          stride: 2,
          outputPadding: 1,
          groups: 2,
        }),
      ),
      row(new nn[`MaxPool${rank}d`](3, options), [whole], operations[`maxPool${rank}d`](whole, 3, options)),
      row(
        new nn[`AvgPool${rank}d`](3, { ...options, countIncludePad: false }),
        [whole],
        operations[`avgPool${rank}d`](whole, 3, { ...options, countIncludePad: false }),
      ),
      row(new nn[`AdaptiveAvgPool${rank}d`](2), [whole], operations[`adaptiveAvgPool${rank}d`](whole, 2)),
      row(new nn[`AdaptiveMaxPool${rank}d`](2), [whole], operations[`adaptiveMaxPool${rank}d`](whole, 2)),
      row(new nn[`LPPool${rank}d`](3, 2, { stride: 1 }), [whole], operations[`lpPool${rank}d`](whole, 3, 2, 1)),
    ];
  });
}

/** Norms of channels, in training. */
function norms(): Row[] {
  const whole = ([1, 2, 3] as const).map((rank) => randn([2, 4, ...new Array<number>(rank).fill(3)], seeded()));
  return [
    ...([1, 2, 3] as const).flatMap((rank) => [
      row(
        new nn[`BatchNorm${rank}d`](4, { eps: 0.1 }),
        [whole[rank - 1]],
        orchard.batchNorm(whole[rank - 1], { training: true, eps: 0.1 }),
      ),
      row(new nn[`InstanceNorm${rank}d`](4), [whole[rank - 1]], orchard.instanceNorm(whole[rank - 1])),
    ]),
    row(new nn.GroupNorm(2, 4), [whole[1]], orchard.groupNorm(whole[1], 2)),
  ];
}

const rows: readonly Row[] = [
  same(new nn.ReLU(), orchard.relu),
  same(new nn.ReLU6(), orchard.relu6),
  same(new nn.SiLU(), orchard.silu),
  same(new nn.Sigmoid(), orchard.sigmoid),
  same(new nn.LogSigmoid(), orchard.logSigmoid),
  same(new nn.Hardsigmoid(), orchard.hardsigmoid),
  same(new nn.Hardswish(), orchard.hardswish),
  same(new nn.Mish(), orchard.mish),
  same(new nn.SELU(), orchard.selu),
  same(new nn.Softsign(), orchard.softsign),
  same(new nn.Tanhshrink(), orchard.tanhshrink),
  same(new nn.Tanh(), orchard.tanh),
  same(new nn.Hardshrink(0.3), (own) => orchard.hardshrink(own, 0.3)),
  same(new nn.Softshrink({ lambda: 0.3 }), (own) => orchard.softshrink(own, 0.3)),
  same(new nn.Threshold(0.2, -3), (own) => orchard.threshold(own, 0.2, -3)),
  same(new nn.GLU(0), (own) => orchard.glu(own, 0)),
  same(new nn.Softmin(), (own) => orchard.softmin(own, -1)),
  same(new nn.RReLU(0.25, 0.75).eval(), (own) => orchard.leakyRelu(own, 0.5)),
  same(new nn.LeakyReLU(0.3), (own) => orchard.leakyRelu(own, 0.3)),
  same(new nn.ELU({ alpha: 2 }), (own) => orchard.elu(own, { alpha: 2 })),
  same(new nn.CELU({ alpha: 2 }), (own) => orchard.celu(own, { alpha: 2 })),
  same(new nn.GELU(), (own) => orchard.gelu(own)),
  same(new nn.GELU("tanh"), (own) => orchard.gelu(own, { approximate: "tanh" })),
  same(new nn.Hardtanh(-0.5, 0.25), (own) => orchard.hardtanh(own, -0.5, 0.25)),
  same(new nn.Softplus({ beta: 2 }), (own) => orchard.softplus(own, { beta: 2 })),
  same(new nn.Softmax(0), (own) => orchard.softmax(own, 0)),
  same(new nn.LogSoftmax(), (own) => orchard.logSoftmax(own, -1)),
  same(new nn.PReLU(3, 0.5), (own) => orchard.prelu(own, tensor([0.5, 0.5, 0.5]))),
  same(new nn.Identity(), (own) => own),
  same(new nn.Flatten(0), (own) => orchard.reshape(own, [12])),
  same(new nn.Unflatten(1, [3, 1]), (own) => orchard.reshape(own, [4, 3, 1])),
  row(new nn.L1Loss({ reduction: "sum" }), [x(), sides()], orchard.l1Loss(x(), sides(), { reduction: "sum" })),
  row(new nn.MSELoss(), [x(), sides()], orchard.mseLoss(x(), sides())),
  row(new nn.SmoothL1Loss({ beta: 0.5 }), [x(), sides()], orchard.smoothL1Loss(x(), sides(), { beta: 0.5 })),
  row(new nn.HuberLoss({ delta: 0.5 }), [x(), sides()], orchard.huberLoss(x(), sides(), { delta: 0.5 })),
  row(
    new nn.PoissonNLLLoss({ full: true }),
    [x(), positive()],
    orchard.poissonNllLoss(x(), positive(), { full: true }),
  ),
  row(
    new nn.GaussianNLLLoss({ full: true }),
    [x(), sides(), positive()],
    orchard.gaussianNllLoss(x(), sides(), positive(), { full: true }),
  ),
  row(
    new nn.HingeEmbeddingLoss({ margin: 2 }),
    [x(), sides()],
    orchard.hingeEmbeddingLoss(x(), sides(), { margin: 2 }),
  ),
  row(
    new nn.MarginRankingLoss({ margin: 2 }),
    [x(), positive(), sides()],
    orchard.marginRankingLoss(x(), positive(), sides(), { margin: 2 }),
  ),
  row(new nn.SoftMarginLoss(), [x(), sides()], orchard.softMarginLoss(x(), sides())),
  row(
    new nn.CosineEmbeddingLoss({ margin: 0.5 }),
    [x(), positive(), tensor([1, -1, -1, 1])],
    orchard.cosineEmbeddingLoss(x(), positive(), tensor([1, -1, -1, 1]), { margin: 0.5 }),
  ),
  row(
    new nn.TripletMarginLoss({ swap: true }),
    [x(), positive(), sides()],
    orchard.tripletMarginLoss(x(), positive(), sides(), { swap: true }),
  ),
  row(
    new nn.KLDivLoss({ reduction: "batchmean" }),
    [x(), positive()],
    orchard.klDiv(x(), positive(), { reduction: "batchmean" }),
  ),
  row(
    new nn.CrossEntropyLoss(factors(), { labelSmoothing: 0.25, ignoreIndex: 1 }),
    [x(), classes()],
    orchard.crossEntropy(x(), classes(), { weight: factors(), labelSmoothing: 0.25, ignoreIndex: 1 }),
  ),
  row(new nn.NLLLoss(factors()), [x(), classes()], orchard.nllLoss(x(), classes(), { weight: factors() })),
  row(
    new nn.BCELoss(factors()),
    [orchard.sigmoid(x()), orchard.sigmoid(positive())],
    orchard.binaryCrossEntropy(orchard.sigmoid(x()), orchard.sigmoid(positive()), { weight: factors() }),
  ),
  row(
    new nn.BCEWithLogitsLoss(factors(), { posWeight: factors() }),
    [x(), orchard.sigmoid(positive())],
    orchard.binaryCrossEntropyWithLogits(x(), orchard.sigmoid(positive()), { weight: factors(), posWeight: factors() }),
  ),
  row(
    new nn.MultiMarginLoss(factors(), { p: 2, margin: 0.5 }),
    [x(), classes()],
    orchard.multiMarginLoss(x(), classes(), { p: 2, margin: 0.5, weight: factors() }),
  ),
  row(
    new nn.MultiLabelSoftMarginLoss(factors()),
    [x(), orchard.sigmoid(positive())],
    orchard.multilabelSoftMarginLoss(x(), orchard.sigmoid(positive()), { weight: factors() }),
  ),
  row(
    new nn.TripletMarginWithDistanceLoss({ distanceFunction: cityBlock, margin: 2, swap: true }),
    [x(), positive(), sides()],
    orchard.tripletMarginWithDistanceLoss(x(), positive(), sides(), {
      distanceFunction: cityBlock,
      margin: 2,
      swap: true,
    }),
  ),
  row(
    new nn.CTCLoss(1, { reduction: "sum" }),
    [x(), tensor([2n, 0n]), tensor(4n), tensor(2n)],
    orchard.ctcLoss(x(), tensor([2n, 0n]), [4], [2], { blank: 1, reduction: "sum" }),
  ),
  row(
    new nn.FractionalMaxPool2d(2, 3, seeded()),
    [picture()],
    orchard.fractionalMaxPool2d(picture(), 2, { outputSize: 3, ...seeded() }),
  ),
  row(
    new nn.FractionalMaxPool3d([1, 2, 2], [3, 2, 3], seeded()),
    [volume()],
    orchard.fractionalMaxPool3d(volume(), [1, 2, 2], { outputSize: [3, 2, 3], ...seeded() }),
  ),
  row(new nn.MultiLabelMarginLoss(), [x(), labels()], orchard.multilabelMarginLoss(x(), labels())),
  ...convolutions(),
  ...norms(),
  row(new nn.CosineSimilarity(-1), [x(), sides()], orchard.cosineSimilarity(x(), sides(), -1)),
  row(new nn.PairwiseDistance(1), [x(), sides()], orchard.pairwiseDistance(x(), sides(), 1)),
];

test.each(rows.map((own) => [own[0].constructor.name, own] as const))(
  "%s equals its operation",
  (_name, [module, operands, expected]) => {
    const result = module.forward(...(operands as never[]));
    expect(result.describe()).toBe(expected.describe());
    expect(bytesOf(orchard.contiguous(result))).toBe(bytesOf(orchard.contiguous(expected)));
  },
);

test("every class of activations, losses, convolutions, pooling and norms of channels has a row", () => {
  const there = new Set(rows.map(([module]) => module.constructor.name));
  const wanted =
    /(?:Loss|Pool\dd|Conv\w*\dd|(?:Batch|Instance|Group)Norm\w*|LU\d?|[Ss]igmoid|Softmax|[Tt]anh|shrink|sign|swish)$/;
  const missing = Object.keys(nn).filter(
    (name) => /^[A-Z]/.test(name) && wanted.test(name) && !there.has(name) && name !== "SwiGLU",
  );
  expect(missing).toEqual([]);
});

test("factors are buffers, under PyTorch's names", () => {
  const loss = new nn.BCEWithLogitsLoss(factors(), { posWeight: factors() });
  expect([...loss.namedBuffers().keys()]).toEqual(["weight", "posWeight"]);
  expect(loss.parameters()).toEqual([]);
  expect(loss.to("float16").weight?.dtype).toBe("float16");
});

describe("BatchNorm", () => {
  test("running means and variances follow the batches, and are used in evaluation", () => {
    const layer = new nn.BatchNorm1d(1, { momentum: 0.5, dtype: "float64" });
    const batch = tensor([[1], [2], [6]], { dtype: "float64" }); // mean 3, sample variance 7
    layer.forward(batch);
    expect([layer.running_mean?.item(), layer.running_var?.item()]).toEqual([1.5, 4]);
    layer.forward(batch);
    expect([layer.running_mean?.item(), layer.running_var?.item()]).toEqual([2.25, 5.5]);
    const result = layer
      .eval()
      .forward(tensor([[3.25]], { dtype: "float64" }))
      .item();
    expect(result).toBeCloseTo(1 / Math.sqrt(5.5 + 1e-5), 12);
    expect(layer.running_mean?.item()).toBe(2.25);
  });

  test("without a momentum, running statistics are averages over all training batches", () => {
    const layer = new nn.BatchNorm1d(1, { momentum: null, dtype: "float64" });
    for (const [at, own] of [
      [0, 4],
      [3, 7],
      [4, 20],
    ].entries()) {
      layer.forward(tensor([[own[0]], [own[1]]], { dtype: "float64" }));
      expect(layer.num_batches_tracked?.item()).toBe(BigInt(at + 1));
    }
    // means 2, 5, 12; sample variances 8, 8, 128
    expect(layer.running_mean?.item()).toBeCloseTo(19 / 3, 14);
    expect(layer.running_var?.item()).toBeCloseTo(48, 13);
    layer.eval().forward(tensor([[1]], { dtype: "float64" }));
    expect(layer.num_batches_tracked?.item()).toBe(3n);
  });

  test("running statistics are buffers, and gradients flow through the batch", () => {
    const layer = new nn.BatchNorm2d(3);
    expect([...layer.namedParameters().keys()]).toEqual(["weight", "bias"]);
    expect([...layer.namedBuffers().keys()]).toEqual(["running_mean", "running_var", "num_batches_tracked"]);
    const whole = randn([2, 3, 2, 2], { ...seeded(), requiresGrad: true });
    layer.forward(whole).square().sum().backward();
    expect(whole.grad?.shape).toEqual([2, 3, 2, 2]);
  });

  test("BatchNorm rejects another rank, and channels that the groups do not divide", () => {
    expect(() => new nn.BatchNorm2d(3).forward(x())).toThrow("expected x to have 4 axes");
    expect(() => new nn.GroupNorm(2, 3)).toThrow("expected 2 groups to divide 3 channels");
    expect(() => new nn.Conv2d(3, 4, 3, { groups: 2 })).toThrow("expected 2 groups to divide 3 channels");
  });
});

test("a convolution prints what differs from the defaults", () => {
  expect(String(new nn.Conv2d(3, 8, 3, { padding: "same", bias: false }))).toBe(
    "Conv2d(3, 8, [3, 3], padding: same, bias: false)",
  );
});

describe.each([1, 2, 3] as const)("poolings along %d axes return indices", (rank) => {
  const whole = () => randn([2, 3, ...new Array<number>(rank).fill(6)], seeded());
  const bytes = ({ values, indices }: { values: Tensor; indices: Tensor }) => [bytesOf(values), bytesOf(indices)];

  test("poolings equal the operations", () => {
    const options = { stride: 2, padding: 1, returnIndices: true } as const;
    expect(bytes(new nn[`MaxPool${rank}d`](3, options).forward(whole()))).toEqual(
      bytes(operations[`maxPool${rank}d`](whole(), 3, options)),
    );
    expect(bytes(new nn[`AdaptiveMaxPool${rank}d`](4, true).forward(whole()))).toEqual(
      bytes(operations[`adaptiveMaxPool${rank}d`](whole(), 4, { returnIndices: true })),
    );
  });

  test("unpooling restores the largest elements", () => {
    const { values, indices } = new nn[`MaxPool${rank}d`](2, { returnIndices: true }).forward(whole());
    const back = new nn[`MaxUnpool${rank}d`](2).forward(values, indices, whole().shape);
    const isKept = orchard.ne(back, 0);
    expect(Number(isKept.sum().item())).toBe(values.size);
    expect(bytesOf(back)).toBe(bytesOf(orchard.where(isKept, whole(), 0) as Tensor));
  });
});

test("a fractional pooling returns indices", () => {
  const layer = new nn.FractionalMaxPool2d(2, { outputRatio: 0.5, returnIndices: true });
  const { values, indices } = layer.forward(picture());
  const flat = orchard.reshape(picture(), [2, 3, 36]);
  expect(values.shape).toEqual([2, 3, 3, 3]);
  const taken = orchard.gather(flat, 2, orchard.reshape(indices, [2, 3, 9]));
  expect(bytesOf(orchard.reshape(taken, [2, 3, 3, 3]))).toBe(bytesOf(values));
});

describe("layers of padding check their arguments", () => {
  test("padding rejects a wrong number of values when it is created, and other axes when it is called", () => {
    expect(() => new nn.ZeroPad2d([1, 2])).toThrow("expected padding to be a whole number, or 4 of them, got padding");
    expect(() => new nn.ReflectionPad1d(0.5)).toThrow("ReflectionPad1d");
    expect(() => new nn.ReflectionPad1d(1).forward(orchard.ones([4]))).toThrow("expected 3 axes, or 2 without a batch");
    expect(() => new nn.ReplicationPad2d(1).forward(orchard.ones([1, 1, 1, 2, 2]))).toThrow("expected 4 axes, or 3");
    expect(new nn.ConstantPad1d(1, 2).forward(orchard.ones([1])).toArray()).toEqual([2, 1, 2]);
  });

  test("padding prints its options", () =>
    expect([new nn.CircularPad1d(2), new nn.ConstantPad1d([1, -1], 3)].map(String)).toEqual([
      "CircularPad1d([2, 2])",
      "ConstantPad1d([1, -1], value: 3)",
    ]));
});

test("layers print their options", () => {
  expect(String(new Sequential(new Linear(3, 2), relu, new nn.LeakyReLU(0.3), new nn.HuberLoss() as never))).toBe(
    [
      "Sequential(",
      "  (0): Linear(3, 2)",
      "  (2): LeakyReLU(negativeSlope: 0.3)",
      "  (3): HuberLoss(delta: 1, reduction: mean)",
      ")",
    ].join("\n"),
  );
});

describe("Sequential", () => {
  test("Sequential accepts functions", () => {
    const layer = new Linear(3, 2, seeded());
    const chain = new Sequential(layer, relu, (own) => orchard.mul(own, 2) as Tensor);
    expect(bytesOf(chain.forward(x()))).toBe(bytesOf(orchard.mul(relu(layer.forward(x())), 2) as Tensor));
    expect([...chain.namedParameters().keys()]).toEqual(["0.weight", "0.bias"]);
  });

  test("Sequential rejects a class", () => expect(() => new Sequential(Linear as never)).toThrow(ArgumentError));
});

describe("ModuleList", () => {
  const list = () => new ModuleList([new Linear(3, 3), new Linear(3, 2)]);

  test("ModuleList names its modules by index, and grows", () => {
    const own = list().append(new Linear(2, 1));
    expect([...own.namedParameters().keys()].filter((name) => name.endsWith("weight"))).toEqual(
      ["0", "1", "2"].map((at) => `${at}.weight`),
    );
    expect([own.length, own.at(-1)?.outputs, [...own].length]).toEqual([3, 1, 3]);
  });

  test("ModuleList rejects values other than modules, and a call", () => {
    expect(() => new ModuleList([relu] as never)).toThrow("expected modules, got");
    expect(() => list().append(3 as never)).toThrow("expected modules, got 3 to append");
    expect(() => list().forward()).toThrow("ModuleList has no forward");
  });
});

describe("ModuleDict", () => {
  const dictionary = () => new ModuleDict({ price: new Linear(3, 1), kind: new Linear(3, 2) });

  test("ModuleDict names its modules, and replaces them", () => {
    const own = dictionary();
    expect([...own.namedParameters().keys()]).toEqual(["price.weight", "price.bias", "kind.weight", "kind.bias"]);
    expect(own.set("kind", new Linear(3, 5)).get("kind").outputs).toBe(5);
    expect([own.keys(), own.has("kind"), own.has("get")]).toEqual([["price", "kind"], true, false]);
  });

  test("ModuleDict rejects names of a module's members, and unknown names", () => {
    for (const name of ["forward", "training", "a.b", ""])
      expect(() => dictionary().set(name, new Linear(1, 1))).toThrow("is not a property of the module");
    expect(() => dictionary().get("size")).toThrow('expected one of price, kind, got "size"');
  });
});

describe("ParameterList", () => {
  test("ParameterList makes parameters of tensors, which share their memory, and names them by index", () => {
    const own = orchard.ones([2]);
    const trained = orchard.zeros([3], { requiresGrad: true });
    const list = new nn.ParameterList([own, trained]).append(orchard.mul(own, 2) as Tensor);
    expect([...list.namedParameters().keys()]).toEqual(["0", "1", "2"]);
    expect([own.requiresGrad, list.at(1) === trained, list.length, list.at(-1)?.isLeaf]).toEqual([
      false,
      true,
      3,
      true,
    ]);
    orchard.add_(own, 1);
    expect([...list].map((each) => each.toArray())).toEqual([[2, 2], [0, 0, 0], [2, 2]]); // biome-ignore format: row
  });

  test("ParameterList is part of a module's state, and rejects integers and calls", () => {
    class Scaled extends nn.Module<[], Tensor> {
      readonly scales = new nn.ParameterList([orchard.ones([2])]);
      readonly named = new nn.ParameterDict({ shift: orchard.zeros([1]) });
      forward(): Tensor {
        return orchard.mul(this.scales.at(0)!, this.named.get("shift")) as Tensor;
      }
    }
    const module = new Scaled();
    expect(Object.keys(module.stateDict())).toEqual(["scales.0", "named.shift"]);
    module.loadStateDict({ "scales.0": tensor([3, 4]), "named.shift": tensor([2]) });
    expect(module.forward().toArray()).toEqual([6, 8]);
    expect(() => new nn.ParameterList([classes()])).toThrow("expected tensors of floats or complex numbers, got");
    expect(() => new nn.ParameterList([3 as never])).toThrow(ArgumentError);
    expect(() => module.scales.forward()).toThrow("ParameterList has no forward");
  });
});

test("a ParameterDict replaces parameters, and rejects unknown names and names of a module's members", () => {
  const own = new nn.ParameterDict({ scale: orchard.ones([2]) }).set("shift", orchard.ones([1]));
  expect([own.keys(), own.has("scale"), own.has("get")]).toEqual([["scale", "shift"], true, false]);
  expect(own.set("scale", orchard.zeros([3])).get("scale").shape).toEqual([3]);
  for (const name of ["forward", "training", "a.b", ""])
    expect(() => own.set(name, orchard.ones([1]))).toThrow("is not a property of the module");
  expect(() => own.get("size")).toThrow('expected one of scale, shift, got "size"');
});

test("Softmax2d normalizes over channels, with a batch and without one", () => {
  const own = orchard.randn([2, 3, 4, 5]);
  const wanted = orchard.softmax(own, 1);
  expect(new nn.Softmax2d().forward(own).toArray()).toEqual(wanted.toArray());
  expect(new nn.Softmax2d().forward(own.select(0, 1)).toArray()).toEqual(wanted.select(0, 1).toArray());
  expect(() => new nn.Softmax2d().forward(orchard.ones([2, 3]))).toThrow("expected 4 axes, or 3 without a batch");
});

test("RReLU draws slopes only in training", () => {
  const below = orchard.full([1000], -1);
  const slopes = Array.from(new nn.RReLU(0.25, 0.75).forward(below).dataSync() as Float32Array, (own) => -own);
  expect(slopes.every((own) => own >= 0.25 && own < 0.75)).toBe(true);
  expect(new Set(slopes).size).toBeGreaterThan(900);
});

test("parameters are float32 if no dtype is given", () => {
  const layers = [
    new nn.PReLU(),
    new Linear(2, 2),
    new nn.Bilinear(2, 2, 2),
    new nn.Embedding(3, 2),
    new nn.LayerNorm(2),
    new nn.RMSNorm(2),
    new nn.GroupNorm(1, 2),
    new nn.BatchNorm1d(2),
    new nn.Conv1d(1, 1, 1),
    new nn.LSTM(2, 2),
    new nn.MLP(2),
    new nn.SwiGLU(2),
    new nn.MultiHeadAttention(2, { heads: 1 }),
  ];
  for (const layer of layers)
    for (const [name, parameter] of layer.namedParameters())
      expect([layer.constructor.name, name, parameter.dtype]).toEqual([layer.constructor.name, name, "float32"]);
});
