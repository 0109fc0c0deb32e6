// A Gaussian process learns a function from a few noisy values: its scales by gradient descent on the marginal
// likelihood, through the Cholesky factor of the covariance. Writes a plot of the mean with its band.
//
//   bun examples/gaussian_process.ts [process.png]
import {
  cdist,
  eye,
  linalg,
  linspace,
  manualSeed,
  noGrad,
  optim,
  randn,
  type Tensor,
  tensor,
  uniform,
} from "../src/index.ts";
import { draw, type Scale, save } from "./picture.ts";

const [path = "process.png"] = process.argv.slice(2);
const count = 24;
const noise = 0.15;

manualSeed(7);
const truth = (x: Tensor): Tensor => x.sin().add(x.mul(0.4).cos());
// There are no values from 3 to 6, so the band must be wide there.
const inputs = uniform(0, 3, [count])
  .mul(tensor(Array.from({ length: count }, (_, at) => (at % 2 ? 1 : -1))))
  .add(4.5);
const x = inputs.add(inputs.sub(4.5).sign().mul(1.5)).unsqueeze(1);
const y = truth(x).add(randn([count, 1]).mul(noise));

/** The logarithms of length, amplitude and noise, which keep these positive. */
const scales = tensor([0, 0, -1], { requiresGrad: true });

/** σ² exp(−‖a − b‖² / 2ℓ²). */
function covariance(a: Tensor, b: Tensor, [length, amplitude]: readonly Tensor[]): Tensor {
  const distances = cdist(a.div(length), b.div(length));
  return distances.square().mul(-0.5).exp().mul(amplitude.square());
}

/** Returns the Cholesky factor of the covariance of the observations, noise included, and K⁻¹ y. */
function posterior(): { parameters: Tensor[]; factor: Tensor; weights: Tensor } {
  const parameters = scales.exp().unbind(0) as Tensor[];
  const k = covariance(x, x, parameters).add(eye(count).mul(parameters[2].square().add(1e-5)));
  const factor = linalg.cholesky(k);
  const half = linalg.solveTriangular(factor, y, { upper: false });
  return { parameters, factor, weights: linalg.solveTriangular(factor.mT, half, { upper: true }) };
}

/** −log p(y): ½ yᵀ K⁻¹ y + Σ log L[i, i] + ½ n log 2π. */
function loss(): Tensor {
  const { factor, weights } = posterior();
  const fit = y.T.matmul(weights).sum().mul(0.5);
  return fit.add(linalg.diagonal(factor).log().sum()).add(0.5 * count * Math.log(2 * Math.PI));
}

const optimizer = new optim.Adam([scales], { lr: 0.05 });
const before = Number(loss().item());
for (let step = 0; step < 150; step++) {
  optimizer.zeroGrad();
  loss().backward();
  optimizer.step();
}
const [length, amplitude, learned] = Array.from(scales.exp().dataSync() as Float32Array) as [number, number, number];
console.log(`−log p(y): ${before.toFixed(2)} before, ${Number(loss().item()).toFixed(2)} after 150 steps`);
console.log(
  `length ${length.toFixed(2)}, amplitude ${amplitude.toFixed(2)}, noise ${learned.toFixed(3)} (it is ${noise})`,
);

/** Returns the mean and the standard deviation of the function at new points. */
function predict(places: Tensor): { mean: number[]; deviation: number[] } {
  return noGrad(() => {
    const { parameters, factor, weights } = posterior();
    const across = covariance(places, x, parameters);
    const half = linalg.solveTriangular(factor, across.mT, { upper: false });
    const variance = parameters[1].square().sub(half.square().sum(0)).clamp({ min: 0 });
    return {
      mean: Array.from(across.matmul(weights).dataSync() as Float32Array),
      deviation: Array.from(variance.sqrt().dataSync() as Float32Array),
    };
  });
}

const grid = linspace(-0.5, 9.5, 201);
const places = Array.from(grid.dataSync() as Float32Array);
const { mean, deviation } = predict(grid.unsqueeze(1));
const real = Array.from(truth(grid).dataSync() as Float32Array);
const inside = real.filter((value, at) => Math.abs(value - mean[at]) <= 2 * deviation[at] + 1e-3).length;
console.log(`the function is within two standard deviations at ${inside} of ${real.length} places`);

const pathOf = (x: Scale, y: Scale, values: readonly number[], order = places.keys().toArray()): string =>
  `M${order.map((at) => `${x(places[at]).toFixed(1)},${y(values[at]).toFixed(1)}`).join("L")}`;

function marks(across: Scale, up: Scale): string {
  const edge = (sign: number): number[] => mean.map((value, at) => value + sign * 2 * deviation[at]);
  const back = pathOf(across, up, edge(-1), places.keys().toArray().reverse()).slice(1);
  const band = `${pathOf(across, up, edge(1))}L${back}Z`;
  const [xs, ys] = [x, y].map((values) => Array.from(values.dataSync() as Float32Array)) as [number[], number[]];
  const dots = xs.map(
    (value, at) => `<circle cx="${across(value).toFixed(1)}" cy="${up(ys[at]).toFixed(1)}" r="4" fill="#0f172a"/>`,
  );
  return [
    `<path d="${band}" fill="#3b82f6" fill-opacity="0.2"/>`,
    `<path d="${pathOf(across, up, real)}" fill="none" stroke="#ea580c" stroke-width="2" stroke-dasharray="6 5"/>`,
    `<path d="${pathOf(across, up, mean)}" fill="none" stroke="#3b82f6" stroke-width="2.5"/>`,
    ...dots,
  ].join("\n");
}

const svg = draw({
  title: "A Gaussian process: its mean (blue) with two standard deviations, the function (dashed), what was seen",
  x: { title: "x", domain: [-0.5, 9.5] },
  y: { title: "y", domain: [-3, 3] },
  marks,
});
await save(path, svg);
