/** Schedules by their formulas (PyTorch's are in trajectories.test.ts), and how they set learning rates. */
import { describe, expect, test } from "bun:test";
import { optim } from "../../src/index.ts";
import { parameterOf } from "./run.ts";

const { cosineWithWarmup, constant, linear, AdamW } = optim;

describe("schedules", () => {
  test("cosineWithWarmup is nanoGPT's", () => {
    const schedule = cosineWithWarmup({ warmup: 3, total: 11, floor: 0.1 });
    // min_lr + coeff (lr - min_lr), coeff = (1 + cos(π (it - warmup) / (total - warmup))) / 2
    const wanted = [0.25, 0.5, 0.75, 1, 0.9657457896300791, 0.8681980515339464, 0.7222075445642904, 0.55];
    for (const [step, factor] of wanted.entries()) expect(schedule(step)).toBeCloseTo(factor, 13);
    expect([schedule(11), schedule(100)]).toEqual([0.1, 0.1]);
  });

  test("cosineWithWarmup without a warm-up begins with 1", () => {
    expect(cosineWithWarmup({ warmup: 0, total: 10 })(0)).toBe(1);
  });

  test("linear is constant after its end, constant everywhere", () => {
    const schedule = linear({ total: 4, to: 0.5 });
    expect([0, 1, 4, 9].map(schedule)).toEqual([1, 0.875, 0.5, 0.5]);
    expect([0, 7].map(constant())).toEqual([1, 1]);
  });
});

describe("learning rates", () => {
  const optimizer = () =>
    new AdamW([{ parameters: [parameterOf([1])] }, { parameters: [parameterOf([1])], lr: 0.5 }], { lr: 0.25 });
  const ratesOf = ({ groups }: optim.AdamW) => groups.map(({ lr }) => lr);

  test("a schedule's factor multiplies each group's learning rate", () => {
    const own = optimizer();
    for (const factor of [0.5, 0.25]) own.scaleLearningRate(factor);
    expect(ratesOf(own)).toEqual([0.0625, 0.125]);
  });

  test("setLearningRate sets all of them, or one", () => {
    const own = optimizer();
    own.setLearningRate(0.125);
    expect(ratesOf(own)).toEqual([0.125, 0.125]);
    own.setLearningRate(1, 1);
    expect(ratesOf(own)).toEqual([0.125, 1]);
  });
});
