/** Normal distributions of vectors, and the Wishart distribution of their covariances. */
import { lastElement } from "../core/collections.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { optional, parameters, required } from "../core/parameters.ts";
import { cholesky, inv, logdet, solveTriangular } from "../linalg/index.ts";
import { arange, diagEmbed, diagonal, digamma, eye, matmul, mvlgamma, narrow, select, tril } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import { broadcastShapes, type Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  add,
  div,
  expandTo,
  gt,
  log,
  mul,
  neg,
  sqrt,
  square,
  sub,
  sumLast,
  sumOf,
  type Value,
  where,
  withAxis,
} from "./arithmetic.ts";
import { checkVector } from "./beta.ts";
import {
  aParameter,
  type Constraint,
  checkValues,
  commonOptions,
  convertAll,
  type DistributionOptions,
  positive,
  ReparameterizedDistribution,
  real,
} from "./distribution.ts";
import { normal } from "./noise.ts";
import { standardGamma } from "./standard_gamma.ts";

/** Parameters of {@link MultivariateNormal}: `loc` and one of the matrices. */
export interface MultivariateNormalParameters extends DistributionOptions {
  /** float[..., size], the mean. */
  loc: Tensor;
  /** float[..., size, size], symmetric and positive definite. */
  covarianceMatrix?: Tensor | undefined;
  /** The inverse of the covariance. */
  precisionMatrix?: Tensor | undefined;
  /** The lower triangular Cholesky factor of the covariance, with a diagonal above 0. */
  scaleTril?: Tensor | undefined;
}
/** The ways to pass the parameters of {@link MultivariateNormal}. */
export type MultivariateNormalArguments =
  | [loc: Tensor, covarianceMatrix: Tensor, options?: DistributionOptions]
  | [loc: Tensor, parameters: Omit<MultivariateNormalParameters, "loc">]
  | [parameters: MultivariateNormalParameters];

const matrices = {
  covarianceMatrix: optional(aParameter),
  precisionMatrix: optional(aParameter),
  scaleTril: optional(aParameter),
} as const;
const multivariateParameters = parameters("MultivariateNormal", {
  loc: required(aParameter),
  ...matrices,
  ...commonOptions,
});

interface Matrices {
  readonly covarianceMatrix: Value | undefined;
  readonly precisionMatrix: Value | undefined;
  readonly scaleTril: Value | undefined;
}

/** Reads the one matrix that is given, together with another parameter, and returns its Cholesky factor. */
function readMatrix(
  operation: string,
  other: Value,
  { covarianceMatrix, precisionMatrix, scaleTril }: Matrices,
  validateArgs: boolean,
): { readonly other: Tensor; readonly factor: Tensor } {
  const all = Object.entries({ covarianceMatrix, precisionMatrix, scaleTril });
  const given = all.filter(([, value]) => value !== undefined);
  if (given.length !== 1)
    throw new ArgumentError(
      operation,
      "invalidArgument",
      `expected one of covarianceMatrix, precisionMatrix and scaleTril, got ${given.length}`,
    );
  const [name, value] = given[0];
  const read = convertAll({ other, matrix: value! });
  const { matrix } = read;
  if (matrix.rank < 2 || matrix.shape.at(-1) !== matrix.shape.at(-2) || matrix.shape.at(-1) === 0)
    throw new ShapeError(operation, "invalidShape", `expected ${name} to be square matrices, got ${matrix.describe()}`);
  if (name === "covarianceMatrix") return { other: read.other, factor: cholesky(matrix) };
  if (name === "precisionMatrix") return { other: read.other, factor: cholesky(inv(matrix)) };
  if (validateArgs) checkValues(operation, "scaleTril's diagonal", diagonalOf(matrix), positive);
  return { other: read.other, factor: tril(matrix) };
}

const diagonalOf = (x: Tensor): Tensor => diagonal(x, { dim1: -2, dim2: -1 });

/** Computes L⁻¹ x for vectors x, with broadcasting. */
function solve(factor: Tensor, x: Tensor): Tensor {
  const size = lastElement(x.shape);
  const batch = broadcastShapes("solveTriangular", factor.shape.slice(0, -2), x.shape.slice(0, -1));
  const [matrices_, vectors] = [expandTo(factor, [...batch, size, size]), expandTo(withAxis(x), [...batch, size, 1])];
  return select(solveTriangular(matrices_, vectors, { upper: false }), -1, 0);
}

/** Computes M z column by column, in order, so that it has the same bits on every backend. */
function productInOrder(matrix: Tensor, z: Tensor): Tensor {
  let total: Tensor | undefined;
  for (let at = 0; at < lastElement(z.shape); at++) {
    const part = mul(select(matrix, -1, at), narrow(z, -1, at, 1));
    total = total === undefined ? part : add(total, part);
  }
  return total!;
}

const LOG_2_PI = Math.log(2 * Math.PI);

/**
 * The normal distribution of vectors with the mean `loc` and a covariance, which is given as a matrix, as its inverse
 * or as its Cholesky factor. Samples have the same bits on every backend if the factor is given.
 *
 * @example
 * const normal = new distributions.MultivariateNormal(zeros([2]), { scaleTril: eye(2) });
 * normal.entropy(); // float32 2.837877
 *
 * @throws {ArgumentError} unless one matrix is given.
 * @throws {ShapeError} if the shapes do not fit.
 * @throws {LinAlgError} if the covariance is not positive definite.
 */
export class MultivariateNormal extends ReparameterizedDistribution {
  readonly loc: Tensor;
  readonly scaleTril: Tensor;

  constructor(...options: MultivariateNormalArguments);
  constructor(...values: unknown[]) {
    const { loc, validateArgs, ...given } = multivariateParameters(values);
    const { other, factor } = readMatrix("MultivariateNormal", loc, given, validateArgs);
    checkVector("MultivariateNormal", "loc", other);
    if (validateArgs) checkValues("MultivariateNormal", "loc", other, real);
    const shape = broadcastShapes("MultivariateNormal", other.shape, factor.shape.slice(0, -1));
    checkSize("MultivariateNormal", shape, factor);
    super(other, shape.slice(0, -1), shape.slice(-1));
    this.loc = expandTo(other, shape);
    this.scaleTril = expandTo(factor, [...shape, lastElement(shape)]);
  }

  get covarianceMatrix(): Tensor {
    return matmul(this.scaleTril, this.scaleTril.mT);
  }
  get precisionMatrix(): Tensor {
    return inv(this.covarianceMatrix);
  }
  override get mean(): Tensor {
    return this.loc;
  }
  override get mode(): Tensor {
    return this.loc;
  }
  override get variance(): Tensor {
    return sumLast(square(this.scaleTril));
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return add(productInOrder(this.scaleTril, normal(shape, { dtype: this.dtype, generator })), this.loc);
  }
  protected override density(value: Tensor): Tensor {
    const distance = sumLast(square(solve(this.scaleTril, sub(value, this.loc))));
    return sub(mul(add(distance, lastElement(this.loc.shape) * LOG_2_PI), -0.5), this.halfLogDeterminant());
  }
  protected override uncertainty(): Tensor {
    return add(this.halfLogDeterminant(), 0.5 * lastElement(this.loc.shape) * (1 + LOG_2_PI));
  }

  /** @internal ½ ln det Σ */
  halfLogDeterminant(): Tensor {
    return sumLast(log(diagonalOf(this.scaleTril)));
  }
  /** @internal Computes L⁻¹ x. */
  solved(x: Tensor): Tensor {
    return solve(this.scaleTril, x);
  }
}

function checkSize(operation: string, shape: Shape, factor: Tensor): void {
  if (shape.at(-1) === factor.shape.at(-1)) return;
  throw new ShapeError(
    operation,
    "invalidShape",
    `expected matrices of size ${shape.at(-1)}, got ${factor.describe()}`,
  );
}

/** Parameters of {@link LowRankMultivariateNormal}. */
export interface LowRankParameters extends DistributionOptions {
  /** float[..., size], the mean. */
  loc: Tensor;
  /** float[..., size, rank], the factor W. */
  covFactor: Tensor;
  /** float[..., size], the diagonal D, above 0. */
  covDiag: Tensor;
}
/** The ways to pass the parameters of {@link LowRankMultivariateNormal}. */
export type LowRankArguments =
  | [loc: Tensor, covFactor: Tensor, covDiag: Tensor, options?: DistributionOptions]
  | [parameters: LowRankParameters];

const lowRankParameters = parameters("LowRankMultivariateNormal", {
  loc: required(aParameter),
  covFactor: required(aParameter),
  covDiag: required(aParameter),
  ...commonOptions,
});

/**
 * The normal distribution of vectors with the covariance W Wᵀ + diag(D), where W has few columns. Densities cost a
 * Cholesky factorization of a matrix of that many columns.
 *
 * @example
 * const normal = new distributions.LowRankMultivariateNormal(zeros([2]), ones([2, 1]), ones([2]));
 * normal.variance; // float32 [2, 2]
 *
 * @throws {ArgumentError} unless `covDiag` is above 0.
 * @throws {ShapeError} if the shapes do not fit.
 */
export class LowRankMultivariateNormal extends ReparameterizedDistribution {
  readonly loc: Tensor;
  readonly covFactor: Tensor;
  readonly covDiag: Tensor;

  constructor(...options: LowRankArguments);
  constructor(...values: unknown[]) {
    const { validateArgs, ...given } = lowRankParameters(values);
    const { loc, covFactor, covDiag } = convertAll(given);
    const operation = "LowRankMultivariateNormal";
    checkVector(operation, "loc", loc);
    if (covFactor.rank < 2 || covFactor.size === 0)
      throw new ShapeError(operation, "invalidShape", `expected covFactor to be matrices, got ${covFactor.describe()}`);
    const shape = broadcastShapes(operation, loc.shape, covDiag.shape, covFactor.shape.slice(0, -1));
    if (validateArgs) checkValues(operation, "covDiag", covDiag, positive);
    super(loc, shape.slice(0, -1), shape.slice(-1));
    [this.loc, this.covDiag] = [expandTo(loc, shape), expandTo(covDiag, shape)];
    this.covFactor = expandTo(covFactor, [...shape, lastElement(covFactor.shape)]);
  }

  get covarianceMatrix(): Tensor {
    const product = matmul(this.covFactor, this.covFactor.mT);
    return add(product, diagEmbed(this.covDiag));
  }
  override get mean(): Tensor {
    return this.loc;
  }
  override get mode(): Tensor {
    return this.loc;
  }
  override get variance(): Tensor {
    return add(sumLast(square(this.covFactor)), this.covDiag);
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    const rank = lastElement(this.covFactor.shape);
    const low = productInOrder(this.covFactor, normal([...shape.slice(0, -1), rank], source));
    return sumOf(low, mul(sqrt(this.covDiag), normal(shape, source)), this.loc);
  }
  /** By Woodbury's identity, with the capacitance I + Wᵀ D⁻¹ W. */
  protected override density(value: Tensor): Tensor {
    const { factor, scaled } = this.capacitance();
    const difference = sub(value, this.loc);
    const whole = sumLast(div(square(difference), this.covDiag));
    const inner = select(matmul(scaled.mT, withAxis(difference)), -1, 0);
    const distance = sub(whole, sumLast(square(solve(factor, inner))));
    return mul(sumOf(distance, this.logDeterminant(factor), lastElement(this.loc.shape) * LOG_2_PI), -0.5);
  }
  protected override uncertainty(): Tensor {
    const { factor } = this.capacitance();
    return mul(add(this.logDeterminant(factor), lastElement(this.loc.shape) * (1 + LOG_2_PI)), 0.5);
  }

  /** The Cholesky factor of the capacitance, and D⁻¹ W. */
  private capacitance(): { readonly factor: Tensor; readonly scaled: Tensor } {
    const scaled = div(this.covFactor, withAxis(this.covDiag));
    const product = matmul(this.covFactor.mT, scaled);
    const identity = eye(lastElement(product.shape), { dtype: this.dtype });
    return { factor: cholesky(add(product, identity)), scaled };
  }
  private logDeterminant(factor: Tensor): Tensor {
    return add(sumLast(log(this.covDiag)), mul(sumLast(log(diagonalOf(factor))), 2));
  }
}

/** Parameters of {@link Wishart}: `df` and one of the matrices. */
export interface WishartParameters extends DistributionOptions {
  /** The degrees of freedom, above the size of the matrices less 1. */
  df: Value;
  /** float[..., size, size], symmetric and positive definite. */
  covarianceMatrix?: Tensor | undefined;
  /** The inverse of the covariance. */
  precisionMatrix?: Tensor | undefined;
  /** The lower triangular Cholesky factor of the covariance, with a diagonal above 0. */
  scaleTril?: Tensor | undefined;
}
/** The ways to pass the parameters of {@link Wishart}. */
export type WishartArguments =
  | [df: Value, covarianceMatrix: Tensor, options?: DistributionOptions]
  | [df: Value, parameters: Omit<WishartParameters, "df">]
  | [parameters: WishartParameters];

const wishartParameters = parameters("Wishart", { df: required(aParameter), ...matrices, ...commonOptions });

/**
 * The Wishart distribution of sums of x xᵀ over `df` normal vectors x with a covariance. Samples are products of
 * matrices, whose last bits depend on the backend.
 *
 * @example
 * new distributions.Wishart(3, { scaleTril: eye(2) }).mean; // float32 [[3, 0], [0, 3]]
 *
 * @throws {ArgumentError} unless one matrix is given, and `df` is above its size less 1.
 * @throws {ShapeError} if the shapes do not fit.
 * @throws {LinAlgError} if the covariance is not positive definite.
 */
export class Wishart extends ReparameterizedDistribution {
  readonly df: Tensor;
  readonly scaleTril: Tensor;

  constructor(...options: WishartArguments);
  constructor(...values: unknown[]) {
    const { df, validateArgs, ...given } = wishartParameters(values);
    const { other, factor } = readMatrix("Wishart", df, given, validateArgs);
    const size = lastElement(factor.shape);
    const enough: Constraint = { expected: `above ${size - 1}`, holds: (x) => gt(x, size - 1), inside: size };
    if (validateArgs) checkValues("Wishart", "df", other, enough);
    const shape = broadcastShapes("Wishart", other.shape, factor.shape.slice(0, -2));
    super(other, shape, [size, size]);
    this.df = expandTo(other, shape);
    this.scaleTril = expandTo(factor, [...shape, size, size]);
  }

  get covarianceMatrix(): Tensor {
    return matmul(this.scaleTril, this.scaleTril.mT);
  }
  override get mean(): Tensor {
    return mul(this.covarianceMatrix, this.ofMatrices(this.df));
  }
  /** NaN unless `df` is above the size plus 1. */
  override get mode(): Tensor {
    const factor = sub(this.df, this.size + 1);
    return mul(this.covarianceMatrix, this.ofMatrices(where(gt(factor, 0), factor, Number.NaN)));
  }
  override get variance(): Tensor {
    const v = this.covarianceMatrix;
    const d = diagonalOf(v);
    const outer = mul(withAxis(d), d.unsqueeze(-2));
    return mul(add(square(v), outer), this.ofMatrices(this.df));
  }

  /** Bartlett's decomposition: L A Aᵀ Lᵀ, with normal numbers below the diagonal of A. */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    const rows = arange(this.size, { dtype: this.dtype });
    const half = mul(sub(withAxis(this.df), rows), 0.5);
    const chi = sqrt(mul(standardGamma(half, shape.slice(0, -1), source), 2));
    const below = tril(normal(shape, source), { diagonal: -1 });
    const product = matmul(this.scaleTril, add(below, diagEmbed(chi)));
    return matmul(product, product.mT);
  }
  protected override density(value: Tensor): Tensor {
    const p = this.size;
    const half = mul(this.df, 0.5);
    const inverse = inv(this.covarianceMatrix);
    const trace = sumLast(mul(inverse, value), 2);
    const normalizer = sumOf(
      mul(this.df, (p * Math.LN2) / 2),
      mul(this.df, sumLast(log(diagonalOf(this.scaleTril)))),
      mvlgamma(half, p),
    );
    const determinant = mul(mul(sub(this.df, p + 1), 0.5), logdet(value));
    return sub(sub(determinant, mul(trace, 0.5)), normalizer);
  }
  protected override uncertainty(): Tensor {
    const p = this.size;
    const half = mul(this.df, 0.5);
    const rows = arange(p, { dtype: this.dtype });
    const digammas = sumLast(digamma(sub(withAxis(half), mul(rows, 0.5))));
    return sumOf(
      mul(sumLast(log(diagonalOf(this.scaleTril))), p + 1),
      0.5 * p * (p + 1) * Math.LN2,
      mvlgamma(half, p),
      neg(mul(mul(sub(this.df, p + 1), 0.5), digammas)),
      mul(this.df, p / 2),
    );
  }

  private get size(): number {
    return this.eventShape[0];
  }
  /** Adds the axes of the matrices. */
  private ofMatrices(x: Tensor): Tensor {
    return withAxis(withAxis(x));
  }
}
