import { cat, stack } from "../../../src/ops/join/cat.ts";
import { diag } from "../../../src/ops/join/diag.ts";
import { flip } from "../../../src/ops/join/flip.ts";
import { pad } from "../../../src/ops/join/pad.ts";
import { repeat, tile } from "../../../src/ops/join/repeat.ts";
import { roll } from "../../../src/ops/join/roll.ts";
import { dtypes } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { resultOf, valueAt } from "../coordinates.ts";
import { testTable } from "../run.ts";
import type { Block, Layout } from "../samples.ts";
import type { Expected, OperationRow, Sample } from "../table.ts";

const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed", "expanded"];
/** A shape of the highest rank. */
const highest = [2, 1, 2, 1, 2, 1, 2, 3];
const modulo = (value: number, size: number) => ((value % size) + size) % size;

/** One call with its oracle; each is tried in every layout. */
interface Call {
  readonly shapes: readonly (readonly number[])[];
  readonly call: (...inputs: readonly Tensor[]) => Tensor;
  readonly oracle: (...inputs: readonly Block[]) => Expected;
}

const row = (name: string, calls: readonly Call[]): OperationRow<Call> => ({
  name,
  compute: (inputs, { call }) => call(...inputs),
  dtypes,
  samples: calls.flatMap((call, index) => samplesOf(call, index)),
  oracle: (inputs, { oracle }) => oracle(...inputs),
  accuracy: { ulps: 0 },
  gradient: true,
});

const samplesOf = (call: Call, index: number): Sample<Call>[] =>
  layouts.map((layout, at) => ({
    name: `call ${index} ${layout}`,
    inputs: call.shapes.map((shape, operand) => ({ shape, layout: layouts[(at + operand) % layouts.length] })),
    options: call,
  }));

/** One input: the source of each position of the result; a number represents itself. */
const from = (
  shape: readonly number[],
  call: (x: Tensor) => Tensor,
  result: readonly number[],
  source: (place: readonly number[]) => readonly number[] | number,
): Call => ({
  shapes: [shape],
  call: (x) => call(x),
  oracle: (x) =>
    resultOf(result, (place) => {
      const found = source(place);
      return typeof found === "number" ? found : valueAt(x, found);
    }),
});

const inside = (place: readonly number[], shape: readonly number[]) =>
  place.every((index, axis) => index >= 0 && index < shape[axis]);

testTable("joining", [
  row("cat", [
    {
      shapes: [
        [2, 3, 5],
        [2, 1, 5],
        [2, 4, 5],
      ],
      call: (...all) => cat(all, { dim: -2 }),
      oracle: (a, b, c) =>
        resultOf([2, 8, 5], ([i, j, k]) =>
          j < 3 ? valueAt(a, [i, j, k]) : j < 4 ? valueAt(b, [i, 0, k]) : valueAt(c, [i, j - 4, k]),
        ),
    },
    {
      shapes: [[3], [0], [2]],
      call: (...all) => cat(all),
      oracle: (a, _, c) => ({ shape: [5], values: [...a.values, ...c.values] }),
    },
    {
      shapes: [[257, 3], [0], [129, 3]],
      call: (...all) => cat(all),
      oracle: (a, _, c) => ({ shape: [386, 3], values: [...a.values, ...c.values] }),
    },
    {
      shapes: [highest, highest.with(4, 1)],
      call: (...all) => cat(all, { dim: 4 }),
      oracle: (a, b) =>
        resultOf(highest.with(4, 3), (place) => (place[4] < 2 ? valueAt(a, place) : valueAt(b, place.with(4, 0)))),
    },
    { shapes: [[2, 0]], call: (...all) => cat(all, { dim: 1 }), oracle: () => ({ shape: [2, 0], values: [] }) },
  ]),
  row("stack", [
    {
      shapes: [
        [2, 3],
        [2, 3],
        [2, 3],
      ],
      call: (...all) => stack(all, { dim: -2 }),
      oracle: (...all) => resultOf([2, 3, 3], ([i, which, j]) => valueAt(all[which], [i, j])),
    },
    {
      shapes: [highest.slice(1), highest.slice(1)],
      call: (...all) => stack(all, { dim: -1 }),
      oracle: (...all) =>
        resultOf([...highest.slice(1), 2], (place) => valueAt(all[place.at(-1)!], place.slice(0, -1))),
    },
    {
      shapes: [[0, 2], [0, 2]], // biome-ignore format: pairs
      call: (...all) => stack(all),
      oracle: () => ({ shape: [2, 0, 2], values: [] }),
    },
    {
      shapes: [[], []],
      call: (...all) => stack(all),
      oracle: (a, b) => ({ shape: [2], values: [a.values[0], b.values[0]] }),
    },
  ]),
  row("flip", [
    from(
      [3, 4, 5],
      (x) => flip(x, [0, -1]),
      [3, 4, 5],
      ([i, j, k]) => [2 - i, j, 4 - k],
    ),
    from(
      [3, 5],
      (x) => flip(x, []),
      [3, 5],
      (place) => place,
    ),
    from(
      [2, 0],
      (x) => flip(x, [0, 1]),
      [2, 0],
      (place) => place,
    ),
    from(
      highest,
      (x) => flip(x, [0, 4, 7]),
      highest,
      (place) =>
        place
          .with(0, 1 - place[0])
          .with(4, 1 - place[4])
          .with(7, 2 - place[7]),
    ),
    from(
      [1031],
      (x) => flip(x, 0),
      [1031],
      ([i]) => [1030 - i],
    ),
  ]),
  row("roll", [
    from(
      [3, 5],
      (x) => roll(x, [1, -2], { dims: [0, 1] }),
      [3, 5],
      ([i, j]) => [modulo(i - 1, 3), modulo(j + 2, 5)],
    ),
    from(
      [3, 5],
      (x) => roll(x, [2, 2], { dims: [1, 1] }),
      [3, 5],
      ([i, j]) => [i, modulo(j - 4, 5)],
    ),
    from(
      [3, 5],
      (x) => roll(x, -17),
      [3, 5],
      ([i, j]) => {
        const at = modulo(i * 5 + j + 17, 15);
        return [Math.floor(at / 5), at % 5];
      },
    ),
    from(
      highest,
      (x) => roll(x, [1, 2], { dims: [2, 7] }),
      highest,
      (place) => place.with(2, 1 - place[2]).with(7, modulo(place[7] - 2, 3)),
    ),
    from(
      [0],
      (x) => roll(x, 1, { dims: 0 }),
      [0],
      (place) => place,
    ),
  ]),
  row("repeat", [
    from(
      [3, 4],
      (x) => repeat(x, [2, 1, 3]),
      [2, 3, 12],
      ([, i, j]) => [i % 3, j % 4],
    ),
    from(
      [2, 1, 3],
      (x) => repeat(x, [2, 2, 2]),
      [4, 2, 6],
      ([i, , k]) => [i % 2, 0, k % 3],
    ),
    from(
      [],
      (x) => repeat(x, [3]),
      [3],
      () => [],
    ),
    from(
      highest,
      (x) => repeat(x, [1, 2, 2, 1, 2, 1, 2, 2]),
      [2, 2, 4, 1, 4, 1, 4, 6],
      (place) => place.map((at, axis) => at % highest[axis]),
    ),
    from(
      [2],
      (x) => repeat(x, [0]),
      [0],
      (place) => place,
    ),
    from(
      [2, 3],
      (x) => tile(x, [2]),
      [2, 6],
      ([i, j]) => [i, j % 3],
    ),
    from(
      [2, 1, 2, 2, 2, 2],
      (x) => repeat(x, [2, 2, 2, 1, 2, 2]),
      [4, 2, 4, 2, 4, 4],
      ([a, , c, d, e, f]) => [a % 2, 0, c % 2, d, e % 2, f % 2],
    ),
  ]),
  row("pad", [
    from(
      [3, 4],
      (x) => pad(x, [1, 2, 0, 3], { value: 1 }),
      [6, 7],
      ([i, j]) => (inside([i, j - 1], [3, 4]) ? [i, j - 1] : 1),
    ),
    from(
      [3, 4],
      (x) => pad(x, [-1, 2, 1, -2]),
      [2, 5],
      ([i, j]) => (inside([i - 1, j], [3, 3]) ? [i - 1, j + 1] : 0),
    ),
    from(
      highest,
      (x) => pad(x, [1, 0, -1, 0, 0, 1], { value: 1 }),
      [2, 1, 2, 1, 2, 2, 1, 4],
      // One index of axis 6 is cropped.
      (place) => (place[5] === 1 || place[7] === 0 ? 1 : place.with(6, 1).with(7, place[7] - 1)),
    ),
    from(
      [2, 3],
      (x) => pad(x, []),
      [2, 3],
      (place) => place,
    ),
    from(
      [0, 2],
      (x) => pad(x, [0, 0, 1, 1], { value: 1 }),
      [2, 2],
      () => 1,
    ),
  ]),
  row("diag", [
    from(
      [3],
      (x) => diag(x),
      [3, 3],
      ([i, j]) => (i === j ? [i] : 0),
    ),
    from(
      [3],
      (x) => diag(x, { diagonal: -2 }),
      [5, 5],
      ([i, j]) => (i - j === 2 ? [j] : 0),
    ),
    from(
      [3, 5],
      (x) => diag(x, { diagonal: 1 }),
      [3],
      ([d]) => [d, d + 1],
    ),
    from(
      [3, 5],
      (x) => diag(x, { diagonal: 9 }),
      [0],
      () => 0,
    ),
  ]),
]);
