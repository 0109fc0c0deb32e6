/**
 * Measures at which sizes unfused attention is faster: times forward and backward, alternating between fused and
 * unfused, over a grid of sizes.
 */

import type { BackendName } from "../../backend/names.ts";
import { withBackend } from "../../backend/policy.ts";
import { whyUnavailable } from "../../backend/registry.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { grad } from "../gradient/backward.ts";
import { randn } from "../random/randn.ts";
import {
  type Crossovers,
  type CrossoverTable,
  type DTypeClass,
  defaultScoresShare,
  dimClasses,
  dtypeClassOf,
} from "./crossover.ts";
import { flashAttention } from "./flash_attention.ts";

/** Sizes and sample counts of a measurement. */
export interface TuneGrid {
  /** Sequence lengths (queries = keys), ascending. */
  readonly lengths: readonly number[];
  /** The most samples of each path; fewer if they take long. */
  readonly rounds: number;
  /** Time budget of a size in milliseconds. Sampling stops after it, but not before {@link fewestRounds}. */
  readonly milliseconds: number;
}

export const fullGrid: TuneGrid = { lengths: [8, 16, 32, 64, 128, 256], rounds: 101, milliseconds: 250 };
export const quickGrid: TuneGrid = { lengths: [8, 32, 128], rounds: 25, milliseconds: 25 };

const fewestRounds = 7;

/** One size, measured fused and unfused. */
export interface Measurement {
  readonly length: number;
  /** Medians, in milliseconds. */
  readonly fused: number;
  readonly unfused: number;
  /**
   * First quartile of fused time / unfused time over the rounds: above 1, unfused is faster in at least three rounds of
   * four.
   */
  readonly speedup: number;
}

/** Progress report after a class of calls is measured. */
export interface TuneStep {
  readonly backend: BackendName;
  readonly dtype: FloatDType;
  readonly dim: number;
  readonly heads: number;
  readonly measured: readonly Measurement[];
  /** Number of finished steps, including this one, out of `steps`. */
  readonly done: number;
  readonly steps: number;
}

/** The head count measured for each of `headClasses`. */
const measuredHeads = [2, 8, 32] as const;

/** The dtypes measured on each backend, one for each of `dtypeClasses` that it supports. */
const measuredDTypes: Readonly<Record<BackendName, readonly FloatDType[]>> = {
  metal: ["float32", "float16"],
  cpu: ["float64", "float32", "bfloat16"],
  reference: [],
};

/** Returns the backends to tune on this machine: Metal on macOS only, not on the software device. */
export const tunedBackends = (): BackendName[] =>
  (process.platform === "darwin" ? (["metal", "cpu"] as const) : (["cpu"] as const)).filter(
    (name) => whyUnavailable(name) === undefined,
  );

/**
 * Measures this machine and returns its crossover table.
 *
 * @param report called after each class of calls
 * @example
 * writeTable(path, tune(["cpu"], quickGrid));
 */
export function tune(
  backends: readonly BackendName[],
  grid: TuneGrid,
  report: (step: TuneStep) => void = () => undefined,
): CrossoverTable {
  const kinds = backends.flatMap((backend) => measuredDTypes[backend].map((dtype) => ({ backend, dtype })));
  const steps = kinds.length * dimClasses.length * measuredHeads.length;
  const pairs: Partial<Record<BackendName, Partial<Record<DTypeClass, Crossovers>>>> = {};
  let done = 0;
  for (const { backend, dtype } of kinds) {
    warmUp(backend, dtype);
    const rows = dimClasses.map((dim) =>
      measuredHeads.map((heads) => {
        const measured = measureClass(backend, dtype, dim, heads, grid);
        done++;
        report({ backend, dtype, dim, heads, measured, done, steps });
        return crossoverFrom(measured);
      }),
    );
    pairs[backend] = { ...pairs[backend], [dtypeClassOf(dtype)]: rows };
  }
  return { pairs, scoresShare: defaultScoresShare };
}

/** Speedups are clamped to this factor and its inverse, so that one disturbed measurement can't outvote the others. */
const mostSpeedup = 2;

/**
 * Returns the bound on queries · keys that maximizes the sum of log speedups over the lengths up to it; 0 if no bound
 * gains.
 */
export function crossoverFrom(measured: readonly Pick<Measurement, "length" | "speedup">[]): number {
  let best = { gain: 0, pairs: 0 };
  let gain = 0;
  for (const { length, speedup } of measured) {
    gain += Math.log(Math.min(Math.max(speedup, 1 / mostSpeedup), mostSpeedup));
    if (gain > best.gain) best = { gain, pairs: length * length };
  }
  return best.pairs;
}

/**
 * Measuring stops after two lengths in a row at which unfused takes more than this many times as long: longer sequences
 * only favor fused more.
 */
const hopeless = 1.15;

function measureClass(
  backend: BackendName,
  dtype: FloatDType,
  dim: number,
  heads: number,
  grid: TuneGrid,
): Measurement[] {
  const measured: Measurement[] = [];
  for (const length of grid.lengths) {
    measured.push(measure(backend, dtype, [1, heads, length, dim], grid));
    const last = measured.slice(-2);
    if (last.length === 2 && last.every(({ fused, unfused }) => unfused > hopeless * fused)) break;
  }
  return measured;
}

/** Compiles kernels and JavaScript functions before the first measurement. */
function warmUp(backend: BackendName, dtype: FloatDType): void {
  measure(backend, dtype, [1, 1, 8, dimClasses[0]], { rounds: 100, milliseconds: 1000 });
}

type Rounds = Pick<TuneGrid, "rounds" | "milliseconds">;

function measure(backend: BackendName, dtype: FloatDType, shape: readonly number[], rounds: Rounds): Measurement {
  return withBackend(backend, () => {
    const draw = (requiresGrad: boolean): Tensor => randn([...shape], { dtype, requiresGrad });
    const operands = [draw(true), draw(true), draw(true), draw(false)] as const;
    const measured = summaryOf(sample(operands, rounds));
    for (const tensor of operands) tensor.dispose();
    return { length: shape[2], ...measured };
  });
}

/** Returns [fused, unfused] milliseconds of each round, after one warm-up round. */
function sample(operands: Operands, { rounds, milliseconds }: Rounds): [number, number][] {
  const both = (): [number, number] => [timeStep(operands, "fused"), timeStep(operands, "unfused")];
  both();
  const samples: [number, number][] = [];
  const end = performance.now() + milliseconds;
  while (samples.length < rounds && (samples.length < fewestRounds || performance.now() < end)) samples.push(both());
  return samples;
}

const summaryOf = (samples: readonly (readonly [number, number])[]): Omit<Measurement, "length"> => ({
  fused: quantile(
    samples.map(([fused]) => fused),
    1 / 2,
  ),
  unfused: quantile(
    samples.map(([, unfused]) => unfused),
    1 / 2,
  ),
  speedup: quantile(
    samples.map(([fused, unfused]) => fused / unfused),
    1 / 4,
  ),
});

/** q, k, v and the gradient of the output. */
type Operands = readonly [Tensor, Tensor, Tensor, Tensor];

/** Returns the milliseconds of a forward and a backward pass, until the last gradient is computed. */
function timeStep([q, k, v, cotangent]: Operands, path: "fused" | "unfused"): number {
  const started = performance.now();
  const out = flashAttention(q, k, v, { path });
  const gradients = grad(out, [q, k, v], { gradOutputs: [cotangent] });
  for (const gradient of gradients) gradient?.storage.memory.hostBytes(); // waits for a device
  const milliseconds = performance.now() - started;
  for (const result of [out, ...gradients]) result?.dispose();
  return milliseconds;
}

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(share * (values.length - 1))];
