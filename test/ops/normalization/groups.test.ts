/** Group and instance norms of drawn sizes, with and without gradients, compared with their formula in float64. */
import { describe, expect, test } from "bun:test";
import {
  grad,
  groupNorm,
  instanceNorm,
  noGrad,
  type Tensor,
  tensor,
  toDType,
  withBackend,
} from "../../../src/index.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

interface Drawn {
  readonly shape: readonly [batch: number, channels: number, inner: number];
  readonly groups: number;
  readonly x: Float32Array;
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

function drawn(random: Random): Drawn {
  const groups = random.integer(1, 6);
  const channels = groups * random.integer(1, 5);
  const [batch, inner] = [random.integer(1, 20), random.integer(1, 90)];
  const numbers = (count: number) => Float32Array.from({ length: count }, () => 4 * random.next() - 1);
  const x = numbers(batch * channels * inner);
  return { shape: [batch, channels, inner], groups, x, weight: numbers(channels), bias: numbers(channels) };
}

/** (x − mean) / √(variance + eps) · weight + bias for each group of channels. */
function expectedOf({ shape: [, channels, inner], groups, x, weight, bias }: Drawn, eps = 1e-5): number[] {
  const length = (channels / groups) * inner;
  return Array.from(x, (value, at) => {
    const row = x.subarray(Math.floor(at / length) * length, (Math.floor(at / length) + 1) * length);
    const mean = row.reduce((sum, each) => sum + each, 0) / length;
    const variance = row.reduce((sum, each) => sum + (each - mean) ** 2, 0) / length;
    const channel = Math.floor(at / inner) % channels;
    return ((value - mean) / Math.sqrt(variance + eps)) * weight[channel] + bias[channel];
  });
}

function expectNear(found: Tensor, expected: readonly number[]): void {
  for (const [at, value] of (found.dataSync() as Float32Array).entries())
    expect(Math.abs(value - expected[at])).toBeLessThan(2e-5);
}

describe.each(tested)("groupNorm on %s", (backend) => {
  test("groupNorm of drawn shapes and groups equals the formula", () => {
    const random = new Random(23);
    for (let round = 0; round < (backend === "cpu" ? 12 : 2); round++)
      withBackend(backend, () => {
        const given = drawn(random);
        const [weight, bias] = [tensor(given.weight), tensor(given.bias)];
        const x = tensor(given.x).reshape([...given.shape]);
        const norm = () => groupNorm(x, given.groups, { weight, bias });
        expectNear(noGrad(norm), expectedOf(given));
        const lone = { ...given, groups: given.shape[1] };
        if (given.shape[2] > 1) expectNear(instanceNorm(x, { weight, bias }), expectedOf(lone));
        weight.requiresGrad = true;
        expectNear(norm(), expectedOf(given));
        expectNear(
          noGrad(() => groupNorm(x, given.groups, { bias })),
          expectedOf({ ...given, weight: given.weight.map(() => 1) }),
        );
      });
  });
});

interface Slopes {
  readonly x: number[];
  readonly weight: number[];
  readonly bias: number[];
}

/** Gradients of Σ slope · groupNorm(x), from the definition. */
function slopesOf({ shape: [, channels, inner], groups, x, weight }: Drawn, slope: Float32Array, eps = 1e-5): Slopes {
  const length = (channels / groups) * inner;
  const found: Slopes = { x: [], weight: Array(channels).fill(0), bias: Array(channels).fill(0) };
  for (let start = 0; start < x.length; start += length) {
    const at = Array.from({ length }, (_, i) => start + i);
    const channelOf = (i: number): number => Math.floor(i / inner) % channels;
    const mean = at.reduce((sum, i) => sum + x[i], 0) / length;
    const scale = 1 / Math.sqrt(at.reduce((sum, i) => sum + (x[i] - mean) ** 2, 0) / length + eps);
    const v = at.map((i) => slope[i] * weight[channelOf(i)]);
    const n = at.map((i) => (x[i] - mean) * scale);
    const meanOf = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / length;
    const [plain, scaled] = [meanOf(v), meanOf(v.map((value, i) => value * n[i]))];
    for (const [i, place] of at.entries()) {
      found.x[place] = scale * (v[i] - plain - n[i] * scaled);
      found.weight[channelOf(place)] += slope[place] * n[i];
      found.bias[channelOf(place)] += slope[place];
    }
  }
  return found;
}

describe.each(tested)("gradients of groupNorm on %s", (backend) => {
  test.each(["float64", "float32", "bfloat16"] as const)("of drawn shapes in %s equal the formula", (dtype) => {
    if (dtype === "float64" && backend === "metal") return;
    const random = new Random(29);
    const tolerance = { float64: 1e-11, float32: 1e-4, bfloat16: 0.1 }[dtype];
    for (let round = 0; round < (backend === "cpu" ? 12 : 2); round++)
      withBackend(backend, () => {
        const rounded = (values: Float32Array): Float32Array =>
          toDType(toDType(tensor(values), dtype), "float32").dataSync() as Float32Array;
        const numbers = drawn(random);
        const given = { ...numbers, x: rounded(numbers.x), weight: rounded(numbers.weight) };
        const slope = rounded(Float32Array.from(given.x, () => 2 * random.next() - 1));
        const leaf = (values: Float32Array, shape: readonly number[]): Tensor => {
          const made = toDType(tensor(values), dtype).reshape([...shape]);
          made.requiresGrad = true;
          return made;
        };
        const x = leaf(given.x, given.shape);
        const [weight, bias] = [leaf(given.weight, [given.weight.length]), leaf(given.bias, [given.bias.length])];
        const y = groupNorm(x, given.groups, { weight, bias, eps: 1e-3 });
        const gradOutputs = [toDType(tensor(slope), dtype).reshape([...given.shape])];
        const expected = slopesOf(given, slope, 1e-3);
        // With createGraph, the gradients are composed of differentiable operations.
        for (const createGraph of [false, true]) {
          const found = grad([y], [x, weight, bias], { gradOutputs, retainGraph: true, createGraph });
          for (const [at, name] of (["x", "weight", "bias"] as const).entries()) {
            const largest = Math.max(1, ...expected[name].map(Math.abs));
            const values = toDType(found[at].detach(), "float64").dataSync() as Float64Array;
            for (const [i, value] of values.entries())
              expect(Math.abs(value - expected[name][i])).toBeLessThan(tolerance * largest);
          }
        }
      });
  });
});
