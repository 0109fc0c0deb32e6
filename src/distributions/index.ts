/** Probability distributions: samples, densities, entropies, distribution functions, divergences. */

export {
  Beta,
  type BetaArguments,
  type BetaParameters,
  Dirichlet,
  type DirichletArguments,
  type DirichletParameters,
  StudentT,
  type StudentTArguments,
  type StudentTParameters,
} from "./beta.ts";
export * from "./composite.ts";
export * from "./counts.ts";
export {
  Bernoulli,
  Categorical,
  type CategoryArguments,
  type CategoryParameters,
  Geometric,
  OneHotCategorical,
  type TrialArguments,
  type TrialParameters,
} from "./discrete.ts";
export { Distribution, type DistributionOptions, type SampleArguments, type SampleOptions } from "./distribution.ts";
export * from "./gamma.ts";
export * from "./heavy_tails.ts";
export * from "./kl.ts";
export { Cauchy, Gumbel, Laplace, Uniform, type UniformArguments, type UniformParameters } from "./location.ts";
export * from "./multivariate.ts";
export {
  HalfNormal,
  type LocationScaleArguments,
  type LocationScaleParameters,
  LogNormal,
  Normal,
  type ScaleArguments,
  type ScaleParameters,
} from "./normal.ts";
export * from "./transforms.ts";
export * from "./von_mises.ts";

import "../ops/methods.ts";
