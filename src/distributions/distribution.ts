/** The base class of distributions, and how their constructors read parameters. */
import { noGrad } from "../autograd/modes.ts";
import { underName } from "../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { either, flag, someNumber } from "../core/kinds.ts";
import { type Kind, named, operand, optional, parameters, required } from "../core/parameters.ts";
import { all, expand, isfinite, tensor, toDType } from "../ops/index.ts";
import { aGenerator, type GeneratorOptions } from "../ops/random/distribution.ts";
import type { Generator } from "../random/generator.ts";
import { type DType, isFloat } from "../tensor/dtype.ts";
import { aShape, aTensor } from "../tensor/kinds.ts";
import { promote } from "../tensor/promotion.ts";
import { broadcastShapes, checkShape, elementCount, formatShape, type Shape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { and, eq, exp, floor, ge, gt, le, lt, neg, sqrt, type Value, where, xlogy } from "./arithmetic.ts";

/** Options of every distribution. */
export interface DistributionOptions {
  /**
   * Whether the constructor checks the values of its parameters, which waits for them. Default true. Shapes and dtypes
   * are checked in any case.
   */
  validateArgs?: boolean | undefined;
}

/** Options of {@link Distribution.sample}. */
export interface SampleOptions extends GeneratorOptions {
  /** The shape of the samples before the batch shape. Default: one sample, `[]`. */
  shape?: Shape | undefined;
}
/** The arguments of {@link Distribution.sample}: the shape as a list, or as separate sizes, and options. */
export type SampleArguments =
  | [shape?: Shape, options?: GeneratorOptions]
  | [options: SampleOptions]
  | number[]
  | [...sizes: number[], options: GeneratorOptions];

/** @internal Accepts a parameter of a distribution. */
export const aParameter: Kind<Value> = either(aTensor, { ...someNumber, error: [ArgumentError, "invalidOperand"] });

/** @internal The option of every distribution. */
export const commonOptions = { validateArgs: named(flag, true) } as const;

/** @internal A condition on the elements of parameters and values. */
export interface Constraint {
  readonly expected: string;
  readonly holds: (x: Tensor) => Tensor;
  /** A number that satisfies the constraint. It replaces the numbers that do not. */
  readonly inside: number;
}

/** @internal */
export const real: Constraint = { expected: "finite", holds: (x) => isfinite(x), inside: 0 };
/** @internal */
export const positive: Constraint = { expected: "above 0", holds: (x) => gt(x, 0), inside: 1 };
/** @internal */
export const notNegative: Constraint = { expected: "at least 0", holds: (x) => ge(x, 0), inside: 1 };
/** @internal */
export const probability: Constraint = {
  expected: "from 0 to 1",
  holds: (x) => and(ge(x, 0), le(x, 1)),
  inside: 0.5,
};
/** @internal */
export const insideUnit: Constraint = {
  expected: "between 0 and 1",
  holds: (x) => and(gt(x, 0), lt(x, 1)),
  inside: 0.5,
};
/** @internal */
export const count: Constraint = {
  expected: "whole numbers of at least 0",
  holds: (x) => and(ge(x, 0), eq(floor(x), x)),
  inside: 0,
};
/** @internal */
export const zeroOrOne: Constraint = { expected: "0 or 1", holds: (x) => eq(x, where(gt(x, 0.5), 1, 0)), inside: 0 };

/** @internal Throws unless a constraint holds for every element. */
export function checkValues(operation: string, name: string, x: Tensor, { holds, expected }: Constraint): void {
  const isValid = noGrad(() => tidy(() => all(holds(x)).item()));
  if (!isValid)
    throw new ArgumentError(operation, "invalidValue", `expected every element of ${name} to be ${expected}`);
}

/** The dtype in which a distribution computes: that of its parameters, at least float32. */
function commonDType(values: readonly Value[]): "float32" | "float64" {
  const dtypes = values.flatMap((value) => (value instanceof Tensor ? [value.dtype] : []));
  return dtypes.reduce<DType>((common, dtype) => promote(common, isFloat(dtype) ? dtype : "float32"), "float32") ===
    "float64"
    ? "float64"
    : "float32";
}

/** @internal Converts a value to a dtype. */
export const asTensor = (value: Value, dtype: "float32" | "float64"): Tensor =>
  value instanceof Tensor ? toDType(value, dtype) : tensor(value, { dtype });

/** @internal Converts parameters to one dtype. */
export function convertAll<Names extends string>(given: Readonly<Record<Names, Value>>): Record<Names, Tensor> {
  const dtype = commonDType(Object.values(given));
  return Object.fromEntries(
    Object.entries<Value>(given).map(([name, value]) => [name, asTensor(value, dtype)]),
  ) as Record<Names, Tensor>;
}

/** @internal Converts the parameters of a distribution, checks their values and broadcasts them. */
export function readAll<Names extends string>(
  operation: string,
  given: Readonly<Record<Names, Value>>,
  constraints: Readonly<Record<Names, Constraint>>,
  validateArgs: boolean,
): Record<Names, Tensor> {
  const tensors = convertAll(given);
  const shape = broadcastShapes(operation, ...Object.values<Tensor>(tensors).map((x) => x.shape));
  const read = Object.entries<Tensor>(tensors).map(([name, x]) => {
    if (validateArgs) checkValues(operation, name, x, constraints[name as Names]);
    return [name, expand(x, shape)];
  });
  return Object.fromEntries(read) as Record<Names, Tensor>;
}

/** @internal Declares the parameters of a distribution. The result reads them as {@link readAll} does. */
export function constrained<Names extends string>(
  operation: string,
  constraints: Readonly<Record<Names, Constraint>>,
): (values: readonly unknown[]) => Record<Names, Tensor> {
  const names = Object.keys(constraints);
  const read = parameters(operation, {
    ...Object.fromEntries(names.map((name) => [name, required(aParameter)])),
    ...commonOptions,
  });
  return (values) => {
    const { validateArgs, ...given } = read(values);
    return readAll(operation, given as Record<Names, Value>, constraints, validateArgs);
  };
}

/** @internal Returns the one of two parameters that is given, such as `probs` or `logits`. */
export function oneOfTwo(operation: string, names: readonly [string, string], a?: Value, b?: Value): void {
  if ((a === undefined) === (b === undefined))
    throw new ArgumentError(
      operation,
      "invalidArgument",
      `expected either ${names[0]} or ${names[1]}, got ${a === undefined ? "neither" : "both"}`,
    );
}

const drawParameters = { shape: optional(aShape, []), generator: named(aGenerator) };
const readers = {
  sample: parameters("Distribution.sample", drawParameters),
  rsample: parameters("Distribution.rsample", drawParameters),
  logProb: parameters("Distribution.logProb", { value: operand(aParameter) }),
  cdf: parameters("Distribution.cdf", { value: operand(aParameter) }),
  icdf: parameters("Distribution.icdf", { value: operand(aParameter) }),
  entropy: parameters("Distribution.entropy", {}),
};

/**
 * The base class of distributions. A distribution is a batch of `batchShape` independent distributions with values of
 * shape `eventShape`. Results have the dtype of the parameters, at least float32.
 *
 * Methods that a distribution does not have throw an {@link ArgumentError} with the code `notSupported`.
 *
 * @example
 * const normal: distributions.Distribution = new distributions.Normal(tensor([0, 1]), 2);
 * normal.sample([3]).shape; // [3, 2]
 */
export abstract class Distribution {
  /** The shape of the batch: the broadcast shape of the parameters. */
  readonly batchShape: Shape;
  /** The shape of one value; `[]` for distributions of numbers. */
  readonly eventShape: Shape;
  /** @internal */ readonly dtype: "float32" | "float64";
  /** @internal The support: the values with a density. */ protected readonly support: Constraint | undefined;

  /** @internal */
  constructor(like: { readonly dtype: string }, batchShape: Shape, eventShape: Shape = [], support?: Constraint) {
    [this.batchShape, this.eventShape] = [Object.freeze([...batchShape]), Object.freeze([...eventShape])];
    this.dtype = like.dtype as "float32" | "float64";
    this.support = support;
  }

  /** Whether {@link rsample} has gradients with respect to the parameters. */
  get hasRsample(): boolean {
    return false;
  }

  /** The expected value. */
  get mean(): Tensor {
    return this.missing("mean");
  }

  /** The variance of each element. */
  get variance(): Tensor {
    return this.missing("variance");
  }

  /** The standard deviation of each element. */
  get stddev(): Tensor {
    return sqrt(this.variance);
  }

  /** The value of the highest density or probability. */
  get mode(): Tensor {
    return this.missing("mode");
  }

  /**
   * Draws samples of shape `[...shape, ...batchShape, ...eventShape]`, without gradients. A generator with the same
   * seed gives the same samples.
   *
   * @example
   * new distributions.Normal(0, 1).sample([1000]);
   *
   * @throws {ShapeError} for an invalid shape.
   */
  sample(...options: SampleArguments): Tensor;
  sample(...values: unknown[]): Tensor {
    const { shape, generator } = readers.sample(values);
    return this.run("sample", () => noGrad(() => this.draw(this.extended("sample", shape), generator)));
  }

  /**
   * Draws samples as {@link sample}, with gradients with respect to the parameters.
   *
   * @throws {ArgumentError} if the distribution has no such gradients, such as discrete distributions.
   */
  rsample(...options: SampleArguments): Tensor;
  rsample(...values: unknown[]): Tensor {
    const { shape, generator } = readers.rsample(values);
    if (!this.hasRsample) return this.missing("rsample");
    return this.run("rsample", () => this.draw(this.extended("rsample", shape), generator));
  }

  /**
   * Computes the logarithm of the density, or of the probability of discrete values. It is −∞ outside the support.
   *
   * @param value broadcastable with `[...batchShape, ...eventShape]`
   * @returns the broadcast shape without the axes of `eventShape`
   * @throws {ShapeError} for a value that does not fit.
   */
  logProb(value: Value): Tensor;
  logProb(...values: unknown[]): Tensor {
    const given = this.valueOf_("logProb", readers.logProb(values).value);
    return this.run("logProb", () => {
      if (this.support === undefined) return this.density(given);
      const isInside = this.support.holds(given);
      const density = this.density(where(isInside, given, this.support.inside));
      return where(isInside, density, where(eq(given, given), Number.NEGATIVE_INFINITY, Number.NaN));
    });
  }

  /** Computes the probability of values up to `value`. @see {@link logProb} */
  cdf(value: Value): Tensor;
  cdf(...values: unknown[]): Tensor {
    const given = this.valueOf_("cdf", readers.cdf(values).value);
    return this.run("cdf", () => this.cumulative(given));
  }

  /** Computes the quantile of a probability, the inverse of {@link cdf}; NaN outside [0, 1]. */
  icdf(value: Value): Tensor;
  icdf(...values: unknown[]): Tensor {
    const given = this.valueOf_("icdf", readers.icdf(values).value);
    return this.run("icdf", () => {
      const isInside = and(ge(given, 0), le(given, 1));
      return where(isInside, this.quantile(where(isInside, given, 0.5)), Number.NaN);
    });
  }

  /** Computes the entropy in nats, of shape `batchShape`. */
  entropy(): Tensor;
  entropy(...values: unknown[]): Tensor {
    readers.entropy(values);
    return this.run("entropy", () => this.uncertainty());
  }

  /** Computes the exponential of the entropy. */
  perplexity(): Tensor {
    return exp(this.entropy());
  }

  /** Returns the name of the class, with the shapes and the dtype. */
  toString(): string {
    return `${this.name}: batch ${formatShape(this.batchShape)}, event ${formatShape(this.eventShape)}, ${this.dtype}`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** @internal The name of the class, for errors. */
  get name(): string {
    return this.constructor.name;
  }

  /** @internal Draws a tensor of this shape. */
  protected draw(_shape: Shape, _generator: Generator | undefined): Tensor {
    return this.missing("sample");
  }
  /** @internal Computes the density of values in the support. */
  protected density(_value: Tensor): Tensor {
    return this.missing("logProb");
  }
  /** @internal */
  protected cumulative(_value: Tensor): Tensor {
    return this.missing("cdf");
  }
  /** @internal */
  protected quantile(_probability: Tensor): Tensor {
    return this.missing("icdf");
  }
  /** @internal */
  protected uncertainty(): Tensor {
    return this.missing("entropy");
  }

  /** @internal */
  protected missing(method: string): never {
    throw new ArgumentError(
      `${this.name}.${method}`,
      "notSupported",
      `${this.name} has no ${method}; see the table in docs/distributions.md`,
    );
  }

  private run(method: string, body: () => Tensor): Tensor {
    return underName(`${this.name}.${method}`, () => tidy(body));
  }

  private extended(method: string, shape: Shape): Shape {
    const operation = `${this.name}.${method}`;
    return checkShape(operation, [...checkShape(operation, shape), ...this.batchShape, ...this.eventShape]);
  }

  /** Converts a value, and broadcasts its last axes to the event. */
  private valueOf_(method: string, value: Value): Tensor {
    const operation = `${this.name}.${method}`;
    const given = asTensor(value, this.dtype);
    const shape = broadcastShapes(operation, given.shape, [...this.batchShape, ...this.eventShape]);
    const events = this.eventShape.length;
    const isEvent = events === 0 || shape.slice(-events).every((size, at) => size === this.eventShape[at]);
    if (!isEvent || given.rank < events)
      throw new ShapeError(
        operation,
        "invalidShape",
        `expected a value whose last sizes are ${formatShape(this.eventShape)}, got ${given.describe()}`,
      );
    return events === 0 ? given : expand(given, shape);
  }
}

/** A distribution whose samples have gradients with respect to its parameters. */
export abstract class ReparameterizedDistribution extends Distribution {
  override get hasRsample(): boolean {
    return true;
  }
}

/** @internal Computes −Σ p ln p along the last axis. */
export const entropyOf = (probs: Tensor): Tensor => neg(xlogy(probs, probs));

/** @internal Returns the number of elements of an event. */
export const sizeOf = (shape: Shape): number => elementCount(shape);
