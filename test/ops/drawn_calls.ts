/** Drawn tensors, and comparisons with formulas in float64, for tests of operations in one native call. */
import { expect, test } from "bun:test";
import * as o from "../../src/index.ts";
import { type DType, type Tensor, tensor, toDType, withBackend, withStrict } from "../../src/index.ts";
import { elementCount } from "../../src/tensor/shape.ts";
import { repeats } from "../support/repeats.ts";
import { Random } from "./samples.ts";

const rounds = repeats({ usual: 24, all: 400 });
const bounds = { float64: 2 ** -40, float32: 2 ** -17, float16: 2 ** -8, bfloat16: 2 ** -5 } as const;
export type Float = keyof typeof bounds;
export const floats = Object.keys(bounds) as Float[];
export const wideFloats = ["float64", "float32"] as const;

export const numbers = (x: Tensor): number[] => Array.from(toDType(x.detach(), "float64").dataSync() as Float64Array);
export const total = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0);
export const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
export const rowsOf = (values: readonly number[], width: number): number[][] =>
  Array.from({ length: values.length / width }, (_, row) => values.slice(row * width, (row + 1) * width));

export function expectNear(found: Tensor, expected: readonly number[], dtype: Float, what: string): void {
  const got = numbers(found);
  expect([what, got.length]).toEqual([what, expected.length]);
  for (const [at, value] of expected.entries()) {
    const isNear =
      Object.is(got[at], value) || Math.abs(got[at] - value) <= bounds[dtype] * Math.max(1, Math.abs(value));
    const isRight = Number.isNaN(value) ? Number.isNaN(got[at]) : isNear;
    if (!isRight) expect([what, dtype, at, got[at]]).toEqual([what, dtype, at, value]);
  }
}

/** Runs drawn calls on cpu in strict mode, so that the native call must succeed. */
export const onCpu = (name: string, body: (round: number) => void): void =>
  test(name, () =>
    withBackend("cpu", () =>
      withStrict(true, () => {
        for (let round = 0; round < rounds; round++) body(round);
      }),
    ),
  );

/** Draws from one seed. */
export function draws(seed: number) {
  const random = new Random(seed);
  /** Draws a tensor, every other time with transposed memory. */
  const drawn = (shape: readonly number[], dtype: DType, values = () => random.next() * 4 - 2): Tensor => {
    const list = Float64Array.from({ length: elementCount(shape) }, values);
    const x = toDType(tensor(list, { shape }), dtype) as Tensor;
    if (shape.length < 2 || random.next() < 0.5) return x;
    return o.transpose(o.transpose(x, 0, -1).contiguous(), 0, -1);
  };
  return {
    random,
    drawn,
    pick: <T>(choices: readonly T[]): T => choices[random.integer(0, choices.length - 1)]!,
    /** A size from 1 on, whose logarithm is uniform. */
    sized: (most: number): number => Math.round((most + 0.49) ** random.next()),
  };
}
