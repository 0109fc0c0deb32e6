/**
 * Plans of drawn graphs: fused nodes give the results of single nodes, whose operators the node tests check. Finishing
 * a convolution is compared with formulas in float64.
 */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { io, noGrad, type Tensor, tensor } from "../../src/index.ts";
import { buildModel } from "../../src/onnx/build.ts";
import { planFor } from "../../src/onnx/plan/trace.ts";
import { readModelProto } from "../../src/onnx/schema.ts";
import { encodeModel, type WrittenNode, type WrittenTensor } from "../../src/onnx/write/encode.ts";
import { type Finish, finished, noFinish } from "../../src/ops/convolution/finish.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";

const OUTPUT = "y";

/** A graph that grows node by node; the names of its values are numbered. */
class Growing {
  readonly nodes: WrittenNode[] = [];
  readonly constants: WrittenTensor[] = [];
  readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  node(operator: string, inputs: readonly string[], attributes: WrittenNode["attributes"] = {}): string {
    const output = `v${this.nodes.length}`;
    this.nodes.push({ operator, inputs, outputs: [output], attributes });
    return output;
  }

  constant(shape: readonly number[], low = -1, high = 1): string {
    const size = shape.reduce((product, each) => product * each, 1);
    return this.values(
      Float32Array.from({ length: size }, () => low + (high - low) * this.random.next()),
      shape,
    );
  }

  scalar(value: number): string {
    return this.values(Float32Array.of(value), []);
  }

  values(list: Float32Array | BigInt64Array, shape: readonly number[]): string {
    const name = `c${this.constants.length}`;
    const dtype = list instanceof Float32Array ? "float32" : "int64";
    this.constants.push({ name, dtype, shape, bytes: new Uint8Array(list.buffer) });
    return name;
  }

  /** The bytes of the model; its output is `last`. */
  async model(input: readonly number[], last: string): Promise<Uint8Array> {
    return encodeModel({
      nodes: [...this.nodes, { operator: "Identity", inputs: [last], outputs: [OUTPUT] }],
      constants: this.constants,
      inputs: [{ name: "x", dtype: "float32", shape: input }],
      outputs: [{ name: OUTPUT, dtype: "float32", shape: [] }],
    });
  }
}

/** An operation on a value of shape [batch, channels, …]. */
type Follow = (graph: Growing, x: string, shape: readonly number[]) => string;

const perChannel = (graph: Growing, shape: readonly number[], low?: number, high?: number): string =>
  graph.random.next() < 0.5
    ? graph.constant([], low, high)
    : graph.constant([shape[1], ...shape.slice(2).map(() => 1)], low, high);
const inEitherOrder = (graph: Growing, a: string, b: string): readonly string[] =>
  graph.random.next() < 0.5 ? [a, b] : [b, a];

const follows: Readonly<Record<string, Follow>> = {
  normalize: (graph, x, [, channels = 1]) => {
    const [gamma, beta, mean] = [1, 2, 3].map(() => graph.constant([channels]));
    return graph.node("BatchNormalization", [x, gamma, beta, mean, graph.constant([channels], 0.5, 2)]);
  },
  scale: (graph, x, shape) => graph.node("Mul", inEitherOrder(graph, x, perChannel(graph, shape))),
  divide: (graph, x, shape) => graph.node("Div", [x, perChannel(graph, shape, 0.5, 2)]),
  shift: (graph, x, shape) => graph.node("Add", inEitherOrder(graph, x, perChannel(graph, shape))),
  subtract: (graph, x, shape) => graph.node("Sub", [x, perChannel(graph, shape)]),
  affine: (graph, x) => {
    const scaled = graph.node("Div", [graph.node("Add", [graph.scalar(0.7), x]), graph.scalar(3)]);
    return graph.node("Mul", [graph.node("Sub", [scaled, graph.scalar(0.2)]), graph.scalar(-2)]);
  },
  fromConstant: (graph, x, shape) => graph.node("Sub", [perChannel(graph, shape), x]),
  addSame: (graph, x, shape) => graph.node("Add", inEitherOrder(graph, x, graph.constant(shape))),
  twice: (graph, x) => graph.node("Add", [x, x]),
  branch: (graph, x) => graph.node("Add", inEitherOrder(graph, graph.node("Tanh", [x]), graph.node("Relu", [x]))),
  relu: (graph, x) => graph.node("Relu", [x]),
  leaky: (graph, x) => graph.node("LeakyRelu", [x], { alpha: { float: 0.2 } }),
  sigmoid: (graph, x) => graph.node("Sigmoid", [x]),
  clip: (graph, x) => graph.node("Clip", [x, graph.scalar(-0.5), graph.random.next() < 0.5 ? graph.scalar(0.7) : ""]),
  bounds: (graph, x) => {
    const [first, second] = graph.random.next() < 0.5 ? ["Max", "Min"] : ["Min", "Max"];
    const bounded = graph.node(first, inEitherOrder(graph, x, graph.scalar(-0.25)));
    return graph.node(second, inEitherOrder(graph, bounded, graph.scalar(0.5)));
  },
  bounded: (graph, x) => graph.node("Min", [graph.node("Relu", [x]), graph.scalar(0.6)]),
  hardSigmoid: (graph, x) => graph.node("HardSigmoid", [x], { alpha: { float: 0.3 }, beta: { float: 0.4 } }),
  silu: (graph, x) => graph.node("Mul", inEitherOrder(graph, x, graph.node("Sigmoid", [x]))),
  hardswish: (graph, x) => {
    const sum = graph.node("Add", inEitherOrder(graph, x, graph.scalar(3)));
    const clipped = graph.node("Clip", [sum, graph.scalar(0), graph.scalar(6)]);
    return graph.node("Div", [graph.node("Mul", inEitherOrder(graph, x, clipped)), graph.scalar(6)]);
  },
};

/** Draws a convolution and up to eight nodes after it. */
function drawChain(random: Random): { graph: Growing; input: number[]; last: string } {
  const whole = (least: number, most: number) => least + Math.floor(random.next() * (most - least + 1));
  const graph = new Growing(random);
  const rank = whole(1, 2);
  const groups = whole(1, 2);
  const sizes = (least: number, most: number) => Array.from({ length: rank }, () => whole(least, most));
  const [kernel, strides] = [sizes(1, 3), sizes(1, 2)];
  const input = [whole(1, 2), groups * whole(1, 3), ...sizes(4, 9)];
  const channels = groups * whole(1, 9);
  const weight = graph.constant([channels, input[1] / groups, ...kernel]);
  const pads = [...sizes(0, 2), ...sizes(0, 2)];
  const more = [...sizes(0, 1), ...sizes(0, 1)];
  const padding = [0, 0, ...more.slice(0, rank), 0, 0, ...more.slice(rank)];
  const padded = random.next() < 0.4;
  const x = padded
    ? graph.node("Pad", ["x", graph.values(BigInt64Array.from(padding, BigInt), [padding.length])])
    : "x";
  const bias = random.next() < 0.5 ? [graph.constant([channels])] : [];
  let last = graph.node("Conv", [x, weight, ...bias], { group: groups, strides, pads, kernel_shape: kernel });
  const all = pads.map((size, at) => size + (padded ? more[at] : 0));
  const spatial = input.slice(2).map((size, at) => {
    return Math.floor((size + all[at] + all[at + rank] - kernel[at]) / strides[at]) + 1;
  });
  const shape = [input[0], channels, ...spatial];
  const names = Object.keys(follows);
  for (let count = whole(0, 8); count > 0; count--)
    last = follows[names[whole(0, names.length - 1)]](graph, last, shape);
  return { graph, input, last };
}

const drawn = (random: Random, shape: readonly number[]): Tensor<"float32"> =>
  tensor(
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 4 * random.next() - 2),
    { shape },
  );

async function planOf(bytes: Uint8Array, x: Tensor) {
  const graph = buildModel(await readModelProto(bytes, "the model"), { path: "the model" });
  return { graph, plan: noGrad(() => planFor(graph, [x], graph.constants))! };
}

/** The largest difference relative to the largest element. */
function differenceOf(actual: Tensor, expected: Tensor): number {
  expect(actual.describe()).toBe(expected.describe());
  const [a, b] = [actual, expected].map((each) => Array.from(each.dataSync() as ArrayLike<number>, Number));
  const most = Math.max(1e-30, ...b.map(Math.abs));
  return Math.max(0, ...a.map((value, at) => Math.abs(value - b[at]))) / most;
}

/** Runs of a plan on the cpu backend: the first two are recorded, and the others replay one native call. */
const RUNS = 4;

test("drawn convolutions, fused with the nodes around them, agree with single nodes", async () => {
  const random = new Random(3);
  let [steps, planned] = [0, 0];
  for (let count = 0; count < repeats({ usual: 150, all: 3000 }); count++) {
    const { graph: growing, input, last } = drawChain(random);
    const x = drawn(random, input);
    const bytes = await growing.model(input, last);
    for (const backend of ["cpu", "reference"] as const)
      await withBackend(backend, async () => {
        const { graph, plan } = await planOf(bytes, x);
        for (let run = 0; run < (backend === "cpu" ? RUNS : 1); run++) {
          const given = run === 0 ? x : drawn(random, input);
          const [single, fused] = noGrad(() => [graph.run([given])[0], plan.run([given])[0]]) as [Tensor, Tensor];
          expect(differenceOf(fused, single)).toBeLessThan(1e-5);
        }
        steps += graph.steps.length;
        planned += plan.length;
      });
  }
  expect(planned / steps).toBeLessThan(0.75); // without fusing, the plans have all steps but the last
});

const half = (graph: Growing, x: string): string => graph.node("Mul", [x, graph.scalar(0.5)]);
const onePlus = (graph: Growing, x: string): string => graph.node("Add", [x, graph.scalar(1)]);

/** Functions of x [2, 3, 8], as exporters write them. */
const written: Readonly<Record<string, (graph: Growing, x: string) => string>> = {
  "GELU, halved last": (graph, x) => {
    const phi = onePlus(graph, graph.node("Erf", [graph.node("Div", [x, graph.scalar(Math.SQRT2)])]));
    return half(graph, graph.node("Mul", [x, phi]));
  },
  "GELU, halved first": (graph, x) => {
    const phi = onePlus(graph, graph.node("Erf", [graph.node("Mul", [x, graph.scalar(Math.SQRT1_2)])]));
    return graph.node("Mul", [half(graph, x), phi]);
  },
  "GELU by tanh": (graph, x) => {
    const cube = graph.node("Mul", [graph.node("Pow", [x, graph.scalar(3)]), graph.scalar(0.044715)]);
    const inner = graph.node("Mul", [graph.node("Add", [x, cube]), graph.scalar(Math.sqrt(2 / Math.PI))]);
    return graph.node("Mul", [half(graph, x), onePlus(graph, graph.node("Tanh", [inner]))]);
  },
  "layer normalization": (graph, x) => {
    const centered = graph.node("Sub", [x, graph.node("ReduceMean", [x], { axes: [-1] })]);
    const variance = graph.node("ReduceMean", [graph.node("Pow", [centered, graph.scalar(2)])], { axes: [-1] });
    const deviation = graph.node("Sqrt", [graph.node("Add", [variance, graph.scalar(1e-5)])]);
    const scaled = graph.node("Mul", [graph.node("Div", [centered, deviation]), graph.constant([8])]);
    return graph.node("Add", [scaled, graph.constant([8])]);
  },
  "a product with a bias": (graph, x) =>
    graph.node("Add", [graph.constant([5]), graph.node("MatMul", [x, graph.constant([8, 5])])]),
};

describe("an operator and those around it fuse to one step", () => {
  for (const [name, write] of Object.entries(written))
    test(name, async () => {
      const random = new Random(5);
      const growing = new Growing(random);
      const x = drawn(random, [2, 3, 8]);
      const { graph, plan } = await planOf(await growing.model(x.shape, write(growing, "x")), x);
      const [single, fused] = noGrad(() => [graph.run([x])[0], plan.run([x])[0]]) as [Tensor, Tensor];
      expect(plan.length).toBe(1);
      expect(differenceOf(fused, single)).toBeLessThan(2e-6);
    });
});

test("attention with and without scale and mask fuses to one step", async () => {
  const random = new Random(6);
  for (const operator of ["Mul", "Div", ""])
    for (const isMasked of [false, true]) {
      const growing = new Growing(random);
      const x = drawn(random, [2, 3, 5, 4]);
      const [keys, values] = [growing.constant([2, 3, 4, 7]), growing.constant([2, 3, 7, 6])];
      const products = growing.node("MatMul", ["x", keys]);
      const scaled = operator === "" ? products : growing.node(operator, [products, growing.scalar(2)]);
      const masked = isMasked ? growing.node("Add", [scaled, growing.constant([1, 1, 5, 7])]) : scaled;
      const last = growing.node("MatMul", [growing.node("Softmax", [masked], { axis: -1 }), values]);
      const { graph, plan } = await planOf(await growing.model(x.shape, last), x);
      const [single, fused] = noGrad(() => [graph.run([x])[0], plan.run([x])[0]]) as [Tensor, Tensor];
      expect(plan.length).toBe(1);
      expect(differenceOf(fused, single)).toBeLessThan(2e-6);
    }
});

test("a plan uses the current weights after they change", async () => {
  const random = new Random(7);
  const growing = new Growing(random);
  const convolved = growing.node("Conv", ["x", growing.constant([4, 2, 3]), growing.constant([4])]);
  const last = growing.node("Mul", [convolved, growing.constant([4, 1], 1, 2)]);
  const x = drawn(random, [1, 2, 9]);
  const model = await io.loadOnnx(await growing.model(x.shape, last));
  const results = async () => (await model.run({ x }))[OUTPUT] as Tensor;
  const before = [await results(), await results(), await results()];
  for (let run = 0; run < RUNS; run++) expect(differenceOf(await results(), before[2])).toBe(0);
  noGrad(() => {
    for (const weight of model.parameters()) weight.mul_(2);
  });
  const after = await results();
  expect(differenceOf(after, before[2].mul(4))).toBeLessThan(1e-6);
  expect(differenceOf(await results(), after)).toBeLessThan(1e-6);
});

test("a plan whose steps read elements of results is right for each input", async () => {
  const growing = new Growing(new Random(10));
  const places = growing.node("NonZero", [growing.node("Relu", ["x"])]);
  const model = await io.loadOnnx(await growing.model([12], growing.node("Cast", [places], { to: 1 })));
  const random = new Random(11);
  for (let run = 0; run < 2 * RUNS; run++) {
    const x = drawn(random, [12]);
    const wanted = [...(x.dataSync() as Float32Array).entries()].flatMap(([at, value]) => (value > 0 ? [at] : []));
    expect(((await model.run({ x }))[OUTPUT] as Tensor).toArray()).toEqual([wanted]);
  }
});

test("runs with other sizes, or other elements of a small integer input, have the right results", async () => {
  const growing = new Growing(new Random(8));
  const last = growing.node("Reshape", [growing.node("Relu", ["x"]), "shape"]);
  const bytes = await encodeModel({
    nodes: growing.nodes,
    constants: growing.constants,
    inputs: [
      { name: "x", dtype: "float32", shape: ["n"] },
      { name: "shape", dtype: "int64", shape: [2] },
    ],
    outputs: [{ name: last, dtype: "float32", shape: ["rows", "columns"] }],
  });
  const model = await io.loadOnnx(bytes);
  const shapes = [
    [2, 3],
    [3, 2],
    [6, 1],
    [2, 4],
  ];
  for (let count = 0; count < 4; count++)
    for (const [rows, columns] of shapes as [number, number][]) {
      const shape = tensor([BigInt(rows), BigInt(columns)]);
      const { [last]: result } = await model.run({ x: tensor(new Float32Array(rows * columns)), shape });
      expect((result as Tensor).describe()).toBe(`float32[${rows}, ${columns}]`);
    }
});

/** The activations of a finish, in float64. */
const formulas: Readonly<Record<Finish["activation"], (x: number, a: number, b: number) => number>> = {
  none: (x) => x,
  relu: (x) => Math.max(x, 0),
  leaky: (x, slope) => (x < 0 ? slope * x : x),
  clamp: (x, low, high) => Math.min(Math.max(x, low), high),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  silu: (x) => x / (1 + Math.exp(-x)),
  hardsigmoid: (x, slope, offset) => Math.min(Math.max(slope * x + offset, 0), 1),
  hardswish: (x) => (x * Math.min(Math.max(x + 3, 0), 6)) / 6,
};

test("a finish computes its formula", () => {
  const random = new Random(9);
  for (let count = 0; count < repeats({ usual: 120, all: 2000 }); count++) {
    const whole = (most: number) => 1 + Math.floor(random.next() * most);
    const shape = [whole(3), whole(5), whole(9), whole(80)];
    const names = Object.keys(formulas) as Finish["activation"][];
    const activation = names[count % names.length];
    const [alpha, beta] = activation === "clamp" ? [-0.3, 0.6] : [0.25, 0.4];
    const scaled = random.next() < 0.5 ? { scale: 1.5, shift: -0.25 } : {};
    const finish = { ...noFinish, activation, alpha, beta, ...scaled };
    const y = drawn(random, shape);
    const bias = random.next() < 0.5 ? drawn(random, [shape[1]]) : undefined;
    const added = random.next() < 0.5 ? drawn(random, shape) : undefined;
    const [values, biases, addends] = [y, bias, added].map((each) => each && Array.from(each.dataSync()));
    const inner = shape[2] * shape[3];
    const expected = values!.map((value, at) => {
      const sum = value + (biases?.[Math.floor(at / inner) % shape[1]] ?? 0) + (addends?.[at] ?? 0);
      return formulas[activation](sum, alpha, beta) * finish.scale + finish.shift;
    });
    for (const backend of ["cpu", "reference"] as const) {
      const result = withBackend(backend, () => noGrad(() => finished(y.clone(), bias, added, finish)));
      const wanted = tensor(Float32Array.from(expected), { shape });
      expect(differenceOf(result, wanted)).toBeLessThan(1e-6);
    }
  }
});
