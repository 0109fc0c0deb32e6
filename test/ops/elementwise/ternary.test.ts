/** Operations on three operands, and in-place ones, on every backend. */

import { softplus } from "../../../src/ops/activation/softplus.ts";
import { clamp } from "../../../src/ops/elementwise/clamp.ts";
import { lerp } from "../../../src/ops/elementwise/lerp.ts";
import { type NanToNumOptions, nanToNum } from "../../../src/ops/elementwise/nan_to_num.ts";
import { where } from "../../../src/ops/elementwise/where.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { testTable } from "../run.ts";
import type { OperandSpec, Values } from "../samples.ts";
import type { OperationRow, Sample } from "../table.ts";
import { broadcasts, floats, integers, mapped, sampleOf, specials, unarySamples, withValues } from "./oracle.ts";

/** The pairs of shapes, with a third one that broadcasts too. */
const triples = (first: Partial<OperandSpec>, ...values: readonly (Values | undefined)[]): Sample[] =>
  broadcasts.map(([a, b], index) => {
    const third = index % 2 === 0 ? { shape: [] } : b;
    return {
      inputs: [{ ...a, ...first }, withValues(b, values[0]), withValues(third, values[1])],
      options: undefined,
    };
  });

const bounds = (x: number, least: number, most: number) =>
  [x, least, most].some(Number.isNaN) ? Number.NaN : Math.min(Math.max(x, least), most);

const blend = (a: number, b: number, weight: number) => a * (1 - weight) + b * weight;

const soft =
  (beta: number, threshold: number) =>
  (x: number): number =>
    x * beta > threshold ? x : Math.log1p(Math.exp(x * beta)) / beta;

const softplusRow = (beta: number, threshold: number): OperationRow => ({
  name: `softplus(${beta}, ${threshold})`,
  compute: ([x]) => softplus(x, { beta, threshold }),
  dtypes: floats,
  samples: [...unarySamples({ low: -8, high: 8 }), sampleOf("specials", specials)],
  oracle: (blocks) => mapped(blocks, soft(beta, threshold)),
  accuracy: { ulps: 4 },
  gradient: true,
});

const clampRow = (options: { min?: number; max?: number }): OperationRow => ({
  name: `clamp ${JSON.stringify(options)}`,
  compute: ([x]) => clamp(x, options),
  dtypes: [...floats, ...integers.filter((dtype) => !dtype.startsWith("u"))],
  samples: [...unarySamples(), sampleOf("specials", specials)],
  oracle: (blocks) => mapped(blocks, (x) => bounds(x, options.min ?? -1 / 0, options.max ?? 1 / 0)),
  accuracy: { ulps: 0.1 },
  gradient: true,
});

const largest: Readonly<Partial<Record<DType, number>>> = {
  float64: Number.MAX_VALUE,
  float32: (2 - 2 ** -23) * 2 ** 127,
  float16: 65504,
  bfloat16: (2 - 2 ** -7) * 2 ** 127,
};

const nanToNumRow = ({ nan = 0, posinf, neginf }: NanToNumOptions): OperationRow => ({
  name: `nanToNum ${[nan, posinf, neginf]}`,
  compute: ([x]) => nanToNum(x, { nan, posinf, neginf }),
  dtypes: floats,
  samples: [...unarySamples(), sampleOf("specials", specials)],
  oracle: (blocks) =>
    mapped(blocks, (x) => {
      if (Number.isNaN(x)) return nan;
      const most = largest[blocks[0]!.dtype]!;
      return x === 1 / 0 ? (posinf ?? most) : x === -1 / 0 ? (neginf ?? -most) : x;
    }),
  accuracy: { ulps: 0 },
  gradient: true,
});

testTable("ternary", [
  nanToNumRow({}),
  nanToNumRow({ nan: 3 }),
  nanToNumRow({ nan: Number.POSITIVE_INFINITY }),
  nanToNumRow({ nan: -1, posinf: 8, neginf: -4 }),
  nanToNumRow({ neginf: 2 }),
  {
    name: "where",
    compute: ([condition, a, b]) => where(condition, a, b),
    dtypes: [...floats, ...integers, "bool"],
    samples: triples({ dtype: "bool" }),
    oracle: (blocks) => ({
      ...mapped(blocks, (condition, a, b) => (condition ? a : b)),
      dtype: blocks[1].dtype,
    }),
    accuracy: { ulps: 0 },
    elementwise: true,
    gradient: true,
  },
  {
    name: "clamp",
    compute: ([x, min, max]) => clamp(x, { min: min, max: max }),
    dtypes: [...floats, ...integers],
    samples: triples({}),
    oracle: (blocks) => mapped(blocks, (x, least, most) => bounds(x, least, most)),
    accuracy: { ulps: 0 },
    elementwise: true,
    gradient: true,
  },
  clampRow({ min: -1 }),
  clampRow({ max: 1 }),
  clampRow({ min: -1, max: 2 }),
  clampRow({ min: 1, max: -1 }),
  {
    name: "lerp",
    compute: ([a, b, weight]) => lerp(a, b, weight),
    dtypes: floats,
    // Both ends have the same sign, so that nothing cancels.
    samples: triples({ values: { low: 1, high: 2 } }, { low: 1, high: 4 }, { low: 0, high: 1 }),
    oracle: (blocks) => mapped(blocks, blend as (...values: number[]) => number),
    accuracy: { ulps: 4 },
    elementwise: true,
    gradient: true,
  },
  softplusRow(1, 20),
  softplusRow(0.25, 20),
  softplusRow(2, 3),
]);
