/**
 * Samples of Poisson and binomial counts. Both are exact: small means count the events of a waiting process, and large
 * means reject proposals. All backends compute with the same arithmetic. Source: W. Hörmann, "The transformed rejection
 * method for generating Poisson random variables" and "The generation of binomial random variates", both 1993. The
 * logarithms of probabilities are Loader's: see {@link stirlingError}.
 */
import { noGrad } from "../autograd/modes.ts";
import { any } from "../ops/index.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import {
  abs,
  add,
  and,
  asNumber,
  constant,
  div,
  expandTo,
  floor,
  ge,
  gt,
  le,
  lt,
  mul,
  neg,
  not,
  or,
  sqrt,
  square,
  sub,
  where,
} from "./arithmetic.ts";
import { exponential, type Source, uniform, uniformAboveZero } from "./noise.ts";
import { deviance, portableLog, portableLog1p, stirlingError } from "./portable.ts";
import { firstAccepted, type Proposal } from "./standard_gamma.ts";

/** Below this mean, samples count the events whose waiting times fit into the available time. */
const FAR = 10;
/** At a mean below {@link FAR}, more events than this have a negligible probability. */
const MOST_EVENTS = 200;

const HALF_LOG_2_PI = 0.5 * Math.log(2 * Math.PI);

/**
 * Counts how many waiting times fit into the available time. `wait` draws a waiting time for each element.
 */
function countEvents(available: Tensor, wait: () => Tensor): Tensor {
  let rest = available;
  let events = constant(0, available);
  for (let event = 0; event < MOST_EVENTS; event++) {
    rest = sub(rest, wait());
    const isIncluded = ge(rest, 0);
    events = add(events, asNumber(isIncluded, events));
    if (any(isIncluded).item() !== true) break;
  }
  return events;
}

/** Draws whole numbers of a Poisson distribution. */
export const drawPoisson = (rate: Tensor, shape: Shape, source: Source): Tensor =>
  noGrad(() =>
    tidy(() => {
      const mean = expandTo(rate, shape);
      const isFar = ge(mean, FAR);
      const near = countEvents(where(isFar, -1, mean), () => exponential(shape, source));
      if (any(isFar).item() !== true) return near;
      return where(isFar, poissonByRejection(where(isFar, mean, FAR), shape, source), near);
    }),
  );

/** Hörmann's PTRS: one proposal for every element. */
function poissonByRejection(mean: Tensor, shape: Shape, source: Source): Tensor {
  const b = add(mul(sqrt(mean), 2.53), 0.931);
  const a = add(mul(b, 0.02483), -0.059);
  const height = add(div(1.1328, sub(b, 3.4)), 1.1239);
  const inner = sub(0.9277, div(3.6224, sub(b, 2)));
  /** ln P(k) = −D(k, mean) − δ(k) − ½ ln 2πk */
  const logProbability = (k: Tensor): Tensor => {
    const isZero = lt(k, 1);
    const atLeastOne = where(isZero, 1, k);
    const rest = add(stirlingError(atLeastOne), add(mul(portableLog(atLeastOne), 0.5), HALF_LOG_2_PI));
    return where(isZero, neg(mean), neg(add(deviance(atLeastOne, mean), rest)));
  };
  return firstAccepted(shape, mean, () =>
    transformedRejection({ a, b, height, inner, center: add(mean, 0.43) }, shape, source, (k) => ({
      isInside: ge(k, 0),
      logRatio: logProbability(where(ge(k, 0), k, 0)),
    })),
  );
}

interface Hat {
  readonly a: Tensor;
  readonly b: Tensor;
  /** The factor of the hat's height. */
  readonly height: Tensor;
  /** Proposals near the center, up to this value, are accepted at once. */
  readonly inner: Tensor;
  readonly center: Tensor;
}

/** A proposal from the hat a/(½ − |u|)² + b, for both distributions. */
function transformedRejection(
  { a, b, height, inner, center }: Hat,
  shape: Shape,
  source: Source,
  test: (k: Tensor) => { readonly isInside: Tensor; readonly logRatio: Tensor },
): Proposal {
  const u = sub(uniform(shape, source), 0.5);
  const v = uniformAboveZero(shape, source);
  const distance = sub(0.5, abs(u));
  const isOutermost = le(distance, 0);
  const us = where(isOutermost, 0.5, distance);
  const k = floor(add(mul(add(div(mul(a, 2), us), b), u), center));
  const isInner = and(ge(us, 0.07), le(v, inner));
  const { isInside, logRatio } = test(k);
  const isPlausible = and(isInside, not(isOutermost));
  const logHat = portableLog(div(mul(v, height), add(div(a, square(us)), b)));
  return { value: k, isAccepted: and(isPlausible, or(isInner, le(logHat, logRatio))) };
}

/** Draws whole numbers of a binomial distribution. Probabilities above ½ count the failures. */
export const drawBinomial = (total: Tensor, probs: Tensor, shape: Shape, source: Source): Tensor =>
  noGrad(() =>
    tidy(() => {
      const n = expandTo(total, shape);
      const isSwapped = gt(expandTo(probs, shape), 0.5);
      const p = where(isSwapped, sub(1, probs), probs);
      const isFar = ge(mul(n, p), FAR);
      const isImpossible = le(p, 0);
      const rate = neg(portableLog1p(neg(where(isImpossible, 0.5, p))));
      const trials = where(or(isFar, isImpossible), -1, n);
      // There are ⌊E/rate⌋ failures before each success, so each success uses one trial more.
      const near = countEvents(trials, () => add(floor(div(exponential(shape, source), rate)), 1));
      const successes =
        any(isFar).item() === true
          ? where(isFar, binomialByRejection(where(isFar, n, 4 * FAR), where(isFar, p, 0.5), shape, source), near)
          : near;
      return where(isSwapped, sub(n, successes), successes);
    }),
  );

/** Hörmann's BTRS, with the probability relative to that of the mode. */
function binomialByRejection(n: Tensor, p: Tensor, shape: Shape, source: Source): Tensor {
  const q = sub(1, p);
  const spread = sqrt(mul(mul(n, p), q));
  const b = add(mul(spread, 2.53), 1.15);
  const a = add(add(mul(b, 0.0248), mul(p, 0.01)), -0.0873);
  const height = mul(add(div(5.1, b), 2.83), spread);
  const inner = sub(0.92, div(4.2, b));
  /** ln P(k) without the terms that do not depend on k: δ, D, and ½ ln(k (n − k)) */
  const logProbability = (k: Tensor): Tensor => {
    const isEnd = or(lt(k, 1), ge(k, n));
    const inside = where(isEnd, where(ge(n, 2), constant(1, n), 1), k);
    const rest = sub(n, inside);
    const errors = add(stirlingError(inside), stirlingError(rest));
    const deviances = add(deviance(inside, mul(n, p)), deviance(rest, mul(n, q)));
    const half = mul(add(portableLog(inside), portableLog(rest)), 0.5);
    return neg(add(add(errors, deviances), half));
  };
  const mode = floor(mul(add(n, 1), p));
  const atMode = logProbability(mode);
  /**
   * The counts 0 and n, whose deviances are not defined: P(0) = qⁿ and P(n) = pⁿ, with the constant ln √(n/2π) + δ(n).
   */
  const constantTerm = add(sub(stirlingError(n), HALF_LOG_2_PI), mul(portableLog(n), 0.5));
  const atZero = sub(mul(n, portableLog1p(neg(p))), constantTerm);
  const atAll = sub(mul(n, portableLog(p)), constantTerm);
  return firstAccepted(shape, n, () =>
    transformedRejection({ a, b, height, inner, center: add(mul(n, p), 0.5) }, shape, source, (k) => {
      const isInside = and(ge(k, 0), le(k, n));
      const inside = where(isInside, k, mode);
      const log = where(lt(inside, 1), atZero, where(ge(inside, n), atAll, logProbability(inside)));
      return { isInside, logRatio: sub(log, atMode) };
    }),
  );
}
