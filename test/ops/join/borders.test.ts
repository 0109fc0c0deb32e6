/**
 * Pads random tensors. A formula gives the source of every element; gradients are sums over an element's copies. Sizes
 * are large enough for several tasks on the cpu, and for rows that are split among tasks.
 */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import * as orchard from "../../../src/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../samples.ts";

const modes = ["constant", "replicate", "reflect", "circular"] as const;
type Mode = (typeof modes)[number];
const VALUE = 7;

interface Drawn {
  readonly shape: readonly number[];
  /** The elements to add before each axis, outermost axis first. Negative sizes crop first. */
  readonly before: readonly number[];
  readonly after: readonly number[];
}

function drawn(random: Random, mode: Mode): Drawn {
  const rank = 1 + Math.floor(random.next() * 5);
  const most = [40_000, 150, 24, 8, 5][rank - 1];
  const shape = Array.from({ length: rank }, () => 1 + Math.floor(most ** random.next()));
  const side = () =>
    shape.map((size) => {
      const limit = { constant: 6, replicate: 6, reflect: size - 1, circular: size }[mode];
      const low = size > 3 ? -1 : 0;
      return low + Math.floor(random.next() * (Math.min(limit - 1, 5) + 1 - low));
    });
  return { shape, before: side(), after: side() };
}

/** Returns the index along an axis of the tensor; undefined for a constant. */
function source(mode: Mode, size: number, index: number): number | undefined {
  if (index >= 0 && index < size) return index;
  if (mode === "replicate") return index < 0 ? 0 : size - 1;
  if (mode === "reflect") return index < 0 ? -index : 2 * (size - 1) - index;
  return mode === "circular" ? (index + size) % size : undefined;
}

/** Returns, for each element of the result, the linear index of its source in the tensor; undefined for a constant. */
function sources(mode: Mode, { shape, before, after }: Drawn): (number | undefined)[] {
  const padded = shape.map((size, axis) => before[axis] + size + after[axis]);
  return Array.from({ length: padded.reduce((product, size) => product * size, 1) }, (_, element) => {
    let [rest, step, at]: [number, number, number | undefined] = [element, 1, 0];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const [cut, size] = [Math.max(-before[axis], 0), shape[axis]];
      const inside = size - cut - Math.max(-after[axis], 0);
      const index = source(mode, inside, (rest % padded[axis]) - Math.max(before[axis], 0));
      at = at === undefined || index === undefined ? undefined : at + (cut + index) * step;
      [rest, step] = [Math.floor(rest / padded[axis]), step * size];
    }
    return at;
  });
}

const inPairs = ({ before, after }: Drawn): number[] =>
  before.flatMap((_, at) => [before.at(-1 - at)!, after.at(-1 - at)!]);

/** Returns a tensor of distinct small integers, contiguous or transposed. */
function numbered(shape: readonly number[], dtype: DType, isTransposed: boolean): Tensor {
  const size = shape.reduce((product, length) => product * length, 1);
  const x = orchard.tensor(Array.from({ length: size }, (_, at) => at % 120)).reshape(shape);
  const last = shape.length - 1;
  const laidOut = isTransposed && last > 0 ? x.transpose(0, last).contiguous().transpose(0, last) : x;
  return orchard.toDType(laidOut as Tensor, dtype);
}

const padded = (x: Tensor, mode: Mode, each: Drawn): Tensor =>
  orchard.pad(x, inPairs(each), mode === "constant" ? { value: VALUE } : { mode });

describe.each(modes)("joins of tensors at borders, %s", (mode) => {
  test.each(["float32", "float64", "bfloat16", "int8", "bool"] as const)("elements of %s are right", (dtype) => {
    const random = new Random(41 + modes.indexOf(mode));
    for (let count = 0; count < 24; count++) {
      const each = drawn(random, mode);
      const x = numbered(each.shape, dtype, random.next() < 0.4);
      const given = x.reshape([-1]).toArray() as unknown[];
      const constant = dtype === "bool" ? true : VALUE;
      const expected = sources(mode, each).map((at) => (at === undefined ? constant : given[at]));
      const value = dtype === "bool" && mode === "constant" ? { value: true } : undefined;
      const result = withBackend("cpu", () => (value ? orchard.pad(x, inPairs(each), value) : padded(x, mode, each)));
      expect(result.reshape([-1]).toArray() as unknown[]).toEqual(expected);
    }
  });

  test.each(["float32", "float64"] as const)(
    "gradients of %s equal finite differences, to the second order",
    (dtype) => {
      const random = new Random(91 + modes.indexOf(mode));
      for (let count = 0; count < 16; count++) {
        const each = drawn(random, mode);
        const x = numbered(each.shape, dtype, random.next() < 0.4);
        const from = sources(mode, each);
        const factors = Array.from(from, () => Math.floor(random.next() * 9) - 4);
        const expected = new Array<number>(x.size).fill(0);
        for (const [at, element] of from.entries()) if (element !== undefined) expected[element] += factors[at];
        withBackend("cpu", () => {
          x.requiresGrad = true;
          const result = padded(x, mode, each);
          const cotangent = orchard.tensor(factors, { dtype, requiresGrad: true }).reshape(result.shape);
          const [gradient] = orchard.grad([result], [x], { gradOutputs: [cotangent], createGraph: true });
          expect((gradient as Tensor).reshape([-1]).toArray()).toEqual(expected);
          // padding is linear, so the second-order gradient is the cotangent, padded with zeros for constants
          const [second] = orchard.grad([gradient as Tensor], [cotangent], { gradOutputs: [x.detach()] });
          const given = x.detach().reshape([-1]).toArray() as number[];
          const copies = from.map((element) => (element === undefined ? 0 : given[element]));
          expect((second as Tensor).reshape([-1]).toArray()).toEqual(copies);
        });
      }
    },
  );
});
