/** Broadcasting, compared with its definition: from the last axis on, sizes are equal or one of them is 1. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { withBackend } from "../../src/backend/policy.ts";
import { ShapeError } from "../../src/core/errors.ts";
import { add, mul } from "../../src/ops/elementwise/arithmetic.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { broadcastShapes, type Shape } from "../../src/tensor/shape.ts";
import { counted, places, shapes } from "./arbitraries.ts";

/** Broadcasts two shapes by the definition; undefined if they are incompatible. */
function definition(a: Shape, b: Shape): number[] | undefined {
  const result: number[] = [];
  for (let back = 1; back <= Math.max(a.length, b.length); back++) {
    const [left, right] = [a.at(-back) ?? 1, b.at(-back) ?? 1];
    if (back <= Math.min(a.length, b.length) && left !== right && left !== 1 && right !== 1) return undefined;
    result.unshift(left === 1 ? right : left);
  }
  return result;
}

/** A pair of shapes that are often compatible: some sizes become 1, and leading axes are removed. */
const related: fc.Arbitrary<[number[], number[]]> = fc
  .tuple(shapes(5, 4), fc.array(fc.nat(3), { minLength: 5, maxLength: 5 }), fc.nat(4), fc.boolean())
  .map(([shape, choices, cut, swap]) => {
    const other = shape.map((size, axis) => (choices[axis] === 0 ? 1 : choices[axis] === 1 && size === 1 ? 3 : size));
    const pair: [number[], number[]] = [shape, other.slice(Math.min(cut, other.length))];
    return swap ? [pair[1], pair[0]] : pair;
  });
const pairs = fc.oneof(related, fc.tuple(shapes(4, 3), shapes(4, 3)));

const attempt = (a: Shape, b: Shape): Shape | undefined => {
  try {
    return broadcastShapes("test", a, b);
  } catch (error) {
    expect(error).toBeInstanceOf(ShapeError);
    return undefined;
  }
};

describe("broadcastShapes equals its definition", () => {
  test("broadcastShapes equals the definition, in either order", () => {
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        expect(attempt(a, b) as unknown).toEqual(definition(a, b));
        expect(attempt(b, a) as unknown).toEqual(definition(a, b));
      }),
      { numRuns: 2000 },
    );
  });

  test("broadcastShapes of three shapes equals pairwise application, in any order", () => {
    fc.assert(
      fc.property(related, shapes(4, 2), ([a, b], c) => {
        const [ab, bc] = [definition(a, b), definition(b, c)];
        const left = ab && definition(ab, c);
        const right = bc && definition(a, bc);
        fc.pre(left !== undefined && right !== undefined);
        for (const order of [
          [a, b, c],
          [c, a, b],
          [b, c, a],
        ])
          expect(broadcastShapes("test", ...order) as unknown).toEqual(left);
        expect(left).toEqual(right);
      }),
      { numRuns: 500 },
    );
  });
});

describe.each(["cpu", "reference"] as const)("broadcasting on %s", (backend) => {
  test("each element of a sum of two shapes is the sum of the broadcast elements", () => {
    fc.assert(
      fc.property(related, ([a, b]) => {
        const shape = definition(a, b);
        fc.pre(shape !== undefined);
        const result = withBackend(backend, () => add(counted(a), counted(b)));
        const at = (own: Shape, place: readonly number[]) =>
          own.reduce((index, size, axis) => {
            const one = place[place.length - own.length + axis];
            return index * size + (size === 1 ? 0 : one);
          }, 0);
        expect(result.shape as unknown).toEqual(shape);
        expect([...result.dataSync()] as unknown[]).toEqual(places(shape).map((place) => at(a, place) + at(b, place)));
      }),
      { numRuns: 300 },
    );
  });
});

test("expand repeats without a copy", () => {
  fc.assert(
    fc.property(related, ([a, b]) => {
      const shape = definition(a, b);
      fc.pre(shape !== undefined);
      const x = counted(a);
      const wide = expand(x, shape);
      expect([wide.storage === x.storage, wide.shape as unknown]).toEqual([true, shape]);
      expect([...wide.dataSync()]).toEqual([...add(x, mul(counted(shape), 0)).dataSync()] as never);
    }),
    { numRuns: 300 },
  );
});
