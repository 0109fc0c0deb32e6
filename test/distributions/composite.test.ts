/** Independent axes, mixtures, transforms, and the errors of distributions. */
import { describe, expect, test } from "bun:test";
import {
  ArgumentError,
  distributions,
  eye,
  Generator,
  grad,
  linalg,
  ShapeError,
  sum,
  type Tensor,
  tensor,
  zeros,
} from "../../src/index.ts";

const d = distributions;
const generator = new Generator(3);
const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);
const normals = (...shape: number[]): Tensor =>
  new d.Normal(zeros(shape, { dtype: "float64" }), 1).sample([], { generator }) as Tensor;
const positives = (...shape: number[]): Tensor => normals(...shape).exp() as Tensor;

function expectClose(found: Tensor, expected: Tensor, most = 1e-10): void {
  expect(found.shape).toEqual(expected.shape);
  const wanted = numbersOf(expected);
  for (const [at, x] of numbersOf(found).entries())
    expect(Math.abs(x - wanted[at])).toBeLessThan(most * Math.max(1, Math.abs(wanted[at])));
}

test("Independent sums densities and entropies over its axes", () => {
  const base = new d.Normal(normals(2, 3, 4), positives(4));
  const of = new d.Independent(base, 2);
  expect([of.batchShape, of.eventShape]).toEqual([[2], [3, 4]]);
  const value = of.sample([5], { generator });
  expect(value.shape).toEqual([5, 2, 3, 4]);
  expectClose(of.logProb(value), base.logProb(value).sum([-1, -2]));
  expectClose(of.entropy(), base.entropy().sum([-1, -2]));
  const other = new d.Independent(new d.Normal(normals(4), 2), 0);
  expectClose(d.klDivergence(new d.Independent(base, 0), other), d.klDivergence(base, other.base));
});

describe("a mixture combines its parts", () => {
  const weights = positives(3);
  const [loc, scale] = [normals(2, 3), positives(3)];
  const of = new d.MixtureSameFamily(new d.Categorical(weights), new d.Normal(loc, scale));
  const share = weights.div(weights.sum());

  test("a mixture has the weighted density, distribution function and moments", () => {
    const value = normals(4, 2);
    const parts = new d.Normal(loc, scale).logProb(value.unsqueeze(-1)).exp();
    expectClose(of.logProb(value), parts.mul(share).sum(-1).log());
    expectClose(of.cdf(value), new d.Normal(loc, scale).cdf(value.unsqueeze(-1)).mul(share).sum(-1));
    expectClose(of.mean, loc.mul(share).sum(-1));
    const second = loc.square().add(scale.square()).mul(share).sum(-1);
    expectClose(of.variance, second.sub(of.mean.square()));
  });

  test("samples of a mixture have its moments, also for vectors", () => {
    const x = of.sample([20_000], { generator });
    expectClose(x.mean(0), of.mean, 0.1);
    expectClose(x.variance(0), of.variance, 0.1);
    const vectors = new d.Independent(new d.Normal(normals(3, 2), 0.5), 1);
    const mixture = new d.MixtureSameFamily(new d.Categorical(weights), vectors);
    const drawn = mixture.sample([20_000], { generator });
    expect(drawn.shape).toEqual([20_000, 2]);
    expectClose(drawn.mean(0), mixture.mean, 0.1);
    expect(mixture.logProb(drawn).shape).toEqual([20_000]);
  });
});

const transforms: Readonly<Record<string, readonly [distributions.Transform, () => Tensor]>> = {
  exp: [new d.ExpTransform(), () => normals(5)],
  affine: [new d.AffineTransform(2, tensor([-3, 0.5, 1, 2, -1], { dtype: "float64" })), () => normals(5)],
  sigmoid: [new d.SigmoidTransform(), () => normals(5)],
  tanh: [new d.TanhTransform(), () => normals(5)],
  power: [new d.PowerTransform(-1.5), () => positives(5)],
  "stick breaking": [new d.StickBreakingTransform(), () => normals(5)],
  "lower Cholesky": [new d.LowerCholeskyTransform(), () => normals(3, 3).tril()],
};

/** The matrix of derivatives, by one backward pass for each element of the result. */
function jacobian(transform: distributions.Transform, x: Tensor): Tensor {
  const leaf = x.detach().clone();
  leaf.requiresGrad = true;
  const count = transform.forward(leaf).size;
  const rows = Array.from({ length: count }, (_, at) => {
    const y = transform.forward(leaf).reshape([count]);
    return numbersOf((grad(y.select(0, at), [leaf]) as Tensor[])[0]);
  });
  return tensor(rows, { dtype: "float64" });
}

describe("transforms of distributions have an inverse", () => {
  test.each(Object.entries(transforms))("%s has its inverse and Jacobian", (name, [transform, draw]) => {
    const x = draw();
    const y = transform.forward(x);
    expectClose(transform.inverse(y), x, 1e-9);
    const matrix = jacobian(transform, x);
    const determinant = transform.logAbsDetJacobian(x, y);
    if (transform.domainDims === 0) return expectClose(determinant, linalg.diagonal(matrix).abs().log(), 1e-9);
    // n + 1 parts that add up to 1 have n degrees of freedom; a triangular matrix has its elements on and below the
    // diagonal.
    const kept = name === "stick breaking" ? [0, 1, 2, 3, 4] : [0, 3, 4, 6, 7, 8];
    const square = numbersOf(matrix).filter(
      (_, at) => kept.includes(Math.floor(at / matrix.shape[1])) && kept.includes(at % matrix.shape[1]),
    );
    const sized = tensor(square, { dtype: "float64" }).reshape([kept.length, kept.length]);
    return expectClose(determinant, linalg.slogdet(sized).logabsdet, 1e-9);
  });

  test("a transformed normal distribution is the log-normal one", () => {
    const [loc, scale] = [normals(3), positives(3)];
    const of = new d.TransformedDistribution(new d.Normal(0, 1), []);
    expect(of.batchShape).toEqual([]);
    const base = new d.Normal(zeros([3], { dtype: "float64" }), 1);
    const chain = [new d.AffineTransform(loc, scale), new d.ExpTransform()];
    const transformed = new d.TransformedDistribution(base, chain);
    const exact = new d.LogNormal(loc, scale);
    const value = exact.sample([4], { generator });
    expectClose(transformed.logProb(value), exact.logProb(value));
    expectClose(transformed.cdf(value), exact.cdf(value));
    expectClose(transformed.icdf(0.3), exact.icdf(0.3));
    const falling = new d.TransformedDistribution(base, new d.AffineTransform(0, -1));
    expectClose(falling.cdf(value), base.cdf(value));
    const leaf = zeros([3], { dtype: "float64", requiresGrad: true });
    const drawn = new d.TransformedDistribution(base, new d.AffineTransform(leaf, 1)).rsample([4], { generator });
    expectClose((grad(sum(drawn), [leaf]) as Tensor[])[0], tensor([4, 4, 4], { dtype: "float64" }));
  });

  test("stick breaking makes the last axis an event", () => {
    const base = new d.Normal(zeros([2, 3]), 1);
    const of = new d.TransformedDistribution(base, new d.StickBreakingTransform());
    expect([of.batchShape, of.eventShape]).toEqual([[2], [4]]);
    const x = of.sample([5], { generator });
    expect([x.shape, of.logProb(x).shape]).toEqual([
      [5, 2, 4],
      [5, 2],
    ]);
  });
});

describe("outside of the support the density is 0", () => {
  const zero = tensor([-1]);
  test.each([
    ["Exponential", new d.Exponential(1), zero],
    ["Gamma", new d.Gamma(1, 1), zero],
    ["Beta", new d.Beta(1, 1), tensor([1.5])],
    ["Uniform", new d.Uniform(0, 1), tensor([1])],
    ["Poisson", new d.Poisson(1), tensor([0.5])],
    ["Binomial", new d.Binomial(3, 0.5), tensor([4])],
    ["Bernoulli", new d.Bernoulli(0.5), tensor([2])],
    ["Categorical", new d.Categorical(tensor([1, 1])), tensor([2])],
    ["Multinomial", new d.Multinomial(2, tensor([1, 1])), tensor([[1, 2]])],
    ["OneHotCategorical", new d.OneHotCategorical(tensor([1, 1])), tensor([[1, 1]])],
  ])("%s has density 0 outside of its support", (_, of, value) =>
    expect(numbersOf(of.logProb(value))).toEqual([Number.NEGATIVE_INFINITY]),
  );

  test("NaN stays NaN", () => expect(numbersOf(new d.Exponential(1).logProb(Number.NaN))).toEqual([Number.NaN]));
});

describe("invalid arguments are errors", () => {
  const pair = new d.Categorical(tensor([1, 1]));
  test.each([
    ["a scale of 0", () => new d.Normal(0, 0), ArgumentError, "invalidValue"],
    ["a probability of 2", () => new d.Bernoulli(2), ArgumentError, "invalidValue"],
    ["low above high", () => new d.Uniform(1, 0), ArgumentError, "invalidValue"],
    ["NaN", () => new d.Poisson(Number.NaN), ArgumentError, "invalidValue"],
    ["probs and logits", () => new d.Bernoulli({ probs: 0.5, logits: 0 }), ArgumentError, "invalidArgument"],
    ["neither", () => new d.Geometric({}), ArgumentError, "invalidArgument"],
    ["no matrix", () => new d.MultivariateNormal({ loc: zeros([2]) }), ArgumentError, "invalidArgument"],
    ["few degrees of freedom", () => new d.Wishart(1, { scaleTril: eye(2) }), ArgumentError, "invalidValue"],
    ["no vector", () => new d.Dirichlet(tensor(1)), ShapeError, "invalidShape"],
    ["shapes that do not fit", () => new d.Normal(zeros([2]), zeros([3]).add(1)), ShapeError, "shapesDiffer"],
    ["too many axes", () => new d.Independent(new d.Normal(0, 1), 1), ShapeError, "invalidShape"],
    ["other components", () => new d.MixtureSameFamily(pair, new d.Normal(zeros([3]), 1)), ShapeError, "invalidShape"],
    ["rsample of counts", () => new d.Poisson(1).rsample(), ArgumentError, "notSupported"],
    ["a missing method", () => new d.Beta(1, 1).cdf(0.5), ArgumentError, "notSupported"],
    ["an unknown pair", () => d.klDivergence(new d.Poisson(1), new d.Normal(0, 1)), ArgumentError, "notSupported"],
    ["a value of another size", () => new d.Dirichlet(tensor([1, 1])).logProb(zeros([3])), ShapeError, undefined],
    ["an unknown option", () => new d.Normal({ loc: 0, scal: 1 } as never), ArgumentError, "unknownOption"],
  ] as const)("%s is an error", (_, call, Class, code) => {
    expect(call).toThrow(Class);
    if (code !== undefined) expect(call).toThrow(expect.objectContaining({ code }));
  });

  test("values are not checked without validateArgs", () => {
    expect(new d.Normal(0, -1, { validateArgs: false }).batchShape).toEqual([]);
  });
});
