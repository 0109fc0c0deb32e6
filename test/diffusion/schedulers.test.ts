/** Schedulers: the results of `diffusers` over drawn options, and properties that need no reference. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { optionsOf, schedulerOf } from "../../src/diffusion/scheduler_config.ts";
import { diffusion, Generator, manualSeed, memory, ones, randn, type Tensor, tensor, zeros } from "../../src/index.ts";
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

describe("results match those of diffusers", () => {
  test.each(kinds)("samples of %s match diffusers", (kind) => {
    const own = cases.filter((each) => each.kind === kind);
    expect(own.length).toBeGreaterThan(20);
    for (const each of own) {
      const { scheduler, drawn } = opened(each);
      const sampler = scheduler.sampler(each.steps);
      expect(sampler.timesteps).toHaveLength(each.timesteps.length);
      for (const [at, t] of each.timesteps.entries())
        expect(Math.abs(sampler.timesteps[at] - t)).toBeLessThan(1e-5 * scheduler.trainSteps);
      expect(Math.abs(sampler.initialScale / each.initial - 1)).toBeLessThan(1e-5);
      let x = drawn("x").mul(sampler.initialScale);
      for (const at of sampler.timesteps.keys()) {
        if (each.scale.length > 0) expect(near(sampler.scaleInput(ones([1]), at), [each.scale[at]])).toBeLessThan(1e-5);
        x = sampler.step(drawn(`output.${at}`), x, at, { noise: drawn(`noise.${at}`) }).x;
      }
      // Large samples cancel in float32, in `diffusers` too.
      const error = Math.max(...Array.from(x.dataSync(), Number).map((value, at) => Math.abs(value - each.x[at])));
      expect([each.at, error / each.largest < 1e-5]).toEqual([each.at, true]);
    }
  });

  test("addNoise and velocity match diffusers", () => {
    for (const each of cases.filter(({ noisy }) => noisy !== undefined)) {
      const { scheduler, drawn } = opened(each);
      const [data, added, t] = [drawn("data"), drawn("added"), tensor([...each.trained!], { dtype: "int64" })];
      expect(near(scheduler.addNoise(data, added, t), each.noisy!)).toBeLessThan(1e-5);
      expect(near(scheduler.velocity(data, added, each.trained!), each.velocity!)).toBeLessThan(1e-5);
    }
  });
});

const made: Readonly<Record<diffusion.SchedulerKind, () => diffusion.Scheduler>> = {
  ddpm: () => diffusion.ddpm({ clipSample: false }),
  ddim: () => diffusion.ddim({ clipSample: false }),
  pndm: () => diffusion.pndm({ setAlphaToOne: true }),
  euler: () => diffusion.euler(),
  eulerAncestral: () => diffusion.eulerAncestral(),
  dpmSolver: () => diffusion.dpmSolver(),
  flowMatch: () => diffusion.flowMatch({ shift: 3 }),
};

describe("schedulers reach the data that a perfect model predicts", () => {
  /** Returns the model that predicts `data` from every sample. */
  const perfect = (scheduler: diffusion.Scheduler, data: Tensor) => (x: Tensor, t: number) => {
    if (scheduler.kind === "flowMatch") return x.sub(data).div(t / scheduler.trainSteps);
    const alpha = Number(scheduler.addNoise(ones([1]), zeros([1]), Math.round(t)).item());
    return x.sub(data.mul(alpha)).div(Math.sqrt(1 - alpha ** 2));
  };

  test.each(kinds)("%s reaches the data that a perfect model predicts", (kind) => {
    manualSeed(3);
    const scheduler = made[kind]();
    const [data, noise] = [randn([2, 1, 3, 3]), randn([2, 1, 3, 3])];
    for (const steps of [1, 7, 20]) {
      const found = scheduler.sample(noise, perfect(scheduler, data), { steps });
      expect(errorOf(found, data)).toBeLessThan(0.01);
    }
  });

  test.each(kinds)("%s draws noise only from the given generator", (kind) => {
    const run = (seed: number) => {
      const generator = new Generator(seed);
      const scheduler = kind === "flowMatch" ? diffusion.flowMatch({ stochasticSampling: true }) : made[kind]();
      return scheduler.sample(ones([1, 1, 2, 2]), (x) => x.mul(0.5), { steps: 4, generator }).toArray();
    };
    expect(run(1)).toEqual(run(1));
    if (["ddpm", "eulerAncestral", "flowMatch"].includes(kind)) expect(run(1)).not.toEqual(run(2));
    else expect(run(1)).toEqual(run(2));
  });

  test("half precision is computed in float32", () => {
    const sampler = diffusion.ddim({ clipSample: false }).sampler(2);
    const [x, output] = [weight("x", [1, 1, 2, 2]).to("float16"), weight("y", [1, 1, 2, 2]).to("float16")];
    const step = sampler.step(output, x, 0);
    const wide = sampler.step(output.to("float32"), x.to("float32"), 0);
    expect([step.x.dtype, step.denoised.dtype]).toEqual(["float16", "float16"]);
    expect(step.x.toArray()).toEqual(wide.x.to("float16").toArray());
  });

  test("sampling leaves only its result in memory", () => {
    const noise = ones([1, 1, 64, 64]);
    for (const kind of kinds) {
      const before = memory().host.liveBytes;
      const result = made[kind]().sample(noise, (x) => x.mul(0.5), { steps: 6 });
      result.dispose();
      // Methods of several steps keep outputs until the sampler is collected.
      expect(memory().host.liveBytes - before).toBeLessThanOrEqual(4 * noise.size * 4);
    }
  });
});

describe("schedulers reject unsupported options", () => {
  const x = ones([2, 1, 2, 2]);
  test.each([
    ["tooManySteps", () => diffusion.ddpm({ trainSteps: 10 }).sampler(11)],
    ["invalidTimestep", () => diffusion.ddpm({ trainSteps: 10, stepsOffset: 2 }).sampler(10)],
    ["invalidTimestep", () => diffusion.ddpm({ trainSteps: 10 }).addNoise(x, x, 10)],
    ["invalidTimestep", () => diffusion.ddpm().addNoise(x, x, [1.5, 2])],
    ["invalidTimestep", () => diffusion.ddpm().addNoise(x, x, [1, 2, 3])],
    ["wrongShape", () => diffusion.ddpm().target(x, ones([2]), 1)],
    [
      "wrongShape",
      () =>
        diffusion
          .ddpm()
          .sampler(2)
          .step(ones([2]), x, 0),
    ],
    ["noSuchStep", () => diffusion.ddpm().sampler(2).step(x, x, 2)],
    [
      "notAFloat",
      () =>
        diffusion
          .ddpm()
          .sampler(2)
          .scaleInput(ones([2], { dtype: "int32" }), 0),
    ],
    ["invalidOption", () => diffusion.ddpm({ trainSteps: 3, trainedBetas: [0.1] })],
    ["invalidOperand", () => Reflect.construct(diffusion.Scheduler, [])],
  ])("%s is rejected", (code, call) => expect(call).toThrow(expect.objectContaining({ code })));
});
