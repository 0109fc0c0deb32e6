/** Calls of a decoding step that the dylib rejects, before anything is written. */
import { expect, test } from "bun:test";
import { ArgumentError } from "../../../src/core/errors.ts";
import { stepCall, stepManyCall } from "../../../src/ops/attention/primitive.ts";

type Values = Parameters<typeof stepCall>[1];

const good: Values = {
  dtype: "float32",
  roomDtype: "float32",
  isPacked: false,
  sequences: 1,
  tokens: 1,
  heads: 2,
  kvHeads: 1,

  dim: 4,
  valueDim: 4,
  scale: 1,
  softcap: 0,
  left: Infinity,
  interleaved: false,
  pairs: 2,
  magnitude: 1,
  offsets: [0, 0, 0, 0],
  sequenceStrides: [8, 4, 4],
  tokenStrides: [8, 4, 4],
  headStrides: [4, 4, 4],
};
/** Capacity, position, first row, rows; then offset, head stride and row stride of keys, and the same of values. */
const sequence = [0, 2, 0, 3, 0, 12, 4, 0, 12, 4];
const operands = (numbers: readonly number[], roomElements = 12) => [
  new Float32Array(8).fill(1),
  new Float32Array(4).fill(1),
  new Float32Array(4).fill(1),
  new Float64Array(2),
  Float64Array.from(numbers),
  new Float32Array(8),
  new Float32Array(roomElements),
  new Float32Array(roomElements),
];

test("a valid call attends to the rows of its sequence", () => {
  const own = operands(sequence);
  stepCall("step", good, own);
  // Two rows of zeros and one of ones: scores 0, 0 and 4.
  const share = Math.exp(4) / (Math.exp(4) + 2);
  for (const value of own[5]) expect(value).toBeCloseTo(share, 6);
  expect([...own[6]]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
});

test("caches in q8_0 blocks are read", () => {
  const ones = () => new Float32Array(32).fill(1);
  const sizes = { heads: 1, dim: 32, valueDim: 32, pairs: 0, scale: 1 / 8, sequenceStrides: [32, 32, 32] };
  const values: Values = { ...good, ...sizes, isPacked: true, tokenStrides: [32, 32, 32], headStrides: [32, 32, 32] };
  const own = (rows: number) => [
    ones(),
    ones(),
    ones(),
    undefined,
    Float64Array.of(0, 2, 0, rows, 0, 102, 34, 0, 102, 34),
    ones(),
    new Uint8Array(102),
    new Uint8Array(102),
  ];
  const given = own(3);
  stepCall("step", values, given);
  for (const value of given[5]!) expect(value).toBeCloseTo(Math.exp(4) / (Math.exp(4) + 2), 3);
  expect([...given[7]!.slice(0, 68)].every((byte) => byte === 0)).toBe(true);
  expect([...given[7]!.slice(70)]).toEqual(new Array(32).fill(127)); // the levels of the block, after its scale
  expect(() => stepCall("step", values, own(4))).toThrow(/operand 6 \(keys\): expected at least 136 bytes, got 102/);
});

test.each([
  ["rows beyond the room", { sequence: { 3: 4 } }, /operand 6 \(keys\): expected at least 64 bytes, got 48/],
  ["a first row beyond the room", { sequence: { 2: 1 } }, /operand 6 \(keys\): expected at least 64 bytes, got 48/],
  ["a first row of no number", { sequence: { 2: NaN } }, /whole number/],
  ["a first row before the room", { sequence: { 2: -1 } }, /a first row of 0 to/],
  ["fewer rows than new tokens", { sequence: { 3: 0 } }, /rows of a room of 1 to/],
  ["values outside", { sequence: { 7: 8 } }, /operand 7 \(values\): expected at least 80 bytes, got 48/],
  ["rows that are one", { sequence: { 3: 13, 6: 0 } }, /operand 6 \(keys\)/],
  ["another room", { sequence: { 0: 1 } }, /a room of 0 to 0, got 1/],
  ["no sequence", { block: { sequences: 0 } }, /a number of sequences of 1/],
  ["more sequences than there are", { block: { sequences: 2 } }, /operand 0 \(q\): expected at least 64 bytes, got 32/],
  ["sequences that are not described", { block: { sequences: 2, sequenceStrides: [0, 0, 0] } }, /operand 5 \(out\)/],
  ["many tokens", { block: { tokens: 5 } }, /tokens of 1 to 4, got 5/],
  ["heads that do not share", { block: { heads: 3, kvHeads: 2 } }, /heads of keys that 3 heads share, got 2/],
  ["pairs beyond the row", { block: { pairs: 3 } }, /pairs of 4 elements, got 3/],
  ["rows that are not in blocks", { block: { isPacked: true } }, /rows in blocks of 32, got 4/],
  ["a band below 0", { block: { left: -1 } }, /a band of at least 0/],
  ["integers", { block: { dtype: "int32" } }, /expected floats for attention, got int32/],
] satisfies [string, { sequence?: object; block?: Partial<Values> }, RegExp][])(
  "%s in q8_0 blocks is attended to as if unpacked",
  (_, wrong: { sequence?: object; block?: Partial<Values> }, message) => {
    const own = operands(Object.assign([...sequence], wrong.sequence));
    expect(() => stepCall("step", { ...good, ...wrong.block }, own)).toThrow(message);
    expect([...own[5], ...own[6], ...own[7]].every((value) => value === 0)).toBe(true);
  },
);

test("a missing cache is an error", () => {
  const [q, k, v, cycles, numbers, out, ...room] = operands(Object.assign([...sequence], { 0: 1 }));
  const own = [q, k, v, cycles, numbers, out, ...room, ...new Array<undefined>(20)];
  expect(() => stepManyCall("step", good, own)).toThrow(ArgumentError);
});
