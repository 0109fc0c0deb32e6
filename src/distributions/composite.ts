/** Distributions built from other distributions: independent axes, mixtures and transformed values. */
import { ShapeError } from "../core/errors.ts";
import { aNumber, instanceOf, listOf } from "../core/kinds.ts";
import { type Kind, operand, parameters, required } from "../core/parameters.ts";
import { expand, gather, logsumexp, reshape, sum, toDType, unsqueeze } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import { type Shape, sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { add, lt, mul, square, sub, sumLast, type Value, where } from "./arithmetic.ts";
import { Categorical } from "./discrete.ts";
import { commonOptions, Distribution, type DistributionOptions } from "./distribution.ts";
import { Transform } from "./transforms.ts";

const aDistribution: Kind<Distribution> = instanceOf(Distribution, "a distribution");

const optionsOf = (generator: Generator | undefined): { generator?: Generator } => (generator ? { generator } : {});

/** Draws samples of a distribution, with gradients if it has them. `shape` includes the batch and the event. */
function drawFrom(from: Distribution, shape: Shape, generator: Generator | undefined): Tensor {
  const outer = shape.slice(0, shape.length - from.batchShape.length - from.eventShape.length);
  const options = optionsOf(generator);
  return from.hasRsample ? from.rsample(outer, options) : from.sample(outer, options);
}

const independentParameters = parameters("Independent", {
  base: operand(aDistribution),
  reinterpretedBatchNdims: required(
    aNumber({ holds: (n) => Number.isInteger(n) && n >= 0, expected: "a whole number of at least 0" }),
  ),
  ...commonOptions,
});

/** Parameters of {@link Independent} after the distribution. */
export interface IndependentParameters extends DistributionOptions {
  /** The number of last axes of the batch that become axes of the event. */
  reinterpretedBatchNdims: number;
}

/**
 * A distribution whose last batch axes are axes of the event: densities and entropies are summed over them.
 *
 * @example
 * const normal = new distributions.Independent(new distributions.Normal(zeros([3]), 1), 1);
 * normal.logProb(zeros([3])); // float32 -2.756816
 *
 * @throws {ShapeError} if the batch has fewer axes.
 */
export class Independent extends Distribution {
  readonly base: Distribution;
  readonly reinterpretedBatchNdims: number;

  constructor(
    base: Distribution,
    ...options: [reinterpretedBatchNdims: number, options?: DistributionOptions] | [parameters: IndependentParameters]
  );
  constructor(...values: unknown[]) {
    const { base, reinterpretedBatchNdims: count } = independentParameters(values);
    const split = base.batchShape.length - count;
    if (split < 0)
      throw new ShapeError(
        "Independent",
        "invalidShape",
        `expected reinterpretedBatchNdims to be at most ${base.batchShape.length}, the axes of the batch, got ${count}`,
      );
    super(base, base.batchShape.slice(0, split), [...base.batchShape.slice(split), ...base.eventShape]);
    [this.base, this.reinterpretedBatchNdims] = [base, count];
  }

  override get hasRsample(): boolean {
    return this.base.hasRsample;
  }
  override get mean(): Tensor {
    return this.base.mean;
  }
  override get variance(): Tensor {
    return this.base.variance;
  }
  override get mode(): Tensor {
    return this.base.mode;
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    return drawFrom(this.base, shape, generator);
  }
  protected override density(value: Tensor): Tensor {
    return sumLast(this.base.logProb(value), this.reinterpretedBatchNdims);
  }
  protected override uncertainty(): Tensor {
    const entropy = expand(this.base.entropy(), this.base.batchShape);
    return sumLast(entropy, this.reinterpretedBatchNdims);
  }
}

const mixtureParameters = parameters("MixtureSameFamily", {
  mixture: operand(instanceOf(Categorical, "a Categorical")),
  components: operand(aDistribution),
  ...commonOptions,
});

/**
 * A mixture of the distributions along the last batch axis of `components`, with the probabilities of `mixture`.
 *
 * @example
 * const mixture = new distributions.MixtureSameFamily(
 *   new distributions.Categorical(tensor([0.25, 0.75])),
 *   new distributions.Normal(tensor([-1, 1]), 1),
 * );
 * mixture.mean; // float32 0.5
 *
 * @throws {ShapeError} if the size of the last batch axis of `components` is not the number of categories.
 */
export class MixtureSameFamily extends Distribution {
  readonly mixture: Categorical;
  readonly components: Distribution;

  constructor(mixture: Categorical, components: Distribution, options?: DistributionOptions);
  constructor(...values: unknown[]) {
    const { mixture, components } = mixtureParameters(values);
    const count = mixture.probs.shape.at(-1);
    const batch = components.batchShape.slice(0, -1);
    const fits = mixture.batchShape.length === 0 || sameShape(mixture.batchShape, batch);
    if (components.batchShape.at(-1) !== count || !fits)
      throw new ShapeError(
        "MixtureSameFamily",
        "invalidShape",
        `expected components of batch shape [..., ${count}], as the categories of mixture, got ` +
          `[${components.batchShape.join(", ")}]`,
      );
    super(components, batch, components.eventShape);
    [this.mixture, this.components] = [mixture, components];
  }

  override get mean(): Tensor {
    return this.weighted(this.components.mean);
  }
  /** The mean of the variances, and the variance of the means. */
  override get variance(): Tensor {
    const means = this.components.mean;
    const mean = unsqueeze(this.weighted(means), this.axis);
    return add(this.weighted(this.components.variance), this.weighted(square(sub(means, mean))));
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const events = this.eventShape.length;
    const outer = shape.slice(0, shape.length - events);
    const samples = outer.slice(0, outer.length - this.batchShape.length);
    const all = drawFrom(this.components, [...samples, ...this.components.batchShape, ...this.eventShape], generator);
    const drawn = this.mixture.batchShape.length === 0 ? outer : samples;
    const chosen = this.mixture.sample(drawn, optionsOf(generator));
    const index = reshape(chosen, [...outer, 1, ...this.eventShape.map(() => 1)]);
    const whole = expand(index, [...outer, 1, ...this.eventShape]);
    return reshape(gather(all, this.axis, toDType(whole.contiguous(), "int64")), [...shape]);
  }
  protected override density(value: Tensor): Tensor {
    const densities = this.components.logProb(unsqueeze(value, this.axis));
    return logsumexp(add(densities, this.mixture.logits), -1);
  }
  protected override cumulative(value: Tensor): Tensor {
    return sumLast(mul(this.components.cdf(unsqueeze(value, -1)), this.mixture.probs));
  }

  private get axis(): number {
    return -1 - this.eventShape.length;
  }
  private weighted(x: Tensor): Tensor {
    const { probs } = this.mixture;
    const weights = reshape(probs, [...probs.shape, ...this.eventShape.map(() => 1)]);
    return sum(mul(x, weights), this.axis);
  }
}

const aTransform: Kind<Transform> = instanceOf(Transform, "a Transform");
const severalTransforms = listOf(aTransform, "a transform or a list of transforms");
const transformList: Kind<readonly Transform[]> = {
  expected: severalTransforms.expected,
  parse(value, operation, name) {
    const one = aTransform.parse(value, operation, name);
    return one ? [one] : severalTransforms.parse(value, operation, name);
  },
};
const transformedParameters = parameters("TransformedDistribution", {
  base: operand(aDistribution),
  transforms: operand(transformList),
  ...commonOptions,
});

/** The number of axes that a chain of transforms computes together. */
function chainDims(transforms: readonly Transform[]): { readonly domain: number; readonly codomain: number } {
  let domain = transforms.at(-1)?.codomainDims ?? 0;
  for (const own of transforms.toReversed())
    domain = Math.max(domain + own.domainDims - own.codomainDims, own.domainDims);
  let codomain = transforms[0]?.domainDims ?? 0;
  for (const own of transforms) codomain = Math.max(codomain + own.codomainDims - own.domainDims, own.codomainDims);
  return { domain, codomain };
}

/**
 * The distribution of the values of `base` after transforms, in their order.
 *
 * @example
 * const base = new distributions.Normal(0, 1);
 * const logNormal = new distributions.TransformedDistribution(base, [new distributions.ExpTransform()]);
 * logNormal.logProb(1); // float32 -0.918939
 *
 * @throws {ShapeError} if a transform does not fit the shape of `base`.
 */
export class TransformedDistribution extends Distribution {
  readonly base: Distribution;
  readonly transforms: readonly Transform[];

  constructor(base: Distribution, transforms: Transform | readonly Transform[], options?: DistributionOptions);
  constructor(...values: unknown[]) {
    const { base: given, transforms } = transformedParameters(values);
    const { domain, codomain } = chainDims(transforms);
    const more = domain - given.eventShape.length;
    const base = more > 0 ? new Independent(given, more) : given;
    let shape: Shape = [...base.batchShape, ...base.eventShape];
    for (const own of transforms) shape = own.forwardShape(shape);
    const events = codomain + Math.max(base.eventShape.length - domain, 0);
    super(base, shape.slice(0, shape.length - events), shape.slice(shape.length - events));
    [this.base, this.transforms] = [base, transforms];
  }

  override get hasRsample(): boolean {
    return this.base.hasRsample;
  }

  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const outer = shape.slice(0, shape.length - this.batchShape.length - this.eventShape.length);
    const start = drawFrom(this.base, [...outer, ...this.base.batchShape, ...this.base.eventShape], generator);
    const value = this.transforms.reduce((x, own) => own.forward(x), start);
    if (sameShape(value.shape, shape)) return value;
    throw new ShapeError(
      "TransformedDistribution",
      "invalidShape",
      `a transform changed the shape of samples from [${shape.join(", ")}] to [${value.shape.join(", ")}]; give the ` +
        "base distribution the whole batch shape",
    );
  }
  protected override density(value: Tensor): Tensor {
    let events = this.eventShape.length;
    let total: Tensor | undefined;
    let y = value;
    for (const own of this.transforms.toReversed()) {
      const x = own.inverse(y);
      events += own.domainDims - own.codomainDims;
      const part = sumLast(own.logAbsDetJacobian(x, y), events - own.domainDims);
      total = total === undefined ? part : add(total, part);
      y = x;
    }
    const density = sumLast(this.base.logProb(y), events - this.base.eventShape.length);
    return total === undefined ? density : sub(density, total);
  }
  protected override cumulative(value: Tensor): Tensor {
    const x = this.transforms.toReversed().reduce((y, own) => own.inverse(y), value);
    return this.mirrored("cdf", this.base.cdf(x));
  }
  protected override quantile(p: Tensor): Tensor {
    const start = this.base.icdf(this.mirrored("icdf", p));
    return this.transforms.reduce((x, own) => own.forward(x), start);
  }

  /** 1 − p where the transforms are decreasing. */
  private mirrored(method: string, p: Tensor): Tensor {
    let product = 1 as Value;
    for (const { sign } of this.transforms) {
      if (sign === undefined || this.eventShape.length > 0) return this.missing(method);
      product = product instanceof Tensor || sign instanceof Tensor ? mul(product, sign) : product * sign;
    }
    if (!(product instanceof Tensor)) return product < 0 ? sub(1, p) : p;
    return where(lt(product, 0), sub(1, p), p);
  }
}
