/** Distributions and transforms, with valid arguments. */
import { distributions, eye, ones, type Tensor, tensor, zeros } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

const d = distributions;
const make =
  (Class: new (...values: never[]) => unknown): Call =>
  (...values) =>
    new Class(...values);

const loc = () => [0, ones([2]), { validateArgs: true }];
const chance = () => [ones([2, 2])];
const normal = () => new d.Normal(zeros([2]), 1);

const classes: Readonly<Record<string, readonly [Class: unknown, values: () => readonly unknown[]]>> = {
  Normal: [d.Normal, loc],
  LogNormal: [d.LogNormal, loc],
  HalfNormal: [d.HalfNormal, () => [ones([2])]],
  Uniform: [d.Uniform, loc],
  Laplace: [d.Laplace, loc],
  Cauchy: [d.Cauchy, loc],
  Gumbel: [d.Gumbel, loc],
  Exponential: [d.Exponential, () => [ones([2])]],
  Weibull: [d.Weibull, () => [1, ones([2])]],
  Gamma: [d.Gamma, () => [1, ones([2])]],
  Chi2: [d.Chi2, () => [ones([2])]],
  HalfCauchy: [d.HalfCauchy, () => [ones([2])]],
  Pareto: [d.Pareto, () => [1, ones([2])]],
  InverseGamma: [d.InverseGamma, () => [1, ones([2])]],
  FisherSnedecor: [d.FisherSnedecor, () => [1, ones([2])]],
  Beta: [d.Beta, () => [1, ones([2])]],
  Dirichlet: [d.Dirichlet, chance],
  StudentT: [d.StudentT, () => [1, 0, ones([2])]],
  VonMises: [d.VonMises, () => [0, ones([2])]],
  Bernoulli: [d.Bernoulli, chance],
  Geometric: [d.Geometric, chance],
  Binomial: [d.Binomial, () => [2, ones([2])]],
  NegativeBinomial: [d.NegativeBinomial, () => [2, { logits: zeros([2]) }]],
  Poisson: [d.Poisson, () => [ones([2])]],
  Categorical: [d.Categorical, chance],
  OneHotCategorical: [d.OneHotCategorical, chance],
  Multinomial: [d.Multinomial, () => [2, ones([2, 2])]],
  MultivariateNormal: [d.MultivariateNormal, () => [zeros([2]), eye(2)]],
  LowRankMultivariateNormal: [d.LowRankMultivariateNormal, () => [zeros([2]), ones([2, 1]), ones([2])]],
  Wishart: [d.Wishart, () => [3, eye(2)]],
  Independent: [d.Independent, () => [normal(), 1]],
  MixtureSameFamily: [d.MixtureSameFamily, () => [new d.Categorical(ones([2])), normal()]],
  TransformedDistribution: [d.TransformedDistribution, () => [normal(), [new d.ExpTransform()]]],
  ExpTransform: [d.ExpTransform, () => []],
  SigmoidTransform: [d.SigmoidTransform, () => []],
  TanhTransform: [d.TanhTransform, () => []],
  StickBreakingTransform: [d.StickBreakingTransform, () => []],
  LowerCholeskyTransform: [d.LowerCholeskyTransform, () => []],
  AffineTransform: [d.AffineTransform, () => [1, 2]],
  PowerTransform: [d.PowerTransform, () => [2]],
};

/** The classes, and the methods of their base classes. */
export const distributionCalls: Calls = {
  ...Object.fromEntries(
    Object.entries(classes).map(([name, [Class, values]]) => [
      name,
      [make(Class as new (...values: never[]) => unknown), values] as const,
    ]),
  ),
  "Distribution.sample": [(...values) => normal().sample(...values), () => [[2]]],
  "Distribution.rsample": [(...values) => normal().rsample(...values), () => [[2]]],
  "Distribution.logProb": [(...values: [Tensor]) => normal().logProb(...values), () => [ones([2])]],
  "Distribution.cdf": [(...values: [Tensor]) => normal().cdf(...values), () => [ones([2])]],
  "Distribution.icdf": [(...values: [Tensor]) => normal().icdf(...values), () => [tensor([0.25, 0.5])]],
  "Distribution.entropy": [(...values: []) => normal().entropy(...values), () => []],
  "Transform.forward": [(...values: [Tensor]) => new d.ExpTransform().forward(...values), () => [ones([2])]],
  "Transform.inverse": [(...values: [Tensor]) => new d.ExpTransform().inverse(...values), () => [ones([2])]],
  "Transform.logAbsDetJacobian": [
    (...values: [Tensor, Tensor]) => new d.ExpTransform().logAbsDetJacobian(...values),
    () => [ones([2]), ones([2])],
  ],
  klDivergence: [d.klDivergence as Call, () => [normal(), normal()]],
};
