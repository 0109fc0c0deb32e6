/**
 * Learning rate schedules: the factor of the learning rate at each step. They have no state; a resumed run needs only
 * its step.
 */
import { ArgumentError } from "../core/errors.ts";
import { aNumber, choice, someNumber } from "../core/kinds.ts";
import { count, notNegative, positive } from "../core/options.ts";
import { expectNothing, type Needed, named, parameters, required } from "../core/parameters.ts";
import { printedAs, printedOptions } from "../core/printing.ts";

/** Returns the factor at a step, counted from 0: `optimizer.scaleLearningRate(schedule(step))`. */
export type Schedule = (step: number) => number;

/**
 * Returns a schedule whose factor is always 1.
 *
 * @example
 * optim.constant()(1000); // 1
 */
export function constant(): Schedule;
export function constant(...values: unknown[]): Schedule {
  expectNothing("optim.constant", values);
  return printed("constant", {}, [0], () => 1);
}

/** Options of {@link linear}. */
export interface LinearOptions {
  /** The number of steps from the first factor to the last. */
  total: number;
  /** The first factor. Default 1. */
  from?: number;
  /** The last factor. Default 0. */
  to?: number;
}

/**
 * Returns a schedule that moves linearly from one factor to another, then stays constant: PyTorch's LinearLR.
 *
 * @example
 * optim.linear({ total: 10 })(5); // 0.5
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function linear(...values: Needed<LinearOptions, "total">): Schedule;
export function linear(...values: unknown[]): Schedule {
  const { total, from, to } = linearParameters(values);
  const schedule: Schedule = (step) => from + (to - from) * Math.min(1, step / total);
  return printed("linear", { total, from, to }, [0, total], schedule);
}

const linearParameters = parameters("optim.linear", {
  total: required(aNumber(count)),
  from: named(aNumber(notNegative), 1),
  to: named(aNumber(notNegative), 0),
});

/** Options of {@link cosineWithWarmup}. */
export interface CosineOptions {
  /** The number of warmup steps, in which the factor rises to 1; at least 0. */
  warmup: number;
  /** The step from which the factor is `floor`. */
  total: number;
  /** The smallest factor. Default 0; 0.1 is usual. */
  floor?: number;
}

/**
 * Returns a schedule with a linear warmup to 1, then half a cosine down to `floor`, as in nanoGPT:
 *
 *     (step + 1) / (warmup + 1)                                                    if step < warmup
 *     floor + (1 - floor) (1 + cos(π (step - warmup) / (total - warmup))) / 2      otherwise
 *
 * @example
 * const schedule = optim.cosineWithWarmup({ warmup: 99, total: 2000, floor: 0.1 });
 * schedule(49); // 0.5
 * schedule(2000); // 0.1
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function cosineWithWarmup(options: CosineOptions): Schedule;
export function cosineWithWarmup(...values: unknown[]): Schedule {
  const { warmup, total, floor } = cosineParameters(values);
  if (!Number.isSafeInteger(warmup) || warmup < 0 || warmup >= total)
    throw new ArgumentError(
      "cosineWithWarmup",
      "invalidOption",
      `expected warmup to be a whole number of at least 0 and below total (${total}), got ${warmup}`,
    );
  const schedule: Schedule = (step) => {
    if (step < warmup) return (step + 1) / (warmup + 1);
    return cosine(1, floor, Math.min(1, (step - warmup) / (total - warmup)));
  };
  return printed("cosineWithWarmup", { warmup, total, floor }, [0, ...(warmup > 0 ? [warmup] : []), total], schedule);
}

const fraction = aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" });

const cosineParameters = parameters("cosineWithWarmup", {
  warmup: required(someNumber),
  total: required(aNumber(count)),
  floor: named(fraction, 0),
});

/** Options of {@link oneCycle}. */
export interface OneCycleOptions {
  /** The number of steps of the cycle. */
  total: number;
  /** The fraction of steps in which the factor rises. Default 0.3. */
  warmupShare?: number;
  /** The first factor is 1 / divFactor. Default 25. */
  divFactor?: number;
  /** The last factor is the first / finalDivFactor. Default 10,000. */
  finalDivFactor?: number;
  /** How the factor moves between its values. Default `"cosine"`. */
  anneal?: "cosine" | "linear";
}

/**
 * Returns a one-cycle schedule: the learning rate rises to its full value, then falls far below its initial value
 * (Smith and Topin, "Super-Convergence", 2018). It is PyTorch's OneCycleLR with the optimizer's learning rate as
 * `max_lr`. Momentum does not change.
 *
 * @example
 * optim.oneCycle({ total: 100 })(29); // 1
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function oneCycle(...values: Needed<OneCycleOptions, "total">): Schedule;
export function oneCycle(...values: unknown[]): Schedule {
  const { total, warmupShare, divFactor, finalDivFactor, anneal } = oneCycleParameters(values);
  const first = 1 / divFactor;
  const top = warmupShare * total - 1;
  const interpolate = anneal === "cosine" ? cosine : line;
  const schedule: Schedule = (step) => {
    const current = Math.min(step, total - 1);
    if (current <= top && top > 0) return interpolate(first, 1, current / top);
    return interpolate(1, first / finalDivFactor, (current - top) / (total - 1 - top));
  };
  const given = { total, warmupShare, divFactor, finalDivFactor, anneal };
  return printed("oneCycle", given, [0, Math.max(0, Math.round(top)), total - 1], schedule);
}

const oneCycleParameters = parameters("oneCycle", {
  total: required(aNumber(count)),
  warmupShare: named(fraction, 0.3),
  divFactor: named(aNumber(positive), 25),
  finalDivFactor: named(aNumber(positive), 1e4),
  anneal: named(choice("cosine", "linear"), "cosine"),
});

/** @internal Makes a schedule print as the call that created it, with its factors at some steps. */
export function printed(name: string, options: object, steps: readonly number[], schedule: Schedule): Schedule {
  const call = Object.keys(options).length === 0 ? `${name}()` : `${name}({ ${printedOptions(options)} })`;
  const factors = [...new Set(steps)].map((step) => `${Number(schedule(step).toPrecision(3))} in step ${step}`);
  return printedAs(schedule, `Schedule ${call}: ${factors.join(", ")}`);
}

/** Half a cosine wave from one value to another, at t in [0, 1]. */
const cosine = (from: number, to: number, t: number): number => to + ((from - to) / 2) * (1 + Math.cos(Math.PI * t));

const line = (from: number, to: number, t: number): number => from + (to - from) * t;
