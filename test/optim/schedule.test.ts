/** Schedules compared with their formulas (PyTorch's are in trajectories.test.ts), and how they set learning rates. */
import { describe, expect, test } from "bun:test";
import { noGrad, optim, type Tensor, tensor, zeros } from "../../src/index.ts";
import { parameterOf } from "./run.ts";

const { cosineWithWarmup, constant, linear, AdamW } = optim;

describe("schedules equal their formulas", () => {
  test("cosineWithWarmup equals nanoGPT's", () => {
    const schedule = cosineWithWarmup({ warmup: 3, total: 11, floor: 0.1 });
    // min_lr + coeff (lr - min_lr), coeff = (1 + cos(π (it - warmup) / (total - warmup))) / 2
    const wanted = [0.25, 0.5, 0.75, 1, 0.9657457896300791, 0.8681980515339464, 0.7222075445642904, 0.55];
    for (const [step, factor] of wanted.entries()) expect(schedule(step)).toBeCloseTo(factor, 13);
    expect([schedule(11), schedule(100)]).toEqual([0.1, 0.1]);
  });

  test("cosineWithWarmup without a warm-up begins with 1", () => {
    expect(cosineWithWarmup({ warmup: 0, total: 10 })(0)).toBe(1);
  });

  test("linear is constant after its end, and constant everywhere", () => {
    const schedule = linear({ total: 4, to: 0.5 });
    expect([0, 1, 4, 9].map(schedule)).toEqual([1, 0.875, 0.5, 0.5]);
    expect([0, 7].map(constant())).toEqual([1, 1]);
  });
});

test("chained multiplies schedules, sequential starts each at its milestone", () => {
  const [rise, fall] = [linear({ total: 4, from: 0.5, to: 1 }), optim.exponential({ gamma: 0.5 })];
  expect([0, 2, 4].map(optim.chained([rise, fall]))).toEqual([0.5, 0.75 / 4, 1 / 16]);
  const slow = linear({ total: 8, from: 0.5, to: 1 }); // its factor in step 4 is 0.75
  expect([0, 2, 3, 4, 6].map(optim.sequential([slow, fall], [4]))).toEqual([0.5, 0.625, 0.6875, 1, 0.25]);
  const refused = () => optim.sequential([rise, fall], [4, 5]);
  expect(refused).toThrow("expected increasing milestones, one fewer than the 2 schedules, got [4, 5]");
  expect(() => optim.sequential([rise, fall, rise], [4, 4])).toThrow("expected increasing milestones");
});

describe("averaged weights can be swapped in", () => {
  const make = () => {
    const parameter = parameterOf([1, 2]);
    return { parameter, averages: new optim.AveragedWeights(new Map([["w", parameter]])) };
  };
  const shift = (parameter: Tensor, by: number) => noGrad(() => parameter.add_(by));

  test("the parameters are restored if the body throws, and after a promise", async () => {
    const { parameter, averages } = make();
    averages.update();
    shift(parameter, 2);
    const failing = () => averages.withAverages(() => expect(parameter.toArray()).toEqual([0]));
    expect(failing).toThrow();
    expect(parameter.toArray()).toEqual([3, 4]);
    const within = averages.withAverages(async () => {
      await Bun.sleep(0);
      return parameter.toArray();
    });
    expect(parameter.toArray()).toEqual([1, 2]);
    expect(await within).toEqual([1, 2]);
    expect(parameter.toArray()).toEqual([3, 4]);
  });

  test("a state of averages resumes, and one of another kind is rejected", () => {
    const [one, other] = [make(), make()];
    for (const by of [1, 4]) {
      shift(one.parameter, by);
      one.averages.update();
    }
    other.averages.loadStateDict(one.averages.stateDict());
    for (const { parameter, averages } of [one, other]) {
      noGrad(() => parameter.copy_(tensor([9, 3])));
      averages.update();
      averages.copyToParameters();
    }
    expect(other.averages.updates).toBe(3);
    expect(other.parameter.toArray()).toEqual(one.parameter.toArray());
    const wrong = { updates: 1, tensors: { w: zeros([3]) } };
    expect(() => one.averages.loadStateDict(wrong)).toThrow("expected w to be float32[2]");
  });

  test("averages of bfloat16 are float32: small changes accumulate", () => {
    const parameter = parameterOf([256], "bfloat16");
    const averages = new optim.AveragedWeights([parameter]);
    averages.update();
    shift(parameter, 2);
    averages.update();
    const average = averages.stateDict().tensors["0"];
    expect([average.dtype, average.toArray()]).toEqual(["float32", [257]]);
  });
});

describe("schedules set the learning rates", () => {
  const optimizer = () =>
    new AdamW([{ parameters: [parameterOf([1])] }, { parameters: [parameterOf([1])], lr: 0.5 }], { lr: 0.25 });
  const ratesOf = ({ groups }: optim.AdamW) => groups.map(({ lr }) => lr);

  test("a schedule's factor multiplies each group's learning rate", () => {
    const own = optimizer();
    for (const factor of [0.5, 0.25]) own.scaleLearningRate(factor);
    expect(ratesOf(own)).toEqual([0.0625, 0.125]);
  });

  test("setLearningRate sets all learning rates, or one", () => {
    const own = optimizer();
    own.setLearningRate(0.125);
    expect(ratesOf(own)).toEqual([0.125, 0.125]);
    own.setLearningRate(1, 1);
    expect(ratesOf(own)).toEqual([0.125, 1]);
  });
});
