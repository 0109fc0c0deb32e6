/**
 * batchNorm, groupNorm and instanceNorm: every backend compared with the formulas in float64, channels of every size.
 */
import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { batchNorm, groupNorm, instanceNorm, mul, square, sum, tensor } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { total } from "../reduction/groups.ts";
import { tested, testTable } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import type { Block, Layout, OperandSpec } from "../samples.ts";
import { exactly, type OperationRow, type Round, type Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];

interface Options {
  readonly kind: "batch" | "group" | "instance";
  readonly groups?: number;
  readonly isAffine: boolean;
  /** Given statistics: the running means and variances. */
  readonly given?: { readonly mean: readonly number[]; readonly variance: readonly number[] };
}

const EPS = 0.5;

/** The number of elements that are normalized together. */
function keyOf(options: Options, [, channels]: readonly number[], inner: number): (at: number) => number {
  const per = options.kind === "group" ? channels / options.groups! : 1;
  const count = channels / per;
  return (at) => {
    const [channel, element] = [Math.floor(at / inner) % channels, Math.floor(at / inner / channels)];
    return options.kind === "batch" ? channel : element * count + Math.floor(channel / per);
  };
}

function oracle([x, weight, bias]: readonly Block[], options: Options, round: Round) {
  const [, channels] = x.shape as [number, number];
  const inner = x.shape.slice(2).reduce((product, size) => product * size, 1);
  const key = keyOf(options, x.shape, inner);
  const members = new Map<number, number[]>();
  for (let at = 0; at < x.values.length; at++) members.set(key(at), [...(members.get(key(at)) ?? []), at]);
  const values = new Array<number>(x.values.length);
  const roundings = new Array<number>(x.values.length);
  for (const [own, places] of members) {
    const row = places.map((at) => x.values[at]);
    const mean = options.given?.mean[own] ?? round(total(row, round) / row.length);
    const squares = row.map((value) => round(round(value - mean) ** 2));
    const variance = options.given?.variance[own] ?? round(total(squares, round) / row.length);
    const scale = round(1 / Math.sqrt(round(variance + EPS)));
    const magnitude = (total(row.map(Math.abs), exactly) / row.length + Math.abs(mean)) * scale;
    for (const at of places) {
      const channel = Math.floor(at / inner) % channels;
      const factor = weight?.values[channel] ?? 1;
      const product = round(round(round(x.values[at] - mean) * scale) * factor);
      const added = bias?.values[channel] ?? 0;
      values[at] = round(product + added);
      const ofRow = (Math.log2(row.length) + 6) * (magnitude * Math.abs(factor) + Math.abs(product));
      roundings[at] = 2 * (ofRow + Math.abs(added));
    }
  }
  return { shape: x.shape, values, roundings };
}

function compute([x, weight, bias]: readonly Tensor[], { kind, groups, given }: Options): Tensor {
  const options = { weight, bias, eps: EPS };
  if (kind === "group") return groupNorm(x, groups!, options);
  if (kind === "instance") return instanceNorm(x, options);
  if (!given) return batchNorm(x, { ...options, training: true });
  const dtype = x.dtype === "float64" ? "float64" : "float32";
  const [runningMean, runningVar] = [given.mean, given.variance].map((own) => tensor([...own], { dtype }));
  return batchNorm(x, { ...options, runningMean, runningVar });
}

/** Single elements, adjacent columns, whole channels, more than one slab of columns and more than one piece. */
const shapes: readonly (readonly number[])[] = [
  [5, 3],
  [2, 70],
  [37, 2, 3],
  [3, 2, 5, 7],
  [2, 4, 33],
  [2, 2, 1100],
  [2, 2, 3, 4, 5],
  [1, 3, 40],
];
const layouts: readonly Layout[] = ["contiguous", "transposed", "strided", "offset", "reversed"];

const sampleOf = (shape: readonly number[], at: number, options: Options): Sample<Options> => {
  const vector: OperandSpec = { shape: [shape[1]], layout: layouts[(at + 1) % 2 === 0 ? 2 : 0] };
  const x = { shape, layout: layouts[at % layouts.length] };
  return { inputs: options.isAffine ? [x, vector, vector] : [x], options };
};

const isAffine = true;
const given = { mean: [0.5, -1, 0.25], variance: [0.3, 2, 0] };
const rows: readonly OperationRow<Options>[] = (
  [
    ["batchNorm", [...shapes.map((shape, at) => sampleOf(shape, at, { kind: "batch", isAffine: at % 3 !== 2 }))]],
    [
      "batchNorm of running statistics",
      [
        [4, 3],
        [2, 3, 5, 7],
        [0, 3, 2],
      ].map((shape, at) => sampleOf(shape, at, { kind: "batch", isAffine: at !== 1, given })),
    ],
    ["groupNorm", [sampleOf([2, 6, 5], 1, { kind: "group", groups: 3, isAffine })]],
    ["instanceNorm", [sampleOf([2, 2, 5, 3], 0, { kind: "instance", isAffine })]],
  ] as const
).map(([name, samples]) => ({
  name,
  compute,
  oracle,
  samples,
  dtypes: floats,
  accuracy: { flash: true },
  gradient: true,
  gradientRoundings: ([x]: readonly Block[]) => 8 * Math.log2(x.values.length + 2),
}));

testTable("norms of channels", rows);

/** A test on each backend, which must not fall back. */
const onEachBackend = (name: string, body: () => void): void =>
  test.each(tested)(`${name} is correct, on %s`, (backend) => withStrict(true, () => withBackend(backend, body)));

onEachBackend("running statistics follow, with the variance of samples", () => {
  const x = tensor([1, 5, 3, 9, 8, 1], { shape: [3, 2] });
  const [runningMean, runningVar] = [tensor([1, 2]), tensor([3, 4])];
  batchNorm(x, { runningMean, runningVar, training: true, momentum: 0.25 });
  const means = [4, 5]; // the means of 1, 3, 8 and of 5, 9, 1
  const variances = [13, 16]; // Σ (x − mean)² / 2
  expect([...runningMean.dataSync()]).toEqual([0.75 * 1 + 0.25 * means[0], 0.75 * 2 + 0.25 * means[1]]);
  expect([...runningVar.dataSync()]).toEqual([0.75 * 3 + 0.25 * variances[0], 0.75 * 4 + 0.25 * variances[1]]);
});

onEachBackend("far from zero, where a rounded mean would be off", () => {
  const values = Float32Array.from({ length: 4 * 2 * 40 }, (_, at) => 1e4 + ((at * at) % 11));
  const exact = (own: readonly number[]) => own.reduce((all, value) => all + value, 0) / own.length;
  const out = batchNorm(tensor(values, { shape: [4, 2, 40] }), { training: true, eps: 0 }).dataSync();
  for (const channel of [0, 1]) {
    const places = [...values.keys()].filter((at) => Math.floor(at / 40) % 2 === channel);
    const mean = exact(places.map((at) => values[at]));
    const scale = 1 / Math.sqrt(exact(places.map((at) => (values[at] - mean) ** 2)));
    for (const at of places) expect(Math.abs(out[at] - (values[at] - mean) * scale)).toBeLessThan(2e-6);
  }
});

const wave = (shape: readonly number[], step: number, Values: typeof Float32Array | typeof Float64Array): Tensor =>
  tensor(new Values(Array.from({ length: elementCount(shape) }, (_, at) => Math.sin(at * step + 1))), {
    shape,
    requiresGrad: true,
  });

describe("norms of channels have gradients of gradients", () => {
  const own = { mean: [0.5, -1], variance: [0.3, 2] };
  const operations: Readonly<Record<string, (inputs: readonly Tensor[]) => Tensor>> = {
    batchNorm: (inputs) => compute(inputs, { kind: "batch", isAffine }),
    "batchNorm of running statistics": (inputs) => compute(inputs, { kind: "batch", isAffine, given: own }),
    instanceNorm: (inputs) => compute(inputs, { kind: "instance", isAffine }),
  };

  test.each(Object.entries(operations))("%s has gradients of gradients", (_name, operation) => {
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const inputs = [wave([2, 2, 3], 0.7, Float64Array), wave([2], 1.1, Float64Array), wave([2], 0.4, Float64Array)];
        for (const which of [0, 1, 2])
          gradcheck((...given) => {
            const createGraph = isGradEnabled(); // finite differences need no graph
            const squares = enableGrad(() => {
              const output = operation(given);
              return sum(mul(square(output), output));
            });
            return grad([squares], [given[which]], { createGraph })[0];
          }, inputs);
      });
  });

  test("given statistics have gradients of gradients", () => {
    const inputs = [wave([3, 2, 4], 0.7, Float64Array), wave([2], 1.1, Float64Array), wave([2], 0.4, Float64Array)];
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () =>
        gradcheck(
          (x, weight, runningMean) => batchNorm(x, { weight, runningMean, runningVar: square(weight) as Tensor }),
          inputs,
        ),
      );
  });
});

const everything = (): unknown[] =>
  [
    [8, 16, 9, 13],
    [300, 70],
  ].flatMap((shape) => {
    const [x, weight, bias] = [shape, [shape[1]], [shape[1]]].map((own, at) => wave(own, 0.37 + at, Float32Array));
    const output = batchNorm(x, { weight, bias, training: true });
    const gradients = grad([output], [x, weight, bias], { gradOutputs: [wave(shape, 0.5, Float32Array)] });
    return [output, ...gradients].map((own) => Buffer.from(own.dataSync().buffer).toString("base64"));
  });

describe("results of channel norms are bit-identical", () => testSameBits(everything));
