/** Group and instance norms of drawn sizes, with and without gradients, compared with their formula in float64. */
import { describe, expect, test } from "bun:test";
import { groupNorm, instanceNorm, noGrad, type Tensor, tensor, withBackend } from "../../../src/index.ts";
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
        // weight and bias are applied by a product and a sum, for their gradients
        expectNear(norm(), expectedOf(given));
        expectNear(
          noGrad(() => groupNorm(x, given.groups, { bias })),
          expectedOf({ ...given, weight: given.weight.map(() => 1) }),
        );
      });
  });
});
