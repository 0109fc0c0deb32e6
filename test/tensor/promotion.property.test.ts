/** Promotion of dtypes: compared with PyTorch's results, and by its algebraic laws. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { withBackend } from "../../src/backend/policy.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add } from "../../src/ops/elementwise/arithmetic.ts";
import { type DType, dtypes, type IntegerDType, integerRange } from "../../src/tensor/dtype.ts";
import { type PromotionOperand, promote, resultType, type Scalar, scalarDType } from "../../src/tensor/promotion.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { type FixtureCase, type FixtureScalar, type FixtureTensor, readFixtures } from "../support/fixtures.ts";

const cases = readFixtures()
  .find(({ family }) => family === "promotion")!
  .cases.filter(({ op }) => op === "resultType");

const operandOf = (input: FixtureTensor | FixtureScalar): PromotionOperand =>
  typeof input === "object"
    ? { dtype: input.dtype as DType, priority: input.shape.length > 0 ? 0 : 1 }
    : { dtype: scalarDType(input), priority: 2 };

/** The smallest integer type that can hold all values of two. */
function smallestHolding(a: DType, b: DType): DType {
  const ranges = [a, b].map((dtype) => integerRange(dtype as IntegerDType));
  const holds = (dtype: IntegerDType) =>
    ranges.every(([least, most]) => integerRange(dtype)[0] <= least && most <= integerRange(dtype)[1]);
  return (["uint8", "int8", "uint32", "int32", "int64"] as const).find(holds)!;
}

/**
 * PyTorch's result in Orchard's dtypes: it has 16-bit integers, which Orchard lacks, and rejects mixing uint32 with
 * other integers.
 */
function expected({ inputs, outputs, error }: FixtureCase): DType {
  if (!error && outputs[0]!.dtype !== "int16") return outputs[0]!.dtype as DType;
  const [a, b] = inputs.map((input) => operandOf(input).dtype) as [DType, DType];
  return smallestHolding(a, b);
}

test("every pair of tensors, of 0-d tensors and of numbers equals torch.result_type", () => {
  expect(cases.length).toBeGreaterThanOrEqual(dtypes.length ** 2 * 3);
  for (const one of cases) expect([one.name, resultType(one.inputs.map(operandOf))]).toEqual([one.name, expected(one)]);
});

describe("promote is a lattice of dtypes", () => {
  const all = [...dtypes];

  test("promote is commutative, associative, idempotent, and bool is its neutral element", () => {
    for (const a of all) {
      expect([promote(a, a), promote(a, "bool")]).toEqual([a, a]);
      for (const b of all) {
        expect([a, b, promote(a, b)]).toEqual([a, b, promote(b, a)]);
        for (const c of all) expect([a, b, c, promote(promote(a, b), c)]).toEqual([a, b, c, promote(a, promote(b, c))]);
      }
    }
  });
});

const operands = fc.record<PromotionOperand>({
  dtype: fc.constantFrom(...dtypes),
  priority: fc.constantFrom(0 as const, 1 as const, 2 as const),
});

test("the order and repetition of operands do not matter", () => {
  fc.assert(
    fc.property(fc.array(operands, { minLength: 1, maxLength: 5 }), fc.nat(), (list, turn) => {
      const turned = [...list.slice(turn % list.length), ...list.slice(0, turn % list.length)];
      const expected = resultType(list);
      expect([resultType(turned), resultType(list.toReversed()), resultType([...list, list[0]])]).toEqual([
        expected,
        expected,
        expected,
      ]);
    }),
    { numRuns: 1000 },
  );
});

test("operations have the dtype of resultType, for tensors, 0-d tensors and numbers", () => {
  const scalars = fc.constantFrom<Scalar>(true, 1, 0.5, 1n);
  const sides = fc.oneof(
    fc.tuple(fc.constantFrom(...dtypes), fc.boolean()).map(([dtype, flat]) => tensor(flat ? [1] : 1, { dtype })),
    scalars,
  );
  const seen = (side: Tensor | Scalar): PromotionOperand =>
    typeof side === "object"
      ? { dtype: side.dtype, priority: side.rank > 0 ? 0 : 1 }
      : { dtype: scalarDType(side), priority: 2 };
  fc.assert(
    fc.property(sides, sides, (a, b) => {
      fc.pre(typeof a === "object" || typeof b === "object");
      const sum = withBackend("reference", () => add(a, b));
      expect(sum.dtype).toBe(resultType([seen(a), seen(b)]));
    }),
    { numRuns: 300 },
  );
});
