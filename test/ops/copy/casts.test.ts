/** Casts between all dtypes, in every layout, on every backend; and their gradients. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { clone } from "../../../src/ops/copy/copy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { type DType, dtypes, isFloat } from "../../../src/tensor/dtype.ts";
import { floats, integers, mapped, specials, toEven, unarySamples } from "../elementwise/oracle.ts";
import { testTable } from "../run.ts";
import type { OperationRow, Sample } from "../table.ts";

const everything: readonly DType[] = [...floats, ...integers, "bool"];

/** The nearest number of 8 significant bits, from 2^-126 on. */
function toBfloat16(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return value;
  const unit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), -126) - 7);
  return toEven(value / unit) * unit;
}

const bitsOf: Partial<Record<DType, number>> = { int64: 64, int32: 32, uint32: 32, int8: 8, uint8: 8 };

/** A float is truncated and saturates; an integer wraps around. */
const toInteger =
  (to: DType, from: DType) =>
  (value: number): number => {
    const bits = bitsOf[to]!;
    const isSigned = !to.startsWith("u");
    if (!isFloat(from)) return Number((isSigned ? BigInt.asIntN : BigInt.asUintN)(bits, BigInt(value)));
    const [least, most] = isSigned ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
    return Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), least), most) + 0;
  };

function conversion(to: DType, from: DType): (value: number) => number {
  if (to === "bool") return (value) => Number(value !== 0);
  if (to === "float64") return (value) => value;
  if (to === "float32") return Math.fround;
  if (to === "float16") return (value) => Math.f16round(Math.fround(value));
  return to === "bfloat16" ? (value) => toBfloat16(Math.fround(value)) : toInteger(to, from);
}

const listed = (name: string, list: readonly number[], of: readonly DType[]): Sample => ({
  name,
  inputs: [{ shape: [list.length], values: { list } }],
  options: undefined,
  dtypes: of,
});

const samples: readonly Sample[] = [
  ...unarySamples(),
  listed("wide floats", [...specials, 127.9, -128.9, 300, -300, 65519, 65520, 3e9, -3e9, 1e19, -1e19, 1e-7], floats),
  listed("ties", [1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 1 + 2 ** -24], floats),
  listed("wide integers", [127, 128, 255, 256, -1, -129, 2049, 2051, 65519, 16777217, 2 ** 31 - 1], integers),
];

testTable(
  "casts",
  everything.map(
    (to): OperationRow => ({
      name: `to ${to}`,
      compute: ([x]) => (x.dtype === to ? clone(x) : toDType(x, to)),
      dtypes: to === "float64" ? everything.filter((from) => from !== to) : everything,
      samples,
      oracle: ([block]) => mapped([block], conversion(to, block.dtype), to),
      accuracy: { scaleUlps: 0 }, // exact
      gradient: false,
      ...(to === "float64" && { lacks: { metal: { reason: "Metal has no float64" } } }),
    }),
  ),
);

test("the table has a row for every dtype", () => expect(everything.toSorted()).toEqual(dtypes.toSorted()));

describe.each(["metal", "cpu", "reference"] as const)("gradients of casts on %s", (backend) => {
  const possible = floats.filter((dtype) => backend !== "metal" || dtype !== "float64");
  const cases = possible.flatMap((from) => possible.filter((to) => to !== from).map((to) => [from, to] as const));

  test.each(cases)("casts from %s to %s have gradients", (from, to) => {
    withStrict(true, () =>
      withBackend(backend, () => {
        const x = tensor([1, 2.5, -3], { dtype: from, requiresGrad: true });
        const gradOutputs = [tensor([1.0009765625, -3, 0.3], { dtype: to })];
        const [gradient] = grad([toDType(x, to)], [x], { gradOutputs });
        expect(gradient.dtype).toBe(from);
        expect(gradient.toArray()).toEqual(toDType(gradOutputs[0], from).toArray());
      }),
    );
  });
});
