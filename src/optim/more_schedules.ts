/**
 * PyTorch's other learning rate schedules. Each returns the factor of the learning rate in closed form: it has no
 * state, and can be evaluated at any step.
 */
import { ArgumentError } from "../core/errors.ts";
import { aFunction, aNumber, choice, listOf } from "../core/kinds.ts";
import { count, finite, notNegative, positive } from "../core/options.ts";
import { type Needed, named, operand, optional, parameters, required } from "../core/parameters.ts";
import { printed, type Schedule } from "./schedule.ts";

const steps = aNumber(count);
const factor = aNumber(notNegative);
const share = aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" });

/** Options of {@link step}. */
export interface StepOptions {
  /** The number of steps between two decays. */
  stepSize: number;
  /** The factor of each decay. Default 0.1. */
  gamma?: number;
}

/**
 * Returns a schedule that decays by `gamma` every `stepSize` steps, gamma^⌊step / stepSize⌋: PyTorch's StepLR.
 *
 * @example
 * optim.step({ stepSize: 10, gamma: 0.5 })(25); // 0.25
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function step(...values: Needed<StepOptions, "stepSize", ["gamma"]>): Schedule;
export function step(...values: unknown[]): Schedule {
  const { stepSize, gamma } = stepParameters(values);
  return printed("step", { stepSize, gamma }, [0, stepSize], (at) => gamma ** Math.floor(at / stepSize));
}
const stepParameters = parameters("optim.step", { stepSize: required(steps), gamma: optional(factor, 0.1) });

/** Options of {@link multiStep}. */
export interface MultiStepOptions {
  /** The steps at which the factor decays; a step listed twice decays it twice. */
  milestones: readonly number[];
  /** The factor of each decay. Default 0.1. */
  gamma?: number;
}

/**
 * Returns a schedule that decays by `gamma` at each milestone: PyTorch's MultiStepLR.
 *
 * @example
 * optim.multiStep({ milestones: [30, 80], gamma: 0.5 })(80); // 0.25
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function multiStep(...values: Needed<MultiStepOptions, "milestones", ["gamma"]>): Schedule;
export function multiStep(...values: unknown[]): Schedule {
  const { milestones, gamma } = multiStepParameters(values);
  const schedule: Schedule = (at) => gamma ** milestones.filter((milestone) => milestone <= at).length;
  return printed("multiStep", { milestones, gamma }, [0, ...milestones], schedule);
}
const multiStepParameters = parameters("optim.multiStep", {
  milestones: required(listOf(steps, "a list of steps above 0")),
  gamma: optional(factor, 0.1),
});

/** Options of {@link exponential}. */
export interface ExponentialOptions {
  /** The factor of each step. */
  gamma: number;
}

/**
 * Returns a schedule that decays by `gamma` every step, gamma^step: PyTorch's ExponentialLR.
 *
 * @example
 * optim.exponential({ gamma: 0.5 })(3); // 0.125
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function exponential(...values: Needed<ExponentialOptions, "gamma">): Schedule;
export function exponential(...values: unknown[]): Schedule {
  const { gamma } = exponentialParameters(values);
  return printed("exponential", { gamma }, [0, 1, 10], (at) => gamma ** at);
}
const exponentialParameters = parameters("optim.exponential", { gamma: required(factor) });

/** Options of {@link polynomial}. */
export interface PolynomialOptions {
  /** The number of steps until the factor is 0. */
  total: number;
  /** The power. Default 1. */
  power?: number;
}

/**
 * Returns the schedule (1 - step / total)^power, which is 0 from step `total` on: PyTorch's PolynomialLR.
 *
 * @example
 * optim.polynomial({ total: 10, power: 2 })(5); // 0.25
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function polynomial(...values: Needed<PolynomialOptions, "total", ["power"]>): Schedule;
export function polynomial(...values: unknown[]): Schedule {
  const { total, power } = polynomialParameters(values);
  const schedule: Schedule = (at) => (1 - Math.min(at, total) / total) ** power;
  return printed("polynomial", { total, power }, [0, total], schedule);
}
const polynomialParameters = parameters("optim.polynomial", {
  total: required(steps),
  power: optional(aNumber(positive), 1),
});

/** Options of {@link cosineAnnealing}. */
export interface CosineAnnealingOptions {
  /** The number of steps from 1 to the floor. */
  total: number;
  /** The smallest factor. Default 0. */
  floor?: number;
}

/**
 * Returns a schedule that follows half a cosine from 1 to `floor` in `total` steps, and back up in the next `total`:
 * PyTorch's CosineAnnealingLR, in its closed form.
 *
 * @example
 * optim.cosineAnnealing({ total: 10 })(10); // 0
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function cosineAnnealing(...values: Needed<CosineAnnealingOptions, "total">): Schedule;
export function cosineAnnealing(...values: unknown[]): Schedule {
  const { total, floor } = cosineAnnealingParameters(values);
  return printed("cosineAnnealing", { total, floor }, [0, total], (at) => annealed(floor, at / total));
}
const cosineAnnealingParameters = parameters("optim.cosineAnnealing", {
  total: required(steps),
  floor: named(share, 0),
});

/** Options of {@link cosineWarmRestarts}. */
export interface WarmRestartsOptions {
  /** The number of steps of the first period. */
  period: number;
  /** Factor by which each period grows. Default 1. */
  multiple?: number;
  /** The smallest factor. Default 0. */
  floor?: number;
}

/**
 * Returns a schedule that follows half a cosine from 1 to `floor` in each period (Loshchilov and Hutter, "SGDR", 2017):
 * PyTorch's CosineAnnealingWarmRestarts.
 *
 * @example
 * optim.cosineWarmRestarts({ period: 10 })(20); // 1
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function cosineWarmRestarts(...values: Needed<WarmRestartsOptions, "period", ["multiple"]>): Schedule;
export function cosineWarmRestarts(...values: unknown[]): Schedule {
  const { period, multiple, floor } = warmRestartsParameters(values);
  const schedule: Schedule = (at) => {
    let [start, length] = [0, period];
    if (multiple === 1) start = period * Math.floor(at / period);
    else while (start + length <= at) [start, length] = [start + length, length * multiple];
    return annealed(floor, (at - start) / length);
  };
  return printed("cosineWarmRestarts", { period, multiple, floor }, [0, period - 1, period], schedule);
}
const warmRestartsParameters = parameters("optim.cosineWarmRestarts", {
  period: required(steps),
  multiple: optional(steps, 1),
  floor: named(share, 0),
});

/** Options of {@link cyclic}. */
export interface CyclicOptions {
  /** The factor at the bottom of a cycle; 1 is the top. */
  base: number;
  /** The number of steps up. Default 2000. */
  stepsUp?: number;
  /** The number of steps down. Default `stepsUp`. */
  stepsDown?: number;
  /**
   * How the height of cycles changes: it stays (`"triangular"`), halves with each cycle (`"triangular2"`), or shrinks
   * by `gamma` each step (`"exponential"`). Default `"triangular"`.
   */
  mode?: "triangular" | "triangular2" | "exponential";
  /** The factor of each step with `"exponential"`. Default 1. */
  gamma?: number;
}

/**
 * Returns a schedule that rises and falls linearly in cycles (Smith, "Cyclical Learning Rates", 2017): PyTorch's
 * CyclicLR with the optimizer's learning rate as `max_lr`, and `base` times it as `base_lr`. Momentum does not change.
 *
 * @example
 * optim.cyclic({ base: 0.1, stepsUp: 10 })(10); // 1
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function cyclic(...values: Needed<CyclicOptions, "base">): Schedule;
export function cyclic(...values: unknown[]): Schedule {
  const { base, stepsUp, stepsDown = stepsUp, mode, gamma } = cyclicParameters(values);
  const total = stepsUp + stepsDown;
  const rising = stepsUp / total;
  const schedule: Schedule = (at) => {
    const cycle = Math.floor(at / total);
    const x = at / total - cycle;
    const height = x <= rising ? x / rising : (x - 1) / (rising - 1);
    const scale = mode === "triangular" ? 1 : mode === "triangular2" ? 2 ** -cycle : gamma ** at;
    return base + (1 - base) * height * scale;
  };
  return printed("cyclic", { base, stepsUp, stepsDown, mode, gamma }, [0, stepsUp, total], schedule);
}
const cyclicParameters = parameters("optim.cyclic", {
  base: required(share),
  stepsUp: named(steps, 2000),
  stepsDown: named(steps),
  mode: named(choice("triangular", "triangular2", "exponential"), "triangular"),
  gamma: named(aNumber(finite), 1),
});

const aSchedule = aFunction<Schedule>();
const schedules = listOf(aSchedule, "a list of schedules");

/**
 * Returns the product of schedules: PyTorch's ChainedScheduler.
 *
 * @example
 * optim.chained([optim.linear({ total: 10, from: 0.1, to: 1 }), optim.exponential({ gamma: 0.99 })]);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function chained(schedules: readonly Schedule[]): Schedule;
export function chained(...values: unknown[]): Schedule {
  const parts = chainedParameters(values).schedules;
  return printed("chained", { schedules: parts.length }, [0], (at) =>
    parts.reduce((product, each) => product * each(at), 1),
  );
}
const chainedParameters = parameters("optim.chained", { schedules: operand(schedules) });

/**
 * Returns a schedule that runs several schedules in turn: PyTorch's SequentialLR. Each schedule after the first starts
 * at its milestone, and counts steps from there.
 *
 * @param milestones one fewer than the schedules, in increasing order
 *
 * @example
 * optim.sequential([optim.linear({ total: 10, from: 0.1, to: 1 }), optim.exponential({ gamma: 0.99 })], [10]);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function sequential(schedules: readonly Schedule[], milestones: readonly number[]): Schedule;
export function sequential(...values: unknown[]): Schedule {
  const { schedules: parts, milestones } = sequentialParameters(values);
  const isRising = milestones.every((milestone, at) => at === 0 || milestone > milestones[at - 1]);
  if (parts.length !== milestones.length + 1 || !isRising)
    throw new ArgumentError(
      "optim.sequential",
      "invalidOption",
      `expected increasing milestones, one fewer than the ${parts.length} schedules, got [${milestones.join(", ")}]`,
    );
  const schedule: Schedule = (at) => {
    const which = milestones.filter((milestone) => milestone <= at).length;
    return parts[which](which === 0 ? at : at - milestones[which - 1]);
  };
  return printed("sequential", { milestones }, [0, ...milestones], schedule);
}
const sequentialParameters = parameters("optim.sequential", {
  schedules: operand(schedules),
  milestones: operand(listOf(steps, "a list of steps above 0")),
});

/** Half a cosine from 1 to a floor, at t in [0, 1]. */
const annealed = (floor: number, t: number): number => floor + ((1 - floor) / 2) * (1 + Math.cos(Math.PI * t));
