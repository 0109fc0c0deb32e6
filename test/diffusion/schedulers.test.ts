/** Schedulers: the results of `diffusers` over drawn options, and properties that need no reference. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { optionsOf, schedulerOf } from "../../src/diffusion/scheduler_config.ts";
import { diffusion, ones, type Tensor, tensor } from "../../src/index.ts";
import { Settings } from "../../src/nn/models/loading/settings.ts";
import { errorOf, weight } from "../nn/models/encoder/oracle.ts";

interface Case {
  readonly kind: diffusion.SchedulerKind;
  readonly at: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly eta?: number;
  readonly steps: number;
  readonly timesteps: readonly number[];
  readonly initial: number;
  readonly x: readonly number[];
  readonly largest: number;
  readonly scale: readonly number[];
  readonly noisy?: readonly number[];
  readonly velocity?: readonly number[];
  readonly trained?: readonly number[];
}
const fixture = join(packageRoot, "test", "fixtures", "diffusion", "schedulers.json");
const { shape, cases }: { shape: number[]; cases: Case[] } = JSON.parse(readFileSync(fixture, "utf8"));

const classes: Readonly<Record<diffusion.SchedulerKind, string>> = {
  ddpm: "DDPMScheduler",
  ddim: "DDIMScheduler",
  pndm: "PNDMScheduler",
  euler: "EulerDiscreteScheduler",
  eulerAncestral: "EulerAncestralDiscreteScheduler",
  dpmSolver: "DPMSolverMultistepScheduler",
  flowMatch: "FlowMatchEulerDiscreteScheduler",
};
const kinds = Object.keys(classes) as diffusion.SchedulerKind[];

/** The scheduler of a case, and the function that draws its tensors. */
function opened({ kind, at, options, eta }: Case) {
  const config = new Settings(undefined, new Map(Object.entries({ ...options, _class_name: classes[kind] })));
  // `diffusers` passes eta to each step.
  const scheduler = eta === undefined ? schedulerOf(config) : diffusion.ddim({ ...optionsOf(config, kind), eta });
  return { scheduler, drawn: (name: string): Tensor => weight(`${kind}.${at}.${name}`, shape).mul(3) };
}

const near = (got: Tensor, want: readonly number[]): number => errorOf(got, tensor([...want], { shape: got.shape }));

describe("results of diffusers", () => {
  test.each(kinds)("%s", (kind) => {
    const own = cases.filter((each) => each.kind === kind);
    expect(own.length).toBeGreaterThan(20);
    for (const each of own) {
      const { scheduler, drawn } = opened(each);
      const sampler = scheduler.sampler(each.steps);
      expect(sampler.timesteps).toHaveLength(each.timesteps.length);
      for (const [at, t] of each.timesteps.entries())
        expect(Math.abs(sampler.timesteps[at]! - t)).toBeLessThan(1e-5 * scheduler.trainSteps);
      expect(Math.abs(sampler.initialScale / each.initial - 1)).toBeLessThan(1e-5);
      let x = drawn("x").mul(sampler.initialScale);
      for (const at of sampler.timesteps.keys()) {
        if (each.scale.length > 0)
          expect(near(sampler.scaleInput(ones([1]), at), [each.scale[at]!])).toBeLessThan(1e-5);
        x = sampler.step(drawn(`output.${at}`), x, at, { noise: drawn(`noise.${at}`) }).x;
      }
      // Large samples cancel in float32, in `diffusers` too.
      const error = Math.max(...Array.from(x.dataSync(), Number).map((value, at) => Math.abs(value - each.x[at]!)));
      expect([each.at, error / each.largest < 1e-5]).toEqual([each.at, true]);
    }
  });

  test("noisy data and velocities", () => {
    for (const each of cases.filter(({ noisy }) => noisy !== undefined)) {
      const { scheduler, drawn } = opened(each);
      const [data, added, t] = [drawn("data"), drawn("added"), tensor([...each.trained!], { dtype: "int64" })];
      expect(near(scheduler.addNoise(data, added, t), each.noisy!)).toBeLessThan(1e-5);
      expect(near(scheduler.velocity(data, added, each.trained!), each.velocity!)).toBeLessThan(1e-5);
    }
  });
});
