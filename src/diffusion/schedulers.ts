/** The functions that make schedulers. */
import { ArgumentError } from "../core/errors.ts";
import { parameters } from "../core/parameters.ts";
import {
  ddimPlan,
  ddpmPlan,
  dpmSolverPlan,
  eulerAncestralPlan,
  eulerPlan,
  flowMatchPlan,
  pndmPlan,
} from "./methods.ts";
import { betasOf } from "./numbers.ts";
import {
  clippingParameters,
  type DdimOptions,
  type DdpmOptions,
  type DpmSolverOptions,
  ddimOnly,
  ddpmOnly,
  type EulerOptions,
  type FlowMatchOptions,
  flowParameters,
  type MethodOptions,
  type PndmOptions,
  pndmOnly,
  type ScheduleOptions,
  scheduleParameters,
  sigmaParameters,
  solverOnly,
  thresholdingParameters,
} from "./options.ts";
import { type Method, Scheduler } from "./scheduler.ts";

/** The values of options that a method lacks. */
const without = {
  betas: [],
  trainSteps: 1000,
  betaSchedule: "linear",
  predictionType: "epsilon",
  timestepSpacing: "leading",
  stepsOffset: 0,
  clipSample: false,
  clipSampleRange: 1,
  thresholding: false,
  dynamicThresholdingRatio: 0.995,
  sampleMaxValue: 1,
  varianceType: "fixedSmall",
  eta: 0,
  setAlphaToOne: true,
  useKarrasSigmas: false,
  finalSigmasType: "zero",
  solverOrder: 2,
  solverType: "midpoint",
  lowerOrderFinal: true,
  shift: 1,
  stochasticSampling: false,
} as const satisfies MethodOptions;

type Given = Partial<MethodOptions> &
  Required<Pick<MethodOptions, "trainSteps" | "betaSchedule">> & {
    readonly betaStart: number;
    readonly betaEnd: number;
    readonly trainedBetas: readonly number[] | undefined;
  };

/** Makes a scheduler with a schedule of noise variances. */
function withSchedule(kind: Method["kind"], planOf: Method["planOf"], given: Given): Scheduler {
  const { betaStart, betaEnd, trainedBetas, ...options } = given;
  if (trainedBetas !== undefined && trainedBetas.length !== given.trainSteps)
    throw new ArgumentError(
      kind,
      "invalidOption",
      `expected trainedBetas to have trainSteps, ${given.trainSteps}, numbers, got ${trainedBetas.length}`,
    );
  const betas = trainedBetas?.map(Math.fround) ?? betasOf(given.betaSchedule, betaStart, betaEnd, given.trainSteps);
  return new Scheduler({ kind, planOf, options: { ...without, ...options, betas } });
}

/**
 * Returns the scheduler of denoising diffusion probabilistic models, which draws noise in each step.
 *
 * @param options `timestepSpacing` is `"leading"` by default
 *
 * @example
 * const scheduler = diffusion.ddpm({ betaSchedule: "squaredCosine" });
 * const t = randint(0, scheduler.trainSteps, [4]);
 * const noisy = scheduler.addNoise(zeros([4, 1, 8, 8]), randn([4, 1, 8, 8]), t);
 *
 * @throws {ArgumentError} for an invalid option.
 *
 * Source: J. Ho, A. Jain and P. Abbeel, "Denoising Diffusion Probabilistic Models", 2020.
 */
export function ddpm(options?: DdpmOptions): Scheduler;
export function ddpm(...values: unknown[]): Scheduler {
  return withSchedule("ddpm", ddpmPlan, readDdpm(values));
}
const readDdpm = parameters("ddpm", {
  ...scheduleParameters("leading"),
  ...clippingParameters,
  ...thresholdingParameters,
  ...ddpmOnly,
});

/**
 * Returns the scheduler of denoising diffusion implicit models, which needs fewer steps than {@link ddpm} and draws no
 * noise with `eta` 0.
 *
 * @param options `timestepSpacing` is `"leading"` by default
 *
 * @example
 * diffusion.ddim().sampler(4).timesteps; // [750, 500, 250, 0]
 *
 * @throws {ArgumentError} for an invalid option.
 *
 * Source: J. Song, C. Meng and S. Ermon, "Denoising Diffusion Implicit Models", 2020.
 */
export function ddim(options?: DdimOptions): Scheduler;
export function ddim(...values: unknown[]): Scheduler {
  return withSchedule("ddim", ddimPlan, readDdim(values));
}
const readDdim = parameters("ddim", {
  ...scheduleParameters("leading"),
  ...clippingParameters,
  ...thresholdingParameters,
  ...ddimOnly,
});

/**
 * Returns the scheduler of pseudo numerical methods, which combines the outputs of four steps. It is the default of
 * Stable Diffusion 1. The first step is computed twice, so a sampling of n steps calls the model n + 1 times.
 *
 * @param options `timestepSpacing` is `"leading"` by default
 *
 * @example
 * diffusion.pndm().sampler(4).timesteps; // [750, 500, 500, 250, 0]
 *
 * @throws {ArgumentError} for an invalid option.
 *
 * Source: L. Liu et al., "Pseudo Numerical Methods for Diffusion Models on Manifolds", 2022.
 */
export function pndm(options?: PndmOptions): Scheduler;
export function pndm(...values: unknown[]): Scheduler {
  return withSchedule("pndm", pndmPlan, readPndm(values));
}
const readPndm = parameters("pndm", { ...scheduleParameters("leading"), ...pndmOnly });

/**
 * Returns the scheduler of Euler's method for the differential equation of diffusion.
 *
 * @param options `timestepSpacing` is `"linspace"` by default
 *
 * @example
 * const sampler = diffusion.euler({ useKarrasSigmas: true }).sampler(20);
 *
 * @throws {ArgumentError} for an invalid option.
 *
 * Source: T. Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models", 2022.
 */
export function euler(options?: EulerOptions): Scheduler;
export function euler(...values: unknown[]): Scheduler {
  return withSchedule("euler", eulerPlan, readEuler(values));
}
const readEuler = parameters("euler", { ...scheduleParameters("linspace"), ...sigmaParameters });

/**
 * Returns the scheduler of Euler's method that replaces a part of the noise in each step.
 *
 * @param options `timestepSpacing` is `"linspace"` by default
 *
 * @example
 * const sampler = diffusion.eulerAncestral().sampler(20);
 *
 * @throws {ArgumentError} for an invalid option.
 */
export function eulerAncestral(options?: ScheduleOptions): Scheduler;
export function eulerAncestral(...values: unknown[]): Scheduler {
  return withSchedule("eulerAncestral", eulerAncestralPlan, readAncestral(values));
}
const readAncestral = parameters("eulerAncestral", scheduleParameters("linspace"));

/**
 * Returns the scheduler of DPM-Solver++ (2M), which uses the outputs of two steps; 20 steps are enough for Stable
 * Diffusion.
 *
 * @param options `timestepSpacing` is `"linspace"` by default
 *
 * @example
 * const sampler = diffusion.dpmSolver({ useKarrasSigmas: true }).sampler(20);
 *
 * @throws {ArgumentError} for an invalid option.
 *
 * Source: C. Lu et al., "DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models", 2022.
 */
export function dpmSolver(options?: DpmSolverOptions): Scheduler;
export function dpmSolver(...values: unknown[]): Scheduler {
  return withSchedule("dpmSolver", dpmSolverPlan, readSolver(values));
}
const readSolver = parameters("dpmSolver", {
  ...scheduleParameters("linspace"),
  ...sigmaParameters,
  ...thresholdingParameters,
  ...solverOnly,
});

/**
 * Returns the scheduler of flow matching, as in Stable Diffusion 3: samples are (1 − σ) data + σ noise, and the model
 * predicts noise − data.
 *
 * @example
 * diffusion.flowMatch({ shift: 3 }).sampler(28).timesteps[0]; // 1000
 *
 * @throws {ArgumentError} for an invalid option.
 *
 * Source: P. Esser et al., "Scaling Rectified Flow Transformers for High-Resolution Image Synthesis", 2024.
 */
export function flowMatch(options?: FlowMatchOptions): Scheduler;
export function flowMatch(...values: unknown[]): Scheduler {
  const options = { ...without, ...readFlow(values), predictionType: "velocity" } as const;
  return new Scheduler({ kind: "flowMatch", planOf: flowMatchPlan, options });
}
const readFlow = parameters("flowMatch", flowParameters);
