/** Options of schedulers. */
import { aNumber, choice, flag, listOf } from "../core/kinds.ts";
import { count, type NumberRule, positive } from "../core/options.ts";
import { named } from "../core/parameters.ts";
import { position } from "../nn/layers/kinds.ts";
import { type BetaSchedule, betaSchedules, type TimestepSpacing, timestepSpacings } from "./numbers.ts";

/** The prediction of a model: the noise, the data, or the velocity √ᾱ noise − √(1 − ᾱ) data. */
export type PredictionType = "epsilon" | "sample" | "velocity";

/** Options of every scheduler with a schedule of noise variances. */
export interface ScheduleOptions {
  /** The number of timesteps in training. Default 1000. */
  trainSteps?: number | undefined;
  /** The variance of the noise of the first training step. Default 0.0001. */
  betaStart?: number | undefined;
  /** The variance of the noise of the last training step. Default 0.02. */
  betaEnd?: number | undefined;
  /**
   * How variances grow: linearly, as squares of a line (`"scaledLinear"`, Stable Diffusion's), or so that √ᾱ is a
   * cosine (`"squaredCosine"`). Default `"linear"`.
   */
  betaSchedule?: BetaSchedule | undefined;
  /** The variance of the noise of each training step, instead of the options above. */
  trainedBetas?: readonly number[] | undefined;
  /** The prediction of the model. Default `"epsilon"`, the noise. */
  predictionType?: PredictionType | undefined;
  /** How timesteps are chosen among those of training. Default: as in `diffusers`, see each scheduler. */
  timestepSpacing?: TimestepSpacing | undefined;
  /** Added to the timesteps of `"leading"`. Default 0; Stable Diffusion has 1. */
  stepsOffset?: number | undefined;
}

/** Options of {@link ddpm} and {@link ddim} for predicted data. */
export interface ClippingOptions {
  /** Whether predicted data are clipped to ±`clipSampleRange`. Default true. */
  clipSample?: boolean | undefined;
  /** The bound of `clipSample`. Default 1. */
  clipSampleRange?: number | undefined;
}

/** Options of dynamic thresholding. */
export interface ThresholdingOptions {
  /**
   * Whether predicted data are clipped to ±s and divided by s, with s the `dynamicThresholdingRatio` quantile of their
   * magnitudes, from 1 to `sampleMaxValue`. Default false.
   */
  thresholding?: boolean | undefined;
  /** The quantile of magnitudes for `thresholding`. Default 0.995. */
  dynamicThresholdingRatio?: number | undefined;
  /** The largest threshold of `thresholding`. Default 1. */
  sampleMaxValue?: number | undefined;
}

/** Options of {@link ddpm}. */
export interface DdpmOptions extends ScheduleOptions, ClippingOptions, ThresholdingOptions {
  /** The variance of added noise: the posterior's (`"fixedSmall"`) or β. Default `"fixedSmall"`. */
  varianceType?: "fixedSmall" | "fixedLarge" | undefined;
}

/** Options of {@link ddim}. */
export interface DdimOptions extends ScheduleOptions, ClippingOptions, ThresholdingOptions {
  /** The fraction of DDPM's noise that steps add; 0 is deterministic. Default 0. */
  eta?: number | undefined;
  /** Whether the last step ends at ᾱ = 1, without noise, instead of ᾱ₀. Default true; Stable Diffusion has false. */
  setAlphaToOne?: boolean | undefined;
}

/** Options of {@link pndm}. */
export interface PndmOptions extends ScheduleOptions {
  /** Whether the last step ends at ᾱ = 1, without noise, instead of ᾱ₀. Default false. */
  setAlphaToOne?: boolean | undefined;
}

/** Options of {@link euler}. */
export interface EulerOptions extends ScheduleOptions {
  /** Whether noise levels are equally spaced in σ^(1/7) instead of time. Default false. */
  useKarrasSigmas?: boolean | undefined;
  /** The noise level after the last step: none, or that of the first training step. Default `"zero"`. */
  finalSigmasType?: "zero" | "sigmaMin" | undefined;
}

/** Options of {@link dpmSolver}. */
export interface DpmSolverOptions extends EulerOptions, ThresholdingOptions {
  /** The order of the solver, 1 or 2. Default 2. */
  solverOrder?: number | undefined;
  /** The form of the second order. Default `"midpoint"`. */
  solverType?: "midpoint" | "heun" | undefined;
  /** Whether the last of fewer than 15 steps is of the first order. Default true. */
  lowerOrderFinal?: boolean | undefined;
}

/** Options of {@link flowMatch}. */
export interface FlowMatchOptions {
  /** The number of timesteps in training. Default 1000. */
  trainSteps?: number | undefined;
  /**
   * Values above 1 spend more steps at high noise levels: σ becomes shift σ / (1 + (shift − 1) σ). Default 1; SD 3 has
   * 3.
   */
  shift?: number | undefined;
  /** Whether each step draws new noise. Default false. */
  stochasticSampling?: boolean | undefined;
}

/** Far above any model's number of steps. This limit keeps a mistaken number from exhausting memory. */
const MOST_STEPS = 2 ** 20;

/** A number of timesteps. */
export const stepCount = aNumber({
  holds: (value) => count.holds(value) && value <= MOST_STEPS,
  expected: `a whole number from 1 to ${MOST_STEPS}`,
});
const aVariance = aNumber({ holds: (value) => value > 0 && value < 1, expected: "a number between 0 and 1" });
const aShare: NumberRule = { holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" };

/** The parameters of {@link ScheduleOptions}. */
export const scheduleParameters = (spacing: TimestepSpacing) => ({
  trainSteps: named(stepCount, 1000),
  betaStart: named(aVariance, 0.0001),
  betaEnd: named(aVariance, 0.02),
  betaSchedule: named(choice(...betaSchedules), "linear"),
  trainedBetas: named(listOf(aVariance, "a list of numbers between 0 and 1")),
  predictionType: named(choice("epsilon", "sample", "velocity"), "epsilon"),
  timestepSpacing: named(choice(...timestepSpacings), spacing),
  stepsOffset: named(position, 0),
});

export const clippingParameters = {
  clipSample: named(flag, true),
  clipSampleRange: named(aNumber(positive), 1),
} as const;

export const thresholdingParameters = {
  thresholding: named(flag, false),
  dynamicThresholdingRatio: named(aNumber(aShare), 0.995),
  sampleMaxValue: named(aNumber(positive), 1),
} as const;

export const sigmaParameters = {
  useKarrasSigmas: named(flag, false),
  finalSigmasType: named(choice("zero", "sigmaMin"), "zero"),
} as const;

export const ddpmOnly = { varianceType: named(choice("fixedSmall", "fixedLarge"), "fixedSmall") } as const;
export const ddimOnly = { eta: named(aNumber(aShare), 0), setAlphaToOne: named(flag, true) } as const;
export const pndmOnly = { setAlphaToOne: named(flag, false) } as const;
export const solverOnly = {
  solverOrder: named(aNumber({ holds: (value) => value === 1 || value === 2, expected: "1 or 2" }), 2),
  solverType: named(choice("midpoint", "heun"), "midpoint"),
  lowerOrderFinal: named(flag, true),
} as const;
export const flowParameters = {
  trainSteps: named(stepCount, 1000),
  shift: named(aNumber(positive), 1),
  stochasticSampling: named(flag, false),
} as const;

/** The options of every method. Options that a method lacks have defaults. */
export interface MethodOptions {
  readonly betas: readonly number[];
  readonly trainSteps: number;
  readonly betaSchedule: BetaSchedule;
  readonly predictionType: PredictionType;
  readonly timestepSpacing: TimestepSpacing;
  readonly stepsOffset: number;
  readonly clipSample: boolean;
  readonly clipSampleRange: number;
  readonly thresholding: boolean;
  readonly dynamicThresholdingRatio: number;
  readonly sampleMaxValue: number;
  readonly varianceType: "fixedSmall" | "fixedLarge";
  readonly eta: number;
  readonly setAlphaToOne: boolean;
  readonly useKarrasSigmas: boolean;
  readonly finalSigmasType: "zero" | "sigmaMin";
  readonly solverOrder: number;
  readonly solverType: "midpoint" | "heun";
  readonly lowerOrderFinal: boolean;
  readonly shift: number;
  readonly stochasticSampling: boolean;
}
