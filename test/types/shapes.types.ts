/** Shapes and elements without assertions: the compiler is the test (`bun run check`). */
import { expect } from "bun:test";
import { randn, type Shape, softmax, type TensorShape, tensor, zeros } from "../../src/index.ts";
import type { Equals, True } from "./expect.ts";

const x = randn([2, 3]);
const [batch, length] = x.shape;
const [, ...others] = x.shape;
export type Destructured = [
  True<Equals<typeof batch | typeof length, number>>,
  True<Equals<typeof others, number[]>>,
  True<Equals<(typeof x.shape)[7], number>>,
  True<Equals<typeof x.shape, TensorShape>>,
];
export const area: number = batch * length + x.shape.at(-1);
export const taken = [zeros(x.shape), zeros([...x.shape, 1]), x.reshape(x.shape), x.reshape([...others, batch])];
export const shape: Shape = x.shape;
export const numbers: readonly number[] = x.shape;
// @ts-expect-error shapes are frozen
x.shape[0] = 2;

const rows = softmax(x, 1).toArray();
export const largest: number = Math.max(...rows[0]) + rows[1][2];
export const lists: number[][] = x.tolist();
for (const row of rows) for (const value of row) value.toFixed(2);

/** Matchers compare shapes with lists, also within lists and objects. Not called: the compiler is the test. */
export function compare(): void {
  expect(x.shape).toEqual([2, 3]);
  expect(x.shape).not.toStrictEqual([3]);
  expect([x.dtype, x.shape]).toEqual(["float32", [2, 3]]);
  expect({ shape: x.shape, rank: x.rank }).toEqual({ shape: [2, 3], rank: 2 });
  expect([x, tensor([1])].map((each) => each.shape)).toEqual([[2, 3], [1]]);
  expect(x.toArray()).toEqual([[1, 2]]);
  // @ts-expect-error sizes are numbers
  expect(x.shape).toEqual(["2"]);
  // @ts-expect-error a shape is a list
  expect(x.shape).toEqual(2);
}
