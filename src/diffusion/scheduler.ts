/** Schedulers: noise for training, and the steps of sampling. */
import { noGrad } from "../autograd/modes.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { aFunction, aNumber, listOf, someNumber } from "../core/kinds.ts";
import type { NumberRule } from "../core/options.ts";
import { type Kind, madeBy, named, operand, parameters, required } from "../core/parameters.ts";
import { toDType } from "../ops/copy/cast.ts";
import * as ops from "../ops/index.ts";
import { aGenerator } from "../ops/random/distribution.ts";
import type { Generator } from "../random/generator.ts";
import { type DType, isFloat } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import type { DiffusionStep, Plan } from "./methods.ts";
import { cumulativeAlphas } from "./numbers.ts";
import { type MethodOptions, stepCount } from "./options.ts";

/** The names of the schedulers. */
export type SchedulerKind = "ddpm" | "ddim" | "pndm" | "euler" | "eulerAncestral" | "dpmSolver" | "flowMatch";

/** Options of {@link Sampler.step}. */
export interface StepOptions {
  /** The noise that the step adds: standard normal, of the shape of x. Default: drawn. Some steps use none. */
  readonly noise?: Tensor | undefined;
  /** The random number generator for noise. Default: the global one, which `manualSeed` seeds. */
  readonly generator?: Generator | undefined;
}

/** Computes a model's output for a sample and a timestep. */
export type DiffusionModel = (x: Tensor, timestep: number) => Tensor;

/** Options of {@link Scheduler.sample}. */
export interface SampleOptions {
  /** The number of steps. Default 50. */
  readonly steps?: number | undefined;
  /** The random number generator for noise in the steps. Default: the global one. */
  readonly generator?: Generator | undefined;
}

/** A float tensor. */
const aFloatTensor: Kind<Tensor> = {
  expected: "a float tensor",
  parse(value, operation, name) {
    const x = aTensor.parse(value, operation, name);
    if (x !== undefined && !isFloat(x.dtype))
      throw new DTypeError(operation, "notAFloat", `expected ${name} to be a float tensor, got ${x.describe()}`);
    return x;
  },
};

const numbers = listOf(someNumber, "a list of numbers");
const noised = {
  x: operand(aFloatTensor),
  noise: operand(aFloatTensor),
  timesteps: operand<readonly number[]>({
    expected: "timesteps: a tensor, a list of numbers or a number",
    parse(value, operation, name) {
      if (typeof value === "number") return [value];
      const list = Tensor.isTensor(value) ? toDType(value, "float64").dataSync() : value;
      return numbers.parse(list, operation, name);
    },
  }),
};
const aPosition: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};
const readAddNoise = parameters("Scheduler.addNoise", noised);
const readVelocity = parameters("Scheduler.velocity", noised);
const readTarget = parameters("Scheduler.target", noised);
const readSampler = parameters("Scheduler.sampler", { steps: required(stepCount) });
const readSample = parameters("Scheduler.sample", {
  noise: operand(aFloatTensor),
  model: operand(aFunction<DiffusionModel>()),
  steps: named(stepCount, 50),
  generator: named(aGenerator),
});
const stepOptions = { noise: named(aFloatTensor), generator: named(aGenerator) };
const readStep = parameters("Sampler.step", {
  output: operand(aFloatTensor),
  x: operand(aFloatTensor),
  at: operand(aNumber(aPosition)),
  ...stepOptions,
});
const readScale = parameters("Sampler.scaleInput", { x: operand(aFloatTensor), at: operand(aNumber(aPosition)) });
const readMix = parameters("Sampler.addNoise", {
  x: operand(aFloatTensor),
  noise: operand(aFloatTensor),
  at: operand(aNumber(aPosition)),
});

/** The method of a {@link Scheduler}, and its options. */
export interface Method {
  readonly kind: SchedulerKind;
  readonly options: MethodOptions;
  readonly planOf: (options: MethodOptions, count: number) => Plan;
}

/**
 * A process that adds noise to data in `trainSteps` steps, and a method that samples by removing it. Make it with
 * {@link ddpm}, {@link ddim}, {@link pndm}, {@link euler}, {@link eulerAncestral}, {@link dpmSolver} or
 * {@link flowMatch}.
 *
 * @example
 * const scheduler = diffusion.ddpm({ betaSchedule: "squaredCosine" });
 * const x = scheduler.addNoise(pictures, noise, t);
 * const loss = mseLoss(unet.forward(x, t), scheduler.target(pictures, noise, t));
 */
export class Scheduler {
  /** The method. */
  readonly kind: SchedulerKind;
  /** The number of timesteps in training. */
  readonly trainSteps: number;
  readonly #method: Method;
  readonly #alphas: readonly number[];

  /** @internal */
  constructor(method: Method);
  constructor(...values: unknown[]) {
    const method = values[0] as Method | undefined;
    if (typeof method?.planOf !== "function") throw madeBy("Scheduler", "diffusion.ddpm() or another scheduler");
    this.kind = method.kind;
    this.trainSteps = method.options.trainSteps;
    this.#method = method;
    this.#alphas = cumulativeAlphas(method.options.betas);
  }

  /** Whether the model predicts noise, data or velocity. */
  get predictionType(): MethodOptions["predictionType"] {
    return this.#method.options.predictionType;
  }

  /**
   * Adds noise to data: √ᾱₜ x + √(1 − ᾱₜ) noise, or (1 − σₜ) x + σₜ noise with flow matching, whose σₜ is
   * t / trainSteps.
   *
   * @param x data, [batch, …]
   * @param noise standard normal, of the shape of x
   * @param timesteps one for each of the batch, or one number for all: whole numbers from 0 to `trainSteps` − 1; with
   * flow matching any numbers from 0 to `trainSteps`
   * @returns the noisy data, of the shape and dtype of x
   *
   * @example
   * const scheduler = diffusion.ddpm();
   * const noisy = scheduler.addNoise(zeros([2, 1, 8, 8]), randn([2, 1, 8, 8]), [10, 990]);
   *
   * @throws {ArgumentError} `invalidTimestep`. @throws {ShapeError} if shapes differ.
   */
  addNoise<D extends DType>(x: Tensor<D>, noise: Tensor, timesteps: Tensor | readonly number[] | number): Tensor<D>;
  addNoise(...values: unknown[]): Tensor {
    const given = readAddNoise(values);
    const [data, ofNoise] = this.#factors("Scheduler.addNoise", given);
    return tidy(() => ops.add(ops.mul(given.x, data), ops.mul(given.noise, ofNoise)));
  }

  /**
   * Computes the velocity √ᾱₜ noise − √(1 − ᾱₜ) x; with flow matching noise − x. Takes the arguments of {@link
   * addNoise}.
   *
   * @throws {ArgumentError} `invalidTimestep`. @throws {ShapeError} if shapes differ.
   */
  velocity<D extends DType>(x: Tensor<D>, noise: Tensor, timesteps: Tensor | readonly number[] | number): Tensor<D>;
  velocity(...values: unknown[]): Tensor {
    const given = readVelocity(values); // checked first, because only instances have private methods
    return this.#velocity("Scheduler.velocity", given);
  }

  /**
   * Returns the target of the model for `addNoise(x, noise, timesteps)`: the noise, x or the velocity, by its
   * prediction type.
   *
   * @throws {ArgumentError} `invalidTimestep`. @throws {ShapeError} if shapes differ.
   */
  target<D extends DType>(x: Tensor<D>, noise: Tensor, timesteps: Tensor | readonly number[] | number): Tensor<D>;
  target(...values: unknown[]): Tensor {
    const given = readTarget(values);
    this.#factors("Scheduler.target", given);
    if (this.predictionType === "velocity") return this.#velocity("Scheduler.target", given);
    return this.predictionType === "epsilon" ? given.noise : given.x;
  }

  /**
   * Returns the steps of one sampling.
   *
   * @param steps their number, at most `trainSteps`
   *
   * @throws {ArgumentError} `tooManySteps`, and `invalidTimestep` if `stepsOffset` is too large.
   */
  sampler(steps: number): Sampler;
  sampler(...values: unknown[]): Sampler {
    const { steps } = readSampler(values);
    return this.#sampler("Scheduler.sampler", steps);
  }

  /**
   * Samples data: starts from noise and applies the steps of a {@link sampler}. It records no gradients, and frees
   * memory after each step.
   *
   * @param noise standard normal, [batch, …]
   * @param model computes the output for a sample and a timestep
   * @returns the data, of the shape and dtype of `noise`
   *
   * @example
   * const scheduler = diffusion.ddim({ clipSample: false });
   * scheduler.sample(randn([1, 1, 8, 8]), (x) => x.mul(0.5), { steps: 10 }).shape; // [1, 1, 8, 8]
   *
   * @throws {ArgumentError} as {@link sampler}. @throws {ShapeError} if the output has another shape.
   */
  sample<D extends DType>(noise: Tensor<D>, model: DiffusionModel, options?: SampleOptions): Tensor<D>;
  sample(...values: unknown[]): Tensor {
    const { noise, model, steps, generator } = readSample(values);
    const sampler = this.#sampler("Scheduler.sample", steps);
    return noGrad(() =>
      tidy(() => {
        let x = ops.mul(noise, sampler.initialScale);
        for (const [at, t] of sampler.timesteps.entries()) {
          const before = x;
          x = tidy(() => sampler.step(model(sampler.scaleInput(before, at), t), before, at, { generator }).x);
          before.dispose();
        }
        return x;
      }),
    );
  }

  toString(): string {
    return `Scheduler(${this.kind}, ${this.trainSteps} timesteps)`;
  }

  #sampler(operation: string, steps: number): Sampler {
    const { options, planOf, kind } = this.#method;
    if (steps > this.trainSteps && kind !== "flowMatch")
      throw new ArgumentError(
        operation,
        "tooManySteps",
        `expected at most ${this.trainSteps} steps, the number of timesteps in training, got ${steps}`,
      );
    const plan = planOf(options, steps);
    const wrong = plan.timesteps.find((t) => t > this.trainSteps - (kind === "flowMatch" ? 0 : 1));
    if (wrong !== undefined)
      throw new ArgumentError(
        operation,
        "invalidTimestep",
        `expected timesteps below ${this.trainSteps}, got ${wrong}; use a smaller stepsOffset`,
      );
    return new Sampler(plan);
  }

  /** Factors of data and noise, [batch, 1, …]. */
  #factors(operation: string, { x, noise, timesteps }: Noised): [data: Tensor, noise: Tensor] {
    checkShape(operation, "noise", noise, x);
    const { kind } = this;
    const last = kind === "flowMatch" ? this.trainSteps : this.trainSteps - 1;
    const wrong = timesteps.find((t) => !(t >= 0 && t <= last && (kind === "flowMatch" || Number.isInteger(t))));
    const least = kind === "flowMatch" ? "numbers" : "whole numbers";
    if (wrong !== undefined)
      throw new ArgumentError(
        operation,
        "invalidTimestep",
        `expected timesteps to be ${least} from 0 to ${last}, got ${wrong}`,
      );
    if (timesteps.length !== 1 && timesteps.length !== x.shape[0])
      throw new ArgumentError(
        operation,
        "invalidTimestep",
        `expected one timestep for each of ${x.shape[0] ?? 1} samples, got ${timesteps.length}`,
      );
    const shape = timesteps.length === 1 ? [] : [timesteps.length, ...x.shape.slice(1).map(() => 1)];
    const make = (factors: number[]) => ops.tensor(factors, { shape, dtype: x.dtype });
    if (kind === "flowMatch") {
      const sigmas = timesteps.map((t) => t / this.trainSteps);
      return [make(sigmas.map((sigma) => 1 - sigma)), make(sigmas)];
    }
    const alphas = timesteps.map((t) => this.#alphas[t]);
    return [make(alphas.map(Math.sqrt)), make(alphas.map((alpha) => Math.sqrt(1 - alpha)))];
  }

  #velocity(operation: string, given: Noised): Tensor {
    const { x, noise } = given;
    return tidy(() => {
      const [data, ofNoise] = this.#factors(operation, given);
      if (this.kind === "flowMatch") return ops.sub(noise, x);
      return ops.sub(ops.mul(noise, data), ops.mul(x, ofNoise));
    });
  }
}

interface Noised {
  readonly x: Tensor;
  readonly noise: Tensor;
  readonly timesteps: readonly number[];
}

/**
 * The steps of one sampling: {@link Scheduler.sampler}. Some methods use the outputs of earlier steps.
 *
 * @example
 * const sampler = scheduler.sampler(20);
 * let x = randn([1, 4, 8, 8]).mul(sampler.initialScale);
 * for (const [at, t] of sampler.timesteps.entries())
 *   x = sampler.step(unet.forward(sampler.scaleInput(x, at), t), x, at).x;
 */
export class Sampler {
  /** The model's timesteps, the noisiest first. */
  readonly timesteps: readonly number[];
  /** The factor of standard normal noise that starts the sampling. */
  readonly initialScale: number;
  readonly #plan: Plan;

  /** @internal */
  constructor(plan: Plan);
  constructor(...values: unknown[]) {
    const plan = values[0] as Plan | undefined;
    if (typeof plan?.step !== "function") throw madeBy("Sampler", "Scheduler.sampler()");
    this.timesteps = Object.freeze([...plan.timesteps]);
    this.initialScale = plan.initialScale;
    this.#plan = plan;
  }

  /**
   * Scales a sample for the model. Only Euler's methods change it.
   *
   * @param at the step, counted from 0
   *
   * @throws {ArgumentError} `noSuchStep`.
   */
  scaleInput<D extends DType>(x: Tensor<D>, at: number): Tensor<D>;
  scaleInput(...values: unknown[]): Tensor {
    const { x, at } = readScale(values);
    this.#check("Sampler.scaleInput", at);
    const scale = this.#plan.inputScale(at);
    return scale === 1 ? x : ops.mul(x, scale);
  }

  /**
   * Returns data with the noise of a step, to start there instead of from noise alone.
   *
   * @param noise standard normal, of the shape of x
   * @param at the step, counted from 0
   *
   * @throws {ArgumentError} `noSuchStep`. @throws {ShapeError} if shapes differ.
   */
  addNoise<D extends DType>(x: Tensor<D>, noise: Tensor, at: number): Tensor<D>;
  addNoise(...values: unknown[]): Tensor {
    const { x, noise, at } = readMix(values);
    this.#check("Sampler.addNoise", at);
    checkShape("Sampler.addNoise", "noise", noise, x);
    const [data, ofNoise] = this.#plan.mixture(at);
    return tidy(() => ops.add(ops.mul(x, data), ops.mul(noise, ofNoise)));
  }

  /**
   * Computes one step. Float16 and bfloat16 are computed in float32.
   *
   * @param output the model's output for `scaleInput(x, at)` and `timesteps[at]`
   * @param x the sample before the step
   * @param at the step, counted from 0; call them in order
   * @returns the sample after the step, and the predicted data, of the shape and dtype of x
   *
   * @throws {ArgumentError} `noSuchStep`. @throws {ShapeError} if shapes differ.
   */
  step<D extends DType>(output: Tensor, x: Tensor<D>, at: number, options?: StepOptions): DiffusionStep<D>;
  step(...values: unknown[]): DiffusionStep {
    const { output, x, at, noise, generator } = readStep(values);
    this.#check("Sampler.step", at);
    checkShape("Sampler.step", "output", output, x);
    if (noise) checkShape("Sampler.step", "noise", noise, x);
    const isHalf = x.dtype === "float16" || x.dtype === "bfloat16";
    const dtype = isHalf ? "float32" : x.dtype;
    const [found, denoised] = tidy(() => {
      const result = this.#plan.step({
        at,
        x: toDType(x, dtype),
        output: toDType(output, dtype),
        noise: () => noise ?? ops.randn(x.shape, { generator, dtype: dtype as "float32" }),
      });
      return [toDType(result.x, x.dtype), toDType(result.denoised, x.dtype)] as const;
    });
    return { x: found, denoised: denoised };
  }

  #check(operation: string, at: number): void {
    if (at < this.timesteps.length) return;
    throw new ArgumentError(
      operation,
      "noSuchStep",
      `expected a step from 0 to ${this.timesteps.length - 1}, got ${at}`,
    );
  }
}

function checkShape(operation: string, name: string, got: Tensor, x: Tensor): void {
  if (sameShape(got.shape, x.shape)) return;
  throw new ShapeError(
    operation,
    "wrongShape",
    `expected ${name} to have the shape of x, ${x.describe()}, got ${got.describe()}`,
  );
}
