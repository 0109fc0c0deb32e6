/** Kullback-Leibler divergences. */
import { ArgumentError } from "../core/errors.ts";
import { instanceOf } from "../core/kinds.ts";
import { operand, parameters } from "../core/parameters.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import {
  abs,
  add,
  and,
  digamma,
  div,
  exp,
  ge,
  gt,
  le,
  lgamma,
  log,
  mul,
  neg,
  square,
  sub,
  sumLast,
  sumOf,
  where,
} from "./arithmetic.ts";
import { Beta, Dirichlet, logBeta } from "./beta.ts";
import { Independent } from "./composite.ts";
import { Binomial, Poisson } from "./counts.ts";
import { Bernoulli, Categorical, Geometric, OneHotCategorical } from "./discrete.ts";
import { Distribution } from "./distribution.ts";
import { Exponential, Gamma } from "./gamma.ts";
import { Cauchy, EULER, Gumbel, Laplace, Uniform } from "./location.ts";
import { MultivariateNormal } from "./multivariate.ts";
import { HalfNormal, LogNormal, Normal } from "./normal.ts";

type Class<D extends Distribution> = abstract new (...values: never) => D;
interface Pair {
  readonly p: Class<Distribution>;
  readonly q: Class<Distribution>;
  readonly divergence: (p: never, q: never) => Tensor;
}
const pair = <P extends Distribution, Q extends Distribution>(
  p: Class<P>,
  q: Class<Q>,
  divergence: (p: P, q: Q) => Tensor,
): Pair => ({ p, q, divergence });

const HALF_LOG_2_PI = 0.5 * Math.log(2 * Math.PI);

interface Located {
  readonly loc: Tensor;
  readonly scale: Tensor;
}

function ofNormals(p: Located, q: Located): Tensor {
  const ratio = square(div(p.scale, q.scale));
  const distance = square(div(sub(p.loc, q.loc), q.scale));
  return mul(sub(sub(add(ratio, distance), 1), log(ratio)), 0.5);
}

/** Σ p ln(p/q), where terms with p = 0 are 0. */
function ofProbabilities(p: Tensor, logP: Tensor, logQ: Tensor): Tensor {
  const isPossible = gt(p, 0);
  const difference = sub(where(isPossible, logP, 0), where(isPossible, logQ, 0));
  return mul(p, difference);
}

const ofCategories = (p: Categorical | OneHotCategorical, q: Categorical | OneHotCategorical): Tensor =>
  sumLast(ofProbabilities(p.probs, p.logits, q.logits));

/** p ln(p/q) + (1 − p) ln((1 − p)/(1 − q)) */
function ofTrials(p: { readonly probs: Tensor }, q: { readonly probs: Tensor }): Tensor {
  const [a, b] = [p.probs, q.probs];
  const success = ofProbabilities(a, log(a), log(b));
  return add(success, ofProbabilities(sub(1, a), log(sub(1, a)), log(sub(1, b))));
}

function ofGammas(p: Gamma, q: Gamma): Tensor {
  const shape = sub(lgamma(q.concentration), lgamma(p.concentration));
  const rate = mul(q.concentration, log(div(p.rate, q.rate)));
  const difference = mul(sub(p.concentration, q.concentration), digamma(p.concentration));
  return sumOf(shape, rate, difference, mul(sub(q.rate, p.rate), div(p.concentration, p.rate)));
}

function ofBetas(p: Beta, q: Beta): Tensor {
  const total = add(p.concentration1, p.concentration0);
  const first = mul(sub(p.concentration1, q.concentration1), digamma(p.concentration1));
  const second = mul(sub(p.concentration0, q.concentration0), digamma(p.concentration0));
  const rest = mul(sub(add(q.concentration1, q.concentration0), total), digamma(total));
  const normalizer = sub(logBeta(q.concentration1, q.concentration0), logBeta(p.concentration1, p.concentration0));
  return sumOf(normalizer, first, second, rest);
}

function ofDirichlets(p: Dirichlet, q: Dirichlet): Tensor {
  const [a, b] = [p.concentration, q.concentration];
  const total = sumLast(a);
  const normalizer = sumLast(sub(lgamma(b), lgamma(a)));
  const totals = sub(lgamma(total), lgamma(sumLast(b)));
  const centered = sub(digamma(a), digamma(total).unsqueeze(-1));
  return sumOf(normalizer, totals, sumLast(mul(sub(a, b), centered)));
}

function ofLaplaces(p: Laplace, q: Laplace): Tensor {
  const distance = abs(sub(p.loc, q.loc));
  const [ratio, far] = [div(p.scale, q.scale), div(distance, q.scale)];
  return sub(sumOf(neg(log(ratio)), far, mul(ratio, exp(neg(div(distance, p.scale))))), 1);
}

function ofGumbels(p: Gumbel, q: Gumbel): Tensor {
  const ratio = div(p.scale, q.scale);
  const [own, other] = [div(q.loc, q.scale), div(p.loc, q.scale)];
  const moment = exp(add(sub(own, other), lgamma(add(ratio, 1))));
  return sumOf(sub(other, own), neg(log(ratio)), mul(ratio, EULER), moment, -(1 + EULER));
}

function ofVectors(p: MultivariateNormal, q: MultivariateNormal): Tensor {
  const size = p.eventShape[0];
  const columns = Array.from({ length: size }, (_, at) => p.scaleTril.select(-1, at));
  const traces = columns.map((column) => sumLast(square(q.solved(column))));
  const distance = sumLast(square(q.solved(sub(q.loc, p.loc))));
  const spread = sub(q.halfLogDeterminant(), p.halfLogDeterminant());
  return add(spread, mul(sub(sumOf(distance, ...traces), size), 0.5));
}

function ofIndependent(p: Independent, q: Independent): Tensor {
  if (p.reinterpretedBatchNdims !== q.reinterpretedBatchNdims) throw unsupported(p, q);
  const inner = klDivergence(p.base, q.base);
  return sumLast(inner, p.reinterpretedBatchNdims);
}

function ofUniforms(p: Uniform, q: Uniform): Tensor {
  const isInside = and(le(q.low, p.low), ge(q.high, p.high));
  return where(isInside, log(div(sub(q.high, q.low), sub(p.high, p.low))), Number.POSITIVE_INFINITY);
}

/** −H(p) + ln(scale) + ½ ln 2π + ½ E[((x − loc)/scale)²] */
function toNormal(p: Distribution, q: Normal): Tensor {
  const moment = add(p.variance, square(sub(p.mean, q.loc)));
  return sumOf(neg(p.entropy()), log(q.scale), HALF_LOG_2_PI, mul(div(moment, square(q.scale)), 0.5));
}

function ofBinomials(p: Binomial, q: Binomial): Tensor {
  const trials = mul(p.totalCount, ofTrials(p, q));
  const isFewer = gt(q.totalCount, p.totalCount);
  const divergence = where(gt(p.totalCount, q.totalCount), Number.POSITIVE_INFINITY, trials);
  return where(isFewer, Number.NaN, divergence);
}

/** The pairs with a formula; the first one that fits is used. */
const pairs: readonly Pair[] = [
  pair(Normal, Normal, ofNormals),
  pair(LogNormal, LogNormal, ofNormals),
  pair(HalfNormal, HalfNormal, (p, q) => {
    const ratio = square(div(p.scale, q.scale));
    return mul(sub(sub(ratio, 1), log(ratio)), 0.5);
  }),
  pair(MultivariateNormal, MultivariateNormal, ofVectors),
  pair(Bernoulli, Bernoulli, ofTrials),
  pair(Categorical, Categorical, ofCategories),
  pair(OneHotCategorical, OneHotCategorical, ofCategories),
  pair(Binomial, Binomial, ofBinomials),
  pair(Geometric, Geometric, (p, q) => div(ofTrials(p, q), p.probs)),
  pair(Poisson, Poisson, (p, q) => sub(mul(p.rate, log(div(p.rate, q.rate))), sub(p.rate, q.rate))),
  pair(Exponential, Exponential, (p, q) => {
    const ratio = div(q.rate, p.rate);
    return sub(sub(ratio, log(ratio)), 1);
  }),
  pair(Gamma, Gamma, ofGammas),
  pair(Beta, Beta, ofBetas),
  pair(Dirichlet, Dirichlet, ofDirichlets),
  pair(Laplace, Laplace, ofLaplaces),
  pair(Gumbel, Gumbel, ofGumbels),
  pair(Cauchy, Cauchy, (p, q) => {
    const sum = add(square(add(p.scale, q.scale)), square(sub(p.loc, q.loc)));
    return sub(log(sum), log(mul(mul(p.scale, q.scale), 4)));
  }),
  pair(Uniform, Uniform, ofUniforms),
  pair(Independent, Independent, ofIndependent),
  pair(Uniform, Normal, toNormal),
  pair(Exponential, Normal, toNormal),
  pair(Gamma, Normal, toNormal),
  pair(Beta, Normal, toNormal),
  pair(Laplace, Normal, toNormal),
  pair(Gumbel, Normal, toNormal),
];

const unsupported = (p: Distribution, q: Distribution): ArgumentError =>
  new ArgumentError(
    "klDivergence",
    "notSupported",
    `there is no formula for p: ${p.name} and q: ${q.name}; estimate the mean of p.logProb(x) − q.logProb(x) from ` +
      "samples x of p",
  );

const aDistribution = instanceOf(Distribution, "a distribution");
const klParameters = parameters("klDivergence", { p: operand(aDistribution), q: operand(aDistribution) });

/**
 * Computes the Kullback-Leibler divergence E[ln p(x) − ln q(x)] over x drawn from p, of the broadcast batch shape.
 *
 * @example
 * distributions.klDivergence(new distributions.Normal(0, 1), new distributions.Normal(1, 1)); // float32 0.5
 *
 * @throws {ArgumentError} `notSupported` if the pair has no formula.
 */
export function klDivergence(p: Distribution, q: Distribution): Tensor;
export function klDivergence(...values: unknown[]): Tensor {
  const { p, q } = klParameters(values);
  const found = pairs.find((own) => p instanceof own.p && q instanceof own.q);
  if (found === undefined) throw unsupported(p, q);
  return tidy(() => found.divergence(p as never, q as never));
}
