/** The sampling methods: the timesteps of each, and a step from one timestep to the next. */
import { lastElement } from "../core/collections.ts";
import * as ops from "../ops/index.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import {
  cumulativeAlphas,
  interpolated,
  karrasSigmas,
  linspace,
  roundEven,
  sigmasOf,
  solverTimestepsOf,
  timestepAt,
  timestepsOf,
} from "./numbers.ts";
import type { MethodOptions } from "./options.ts";

/** The result of one step of sampling. */
export interface DiffusionStep<D extends DType = DType> {
  /** The sample at the next timestep: the next input of the model. */
  readonly x: Tensor<D>;
  /** The data that the model predicts from the current sample. */
  readonly denoised: Tensor<D>;
}

/** The inputs of a step. */
export interface StepInputs {
  readonly at: number;
  readonly x: Tensor;
  /** The model's output. */
  readonly output: Tensor;
  /** Draws standard normal noise of x's shape. */
  readonly noise: () => Tensor;
}

/** The steps of one sampling run. */
export interface Plan {
  /** The model's timesteps, the noisiest first. */
  readonly timesteps: readonly number[];
  /** The factor of standard normal noise that starts the sampling. */
  readonly initialScale: number;
  /** The factor of the sample that the model gets. */
  readonly inputScale: (at: number) => number;
  /** The factors of data and noise in the sample before a step. */
  readonly mixture: (at: number) => readonly [data: number, noise: number];
  readonly step: (inputs: StepInputs) => DiffusionStep;
}

/** a x + b y */
const mixed = (a: number, x: Tensor, b: number, y: Tensor): Tensor => ops.add(ops.mul(x, a), ops.mul(y, b));

/** Clips predicted data, or applies dynamic thresholding (C. Saharia et al., "Imagen", 2022, section 2.3). */
function clipped(x: Tensor, options: MethodOptions): Tensor {
  if (options.thresholding) {
    const flat = ops.reshape(x, [x.shape[0], -1]);
    const high = ops.quantile(ops.abs(flat), options.dynamicThresholdingRatio, { dim: 1, keepdim: true });
    const bound = ops.clamp(high, 1, Math.max(1, options.sampleMaxValue));
    return ops.reshape(ops.div(ops.clamp(flat, ops.neg(bound), bound), bound), [...x.shape]);
  }
  if (!options.clipSample) return x;
  return ops.clamp(x, -options.clipSampleRange, options.clipSampleRange);
}

/** Returns the data and the noise that the model predicts for x = √ᾱ data + √(1 − ᾱ) noise. */
function predicted(x: Tensor, output: Tensor, alpha: number, { predictionType }: MethodOptions) {
  const [a, b] = [Math.sqrt(alpha), Math.sqrt(1 - alpha)];
  if (predictionType === "epsilon") return { data: mixed(1 / a, x, -b / a, output), noise: output };
  if (predictionType === "sample") return { data: output, noise: mixed(1 / b, x, -a / b, output) };
  return { data: mixed(a, x, -b, output), noise: mixed(b, x, a, output) };
}

const alphasOf = ({ betas }: MethodOptions): number[] => cumulativeAlphas(betas);

/** The parts that variance-preserving methods share. */
const preserving = (alphas: readonly number[], timesteps: readonly number[]) => ({
  timesteps,
  initialScale: 1,
  inputScale: () => 1,
  mixture: (at: number) => {
    const alpha = alphas[timesteps[at]];
    return [Math.sqrt(alpha), Math.sqrt(1 - alpha)] as const;
  },
});

/** Plans DDPM sampling: J. Ho et al., "Denoising Diffusion Probabilistic Models", 2020, equations 6, 7 and 15. */
export function ddpmPlan(options: MethodOptions, count: number): Plan {
  const alphas = alphasOf(options);
  const timesteps = timestepsOf(options, count).map(roundEven);
  return {
    ...preserving(alphas, timesteps),
    step({ at, x, output, noise }) {
      const [t, next] = [timesteps[at], timesteps[at + 1] ?? -1];
      const [alpha, nextAlpha] = [alphas[t], alphas[next] ?? 1];
      const [kept, beta] = [alpha / nextAlpha, 1 - alpha / nextAlpha];
      const denoised = clipped(predicted(x, output, alpha, options).data, options);
      const ofData = (Math.sqrt(nextAlpha) * beta) / (1 - alpha);
      const ofX = (Math.sqrt(kept) * (1 - nextAlpha)) / (1 - alpha);
      const mean = mixed(ofData, denoised, ofX, x);
      if (t === 0) return { x: mean, denoised };
      const variance = options.varianceType === "fixedLarge" ? beta : ((1 - nextAlpha) / (1 - alpha)) * beta;
      return { x: mixed(1, mean, Math.sqrt(Math.max(variance, 1e-20)), noise()), denoised };
    },
  };
}

/** Plans DDIM sampling: J. Song et al., "Denoising Diffusion Implicit Models", 2020, equations 12 and 16. */
export function ddimPlan(options: MethodOptions, count: number): Plan {
  const alphas = alphasOf(options);
  const timesteps = timestepsOf(options, count).map(roundEven);
  const stride = Math.floor(options.trainSteps / count);
  const last = options.setAlphaToOne ? 1 : alphas[0];
  return {
    ...preserving(alphas, timesteps),
    step({ at, x, output, noise }) {
      const t = timesteps[at];
      const [alpha, nextAlpha] = [alphas[t], t - stride >= 0 ? alphas[t - stride] : last];
      const found = predicted(x, output, alpha, options);
      const denoised = clipped(found.data, options);
      const variance = ((1 - nextAlpha) / (1 - alpha)) * (1 - alpha / nextAlpha);
      const deviation = options.eta * Math.sqrt(variance);
      const next = mixed(
        Math.sqrt(nextAlpha),
        denoised,
        Math.sqrt(Math.max(0, 1 - nextAlpha - deviation ** 2)),
        found.noise,
      );
      return { x: deviation > 0 ? mixed(1, next, deviation, noise()) : next, denoised };
    },
  };
}

/** The weights of the last outputs, the newest first, in the Adams-Bashforth methods of order 2, 3 and 4. */
const adamsBashforth = [
  [3 / 2, -1 / 2],
  [23 / 12, -16 / 12, 5 / 12],
  [55 / 24, -59 / 24, 37 / 24, -9 / 24],
] as const;

/**
 * Plans PNDM sampling: L. Liu et al., "Pseudo Numerical Methods for Diffusion Models on Manifolds", 2022, equations 9
 * and 12, without Runge-Kutta steps: the first step is computed twice instead, as Stable Diffusion does.
 */
export function pndmPlan(options: MethodOptions, count: number): Plan {
  const alphas = alphasOf(options);
  const even = timestepsOf(options, count).map(roundEven);
  const timesteps = even.length > 1 ? [...even.slice(0, 2), ...even.slice(1)] : even;
  const stride = Math.floor(options.trainSteps / count);
  const last = options.setAlphaToOne ? 1 : alphas[0];
  let [first, outputs]: [Tensor | undefined, Tensor[]] = [undefined, []];
  return {
    ...preserving(alphas, timesteps),
    step({ at, x: given, output }) {
      const isAgain = at === 1 && first !== undefined;
      const [t, next] = isAgain ? [timesteps[1] + stride, timesteps[1]] : [timesteps[at], timesteps[at] - stride];
      const x = isAgain ? first! : given;
      const kept = keep(ops.clone(output));
      const used = isAgain ? mixed(1 / 2, output, 1 / 2, outputs[0]) : combined([kept, ...outputs]);
      if (at === 0) first = keep(ops.clone(given));
      if (!isAgain) outputs = [kept, ...outputs].slice(0, 3);
      const [alpha, nextAlpha] = [alphas[t], next >= 0 ? alphas[next] : last];
      const { data, noise } = predicted(x, used, alpha, options);
      const divisor = alpha * Math.sqrt(1 - nextAlpha) + Math.sqrt(alpha * (1 - alpha) * nextAlpha);
      return { x: mixed(Math.sqrt(nextAlpha / alpha), x, (alpha - nextAlpha) / divisor, noise), denoised: data };
    },
  };
}

const combined = (outputs: readonly Tensor[]): Tensor =>
  outputs.length === 1
    ? outputs[0]
    : outputs
        .map((output, at) => ops.mul(output, adamsBashforth[outputs.length - 2][at]))
        .reduce((sum, part) => ops.add(sum, part));

/** The noise levels of Euler's methods with the final one, and their timesteps. */
function eulerSigmas(options: MethodOptions, count: number): { timesteps: number[]; sigmas: number[] } {
  const known = sigmasOf(alphasOf(options));
  const even = timestepsOf(options, count).map((t) =>
    options.timestepSpacing === "linspace" ? Math.fround(t) : roundEven(t),
  );
  const plain = even.map((t) => interpolated(known, t));
  const last = options.finalSigmasType === "zero" ? 0 : known[0];
  if (!options.useKarrasSigmas) return { timesteps: even, sigmas: [...plain, last].map(Math.fround) };
  const sigmas = karrasSigmas(lastElement(plain), plain[0], count);
  return {
    timesteps: sigmas.map((sigma) => Math.fround(timestepAt(sigma, known))),
    sigmas: [...sigmas, last].map(Math.fround),
  };
}

/** The parts that both of Euler's methods share. Samples are data + σ noise. */
const exploding = (options: MethodOptions, timesteps: readonly number[], sigmas: readonly number[]) => {
  const largest = Math.max(...sigmas);
  return {
    timesteps,
    initialScale: options.timestepSpacing === "leading" ? Math.sqrt(largest ** 2 + 1) : largest,
    inputScale: (at: number) => 1 / Math.sqrt(sigmas[at] ** 2 + 1),
    mixture: (at: number) => [1, sigmas[at]] as const,
  };
};

/** Returns the data that the model predicts for x = data + σ noise. */
function explodingData(x: Tensor, output: Tensor, sigma: number, { predictionType }: MethodOptions): Tensor {
  if (predictionType === "sample") return output;
  if (predictionType === "epsilon") return mixed(1, x, -sigma, output);
  return mixed(1 / (sigma ** 2 + 1), x, -sigma / Math.sqrt(sigma ** 2 + 1), output);
}

/**
 * Plans sampling by Euler's method: T. Karras et al., "Elucidating the Design Space of Diffusion-Based Generative
 * Models", 2022, algorithm 1.
 */
export function eulerPlan(options: MethodOptions, count: number): Plan {
  const { timesteps, sigmas } = eulerSigmas(options, count);
  return {
    ...exploding(options, timesteps, sigmas),
    step({ at, x, output }) {
      const [sigma, next] = [sigmas[at], sigmas[at + 1]];
      const denoised = explodingData(x, output, sigma, options);
      return { x: mixed(next / sigma, x, 1 - next / sigma, denoised), denoised };
    },
  };
}

/** Returns the steps of {@link eulerPlan}, with new noise after each step: `sample_euler_ancestral` of k-diffusion. */
export function eulerAncestralPlan(options: MethodOptions, count: number): Plan {
  const { timesteps, sigmas } = eulerSigmas(options, count);
  return {
    ...exploding(options, timesteps, sigmas),
    step({ at, x, output, noise }) {
      const [sigma, next] = [sigmas[at], sigmas[at + 1]];
      const denoised = explodingData(x, output, sigma, options);
      const up = Math.sqrt((next ** 2 * (sigma ** 2 - next ** 2)) / sigma ** 2);
      const down = Math.sqrt(next ** 2 - up ** 2);
      const moved = mixed(down / sigma, x, 1 - down / sigma, denoised);
      return { x: up > 0 ? mixed(1, moved, up, noise()) : moved, denoised };
    },
  };
}

function solverSigmas(options: MethodOptions, count: number): { timesteps: number[]; sigmas: number[] } {
  const known = sigmasOf(alphasOf(options));
  const last = options.finalSigmasType === "zero" ? 0 : known[0];
  if (!options.useKarrasSigmas) {
    const timesteps = solverTimestepsOf(options, count);
    return { timesteps, sigmas: [...timesteps.map((t) => interpolated(known, t)), last].map(Math.fround) };
  }
  const sigmas = karrasSigmas(known[0], lastElement(known), count);
  const isRounded = options.betaSchedule !== "squaredCosine";
  const timesteps = sigmas.map((sigma) => {
    const t = timestepAt(sigma, known);
    return isRounded ? roundEven(t) : Math.trunc(t);
  });
  return { timesteps, sigmas: [...sigmas, last].map(Math.fround) };
}

/** Plans sampling by DPM-Solver++ (2M): C. Lu et al., "DPM-Solver++", 2022, algorithm 2. */
export function dpmSolverPlan(options: MethodOptions, count: number): Plan {
  const { timesteps, sigmas } = solverSigmas(options, count);
  const points = sigmas.map((sigma) => {
    const alpha = 1 / Math.sqrt(sigma ** 2 + 1);
    return { alpha, sigma: sigma * alpha, lambda: -Math.log(sigma) };
  });
  const isFew = options.lowerOrderFinal && timesteps.length < 15;
  const isFirstOrder = (at: number) =>
    options.solverOrder === 1 ||
    at === 0 ||
    (at === timesteps.length - 1 && (isFew || options.finalSigmasType === "zero"));
  let previous: Tensor | undefined;
  return {
    timesteps,
    initialScale: 1,
    inputScale: () => 1,
    mixture: (at) => [points[at].alpha, points[at].sigma],
    step({ at, x, output }) {
      const [from, to] = [points[at], points[at + 1]];
      const denoised = clipped(predicted(x, output, from.alpha ** 2, options).data, {
        ...options,
        clipSample: false,
      });
      const h = to.lambda - from.lambda;
      const factor = -to.alpha * Math.expm1(-h);
      const before = previous;
      previous = keep(denoised === output ? ops.clone(output) : denoised); // kept for the next step
      if (isFirstOrder(at) || before === undefined)
        return { x: mixed(to.sigma / from.sigma, x, factor, denoised), denoised };
      const ratio = (from.lambda - points[at - 1].lambda) / h;
      const slope = options.solverType === "heun" ? to.alpha * (Math.expm1(-h) / h + 1) : factor / 2;
      const change = mixed(1 / ratio, denoised, -1 / ratio, before);
      return { x: mixed(1, mixed(to.sigma / from.sigma, x, factor, denoised), slope, change), denoised };
    },
  };
}

/**
 * Plans sampling of flow matching: P. Esser et al., "Scaling Rectified Flow Transformers for High-Resolution Image
 * Synthesis", 2024.
 */
export function flowMatchPlan({ trainSteps, shift, stochasticSampling }: MethodOptions, count: number): Plan {
  const shifted = (sigma: number) => (shift * sigma) / (1 + (shift - 1) * sigma);
  const sigmas = linspace(1, Math.fround(shifted(1 / trainSteps)), count).map((sigma) => Math.fround(shifted(sigma)));
  sigmas.push(0);
  return {
    timesteps: sigmas.slice(0, -1).map((sigma) => Math.fround(sigma * trainSteps)),
    initialScale: 1,
    inputScale: () => 1,
    mixture: (at) => [1 - sigmas[at], sigmas[at]],
    step({ at, x, output, noise }) {
      const [sigma, next] = [sigmas[at], sigmas[at + 1]];
      const denoised = mixed(1, x, -sigma, output);
      if (stochasticSampling) return { x: mixed(1 - next, denoised, next, noise()), denoised };
      return { x: mixed(1, x, next - sigma, output), denoised };
    },
  };
}
