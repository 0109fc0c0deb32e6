/** Schedules: by what the learning rate is multiplied in each step. They hold no state, so that a run that resumes needs only its step. */
import { ArgumentError } from "../core/errors.ts";
import { checkNames, checkNumber, count, notNegative, positive } from "../core/options.ts";

/** The factor of a step, from 0 on: `optimizer.scaleLearningRate(schedule(step))`. */
export type Schedule = (step: number) => number;

/** The learning rate as it is. */
export const constant = (): Schedule => () => 1;

/** Options of {@link linear}. */
export interface LinearOptions {
  /** Steps from the first factor to the last. */
  total: number;
  /** Default 1. */
  from?: number;
  /** Default 0. */
  to?: number;
}

/**
 * A line from one factor to another, which then stays: PyTorch's LinearLR.
 *
 * @throws {ArgumentError}
 */
export function linear({ total, from = 1, to = 0, ...rest }: LinearOptions): Schedule {
  checkNames("linear", rest, {});
  checkNumber("linear", "total", total, count);
  checkNumber("linear", "from", from, notNegative);
  checkNumber("linear", "to", to, notNegative);
  return (step) => from + (to - from) * Math.min(1, step / total);
}

/** Options of {@link cosineWithWarmup}. */
export interface CosineOptions {
  /** Steps in which the factor rises to 1, at least 0. */
  warmup: number;
  /** The step from which on the factor is the floor. */
  total: number;
  /** The least factor. Default 0; 0.1 is usual. */
  floor?: number;
}

/**
 * A line up to 1, then half a cosine down to the floor, as nanoGPT's: (step + 1) / (warmup + 1), then
 * floor + (1 - floor) (1 + cos(π (step - warmup) / (total - warmup))) / 2.
 *
 * @throws {ArgumentError}
 */
export function cosineWithWarmup({ warmup, total, floor = 0, ...rest }: CosineOptions): Schedule {
  checkNames("cosineWithWarmup", rest, {});
  checkNumber("cosineWithWarmup", "total", total, count);
  checkNumber("cosineWithWarmup", "floor", floor, share);
  if (!Number.isSafeInteger(warmup) || warmup < 0 || warmup >= total)
    throw new ArgumentError(
      "cosineWithWarmup",
      "invalidOption",
      `warmup is a whole number from 0 to below total, which is ${total}; ${String(warmup)} came`,
    );
  return (step) => {
    if (step < warmup) return (step + 1) / (warmup + 1);
    return between(1, floor, Math.min(1, (step - warmup) / (total - warmup)));
  };
}

/** Options of {@link oneCycle}. */
export interface OneCycleOptions {
  /** Steps of the cycle. */
  total: number;
  /** The share of steps in which the factor rises. Default 0.3. */
  warmupShare?: number;
  /** The first factor is 1 / divFactor. Default 25. */
  divFactor?: number;
  /** The last factor is the first / finalDivFactor. Default 10,000. */
  finalDivFactor?: number;
  /** Default `"cosine"`. */
  anneal?: "cosine" | "linear";
}

/**
 * Up to the full learning rate and down far below the first (Smith and Topin, "Super-Convergence", 2018), PyTorch's OneCycleLR with `max_lr` as the optimizer's
 * learning rate; momentum stays as it is.
 *
 * @throws {ArgumentError}
 */
export function oneCycle(options: OneCycleOptions): Schedule {
  const { total, warmupShare = 0.3, divFactor = 25, finalDivFactor = 1e4, anneal = "cosine", ...rest } = options;
  checkNames("oneCycle", rest, {});
  checkNumber("oneCycle", "total", total, count);
  checkNumber("oneCycle", "warmupShare", warmupShare, share);
  checkNumber("oneCycle", "divFactor", divFactor, positive);
  checkNumber("oneCycle", "finalDivFactor", finalDivFactor, positive);
  if (anneal !== "cosine" && anneal !== "linear")
    throw new ArgumentError("oneCycle", "invalidOption", `anneal is "cosine" or "linear"; ${String(anneal)} came`);
  const first = 1 / divFactor;
  const top = warmupShare * total - 1;
  const way = anneal === "cosine" ? between : (from: number, to: number, part: number) => from + (to - from) * part;
  return (step) => {
    const at = Math.min(step, total - 1);
    if (at <= top && top > 0) return way(first, 1, at / top);
    return way(1, first / finalDivFactor, (at - top) / (total - 1 - top));
  };
}

const share = { holds: (value: number) => value >= 0 && value <= 1, expected: "a number from 0 to 1" };

/** Half a cosine from one value to another. */
const between = (from: number, to: number, part: number): number =>
  to + ((from - to) / 2) * (1 + Math.cos(Math.PI * part));
