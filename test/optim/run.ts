/** Shared by the tests of optimizers: running on a backend without fallbacks, optimizers by name, comparing. */
import { expect } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { optim, type Tensor, tensor } from "../../src/index.ts";
import type { FloatDType } from "../../src/tensor/dtype.ts";
import { checkFindings, tested } from "../ops/run.ts";
import { Random, rounder } from "../ops/samples.ts";
import { compare } from "../ops/tolerance.ts";

export { tested };

/** Runs a body without fallbacks; on metal under the checker. */
export function on<Result>(backend: BackendName, body: () => Result): Result {
  if (backend !== "metal") return withStrict(true, () => withBackend(backend, body));
  metalContext().configure("check", true);
  const result = withStrict(true, () => withBackend(backend, body));
  metalContext().wait();
  checkFindings({ name: "optimizer" });
  return result;
}

/** The optimizers with a step that takes no closure. */
export type OptimizerName =
  | ("AdamW" | "Adam" | "SGD" | "Lion" | "Muon" | "RMSprop" | "Adagrad" | "Adadelta" | "Adamax" | "NAdam" | "RAdam")
  | ("Adafactor" | "ASGD" | "Rprop");

/** An optimizer by its name. TypeScript takes seconds to unite the constructors' types, so one type stands for all. */
export const make = (name: OptimizerName, parameters: readonly Tensor[], options: object = {}): optim.AdamW =>
  new ((optim as Record<string, unknown>)[name] as typeof optim.AdamW)(parameters, options);

/** A parameter with these values. */
export const parameterOf = (
  values: readonly number[],
  dtype: FloatDType = "float32",
  shape = [values.length],
): Tensor => tensor(Float64Array.from(values), { dtype, shape, requiresGrad: true });

/** Numbers between -1 and 1 that a dtype represents exactly. */
export function draw(count: number, seed: number, dtype: FloatDType = "float32"): number[] {
  const [random, round] = [new Random(seed), rounder(dtype)];
  return Array.from({ length: count }, () => round(random.next() * 2 - 1));
}

export const valuesOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>);

/** Returns the bits of all tensors, for exact comparisons. */
export const bitsOf = (tensors: readonly Tensor[]): string =>
  tensors.map((x) => Buffer.from((x.dataSync() as Float32Array).buffer.slice(0)).toString("hex")).join(" ");

/** Roundings of an element in a step. */
const ROUNDINGS = 3;

/**
 * Checks results by FlashAttention's rule: at most twice the error of the plain computation, plus a rounding; or the
 * error that independent roundings of this many steps may have.
 */
export function expectClose(
  label: string,
  x: Tensor,
  exact: ArrayLike<number>,
  plain: ArrayLike<number>,
  steps: number,
): void {
  const [want, low] = [Array.from(exact), Array.from(plain)];
  const scale = want.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const roundings = want.map(() => 2 * Math.sqrt(ROUNDINGS * steps) * scale);
  const wrong = compare(x.dtype, valuesOf(x), want, low, { flash: true }, 2, roundings);
  expect(wrong && { label, ...wrong }).toBeUndefined();
}
