/**
 * The numbers of noise schedules. `diffusers` computes them with NumPy and PyTorch, partly in float32. This file rounds
 * at the same steps, so that results agree.
 */

/** Rounds to the nearest integer, ties to even, as NumPy does. */
export function roundEven(x: number): number {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}

/** Returns `count` numbers from `start` to `end`, both included. */
export const linspace = (start: number, end: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) =>
    at === count - 1 && at > 0 ? end : start + at * ((end - start) / Math.max(1, count - 1)),
  );

/** As `torch.linspace` in float32, which counts the second half from the end. */
function linspace32(start: number, end: number, count: number): number[] {
  const [first, last] = [Math.fround(start), Math.fround(end)];
  const step = count > 1 ? Math.fround(Math.fround(last - first) / (count - 1)) : 0;
  return Array.from({ length: count }, (_, at) =>
    Math.fround(at < count / 2 ? first + step * at : last - step * (count - 1 - at)),
  );
}

/** Names of schedules of β. */
export const betaSchedules = ["linear", "scaledLinear", "squaredCosine"] as const;
/** How the variance of the noise grows over the training steps. */
export type BetaSchedule = (typeof betaSchedules)[number];

/** Returns the variance β of the noise that each training step adds. */
export function betasOf(schedule: BetaSchedule, start: number, end: number, count: number): number[] {
  if (schedule === "linear") return linspace32(start, end, count);
  if (schedule === "scaledLinear")
    return linspace32(Math.sqrt(start), Math.sqrt(end), count).map((root) => Math.fround(root * root));
  // A. Nichol and P. Dhariwal, "Improved Denoising Diffusion Probabilistic Models", 2021, equation 17
  const alphaBar = (t: number) => Math.cos((((t + 0.008) / 1.008) * Math.PI) / 2) ** 2;
  return Array.from({ length: count }, (_, at) =>
    Math.fround(Math.min(1 - alphaBar((at + 1) / count) / alphaBar(at / count), 0.999)),
  );
}

/** Computes ᾱₜ = Π (1 − βₛ) over s ≤ t. */
export function cumulativeAlphas(betas: readonly number[]): number[] {
  let product = 1;
  return betas.map((beta) => {
    product *= Math.fround(1 - beta);
    return Math.fround(product);
  });
}

/** Names of the ways to choose timesteps. */
export const timestepSpacings = ["leading", "trailing", "linspace"] as const;
/** How a sampler chooses its timesteps among the training steps. */
export type TimestepSpacing = (typeof timestepSpacings)[number];

interface Spaced {
  readonly trainSteps: number;
  readonly timestepSpacing: TimestepSpacing;
  readonly stepsOffset: number;
}

/**
 * Returns `count` timesteps, the noisiest first. With `"linspace"`, they may be fractions.
 *
 * Source: S. Lin et al., "Common Diffusion Noise Schedules and Sample Steps are Flawed", 2023, table 2.
 */
export function timestepsOf({ trainSteps, timestepSpacing, stepsOffset }: Spaced, count: number): number[] {
  if (timestepSpacing === "linspace") return linspace(0, trainSteps - 1, count).reverse();
  if (timestepSpacing === "trailing") return trailing(trainSteps, trainSteps, count);
  const ratio = Math.floor(trainSteps / count);
  return Array.from({ length: count }, (_, at) => (count - 1 - at) * ratio + stepsOffset);
}

/** Returns the timesteps of DPM-Solver, which leaves out the last of `count + 1`. */
export function solverTimestepsOf({ trainSteps, timestepSpacing, stepsOffset }: Spaced, count: number): number[] {
  if (timestepSpacing === "trailing") return trailing(trainSteps, trainSteps, count);
  if (timestepSpacing === "linspace")
    return linspace(0, trainSteps - 1, count + 1)
      .map(roundEven)
      .reverse()
      .slice(0, -1);
  const ratio = Math.floor(trainSteps / (count + 1));
  return Array.from({ length: count }, (_, at) => (count - at) * ratio + stepsOffset);
}

function trailing(last: number, trainSteps: number, count: number): number[] {
  const ratio = trainSteps / count;
  const delta = last - ratio - last;
  return Array.from({ length: Math.ceil(last / ratio) }, (_, at) => roundEven(last + at * delta) - 1);
}

/** Computes σₜ = √((1 − ᾱₜ) / ᾱₜ): the deviation of the noise relative to the data. */
export const sigmasOf = (alphas: readonly number[]): number[] =>
  alphas.map((alpha) => Math.fround(Math.sqrt(Math.fround(Math.fround(1 - alpha) / alpha))));

/** Interpolates linearly between values at 0, 1, …. */
export function interpolated(values: readonly number[], at: number): number {
  const low = Math.max(0, Math.min(Math.floor(at), values.length - 1));
  const high = Math.min(low + 1, values.length - 1);
  return values[low] + (values[high] - values[low]) * Math.max(0, Math.min(at - low, 1));
}

/**
 * Returns `count` deviations from `largest` to `smallest`, equally spaced in σ^(1/7).
 *
 * Source: T. Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models", 2022, equation 5.
 */
export function karrasSigmas(smallest: number, largest: number, count: number): number[] {
  const rho = 7;
  return linspace(0, 1, count).map(
    (ramp) => (largest ** (1 / rho) + ramp * (smallest ** (1 / rho) - largest ** (1 / rho))) ** rho,
  );
}

/** Returns the timestep with a deviation, interpolated in ln σ. */
export function timestepAt(sigma: number, sigmas: readonly number[]): number {
  const log = Math.log(Math.max(sigma, 1e-10));
  const logs = sigmas.map((each) => Math.fround(Math.log(each)));
  const low = Math.max(
    0,
    Math.min(
      logs.findLastIndex((each) => log >= each),
      logs.length - 2,
    ),
  );
  const share = (logs[low] - log) / (logs[low] - logs[low + 1]);
  return low + Math.max(0, Math.min(share, 1));
}
