/**
 * Operands whose innermost axis differs from the result's, compared with plain numbers. Sizes, permutations and dtypes
 * are drawn; an axis has a few elements, whole blocks, or whole blocks and one element. Also tests copies.
 */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import * as library from "../../../src/ops/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const dtypes = ["float32", "float16", "bfloat16", "int32", "uint8", "float64"] as const;
/**
 * Kernels of the cpu backend have blocks of 32 to 128 elements a side, or of 1024 to 4096 elements along one side and a
 * few along the other.
 */
const sizes = [1, 2, 3, 4, 5, 9, 31, 33, 65, 128, 129, 257] as const;
const long = [1025, 1026, 2049, 4097] as const;

/** A tensor of whole numbers in a drawn order of axes, and its numbers in row-major order. */
function drawn(random: Random, shape: readonly number[], dtype: (typeof dtypes)[number]) {
  const order = shape.map((_, axis) => axis);
  for (let at = order.length - 1; at > 0; at--) {
    const other = random.integer(0, at);
    [order[at], order[other]] = [order[other], order[at]];
  }
  const stored = order.map((axis) => shape[axis]);
  const numbers = Array.from({ length: elementCount(shape) }, () => random.integer(0, 9));
  const dense = library.toDType(library.tensor(Float32Array.from(numbers), { shape: stored }), dtype) as Tensor;
  const back = shape.map((_, axis) => order.indexOf(axis));
  const steps = stored.map((_, axis) => elementCount(stored.slice(axis + 1)));
  const values = Float64Array.from({ length: numbers.length }, (_, at) => {
    let [left, place] = [at, 0];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place += (left % shape[axis]) * steps[back[axis]];
      left = Math.floor(left / shape[axis]);
    }
    return numbers[place];
  });
  return { x: library.permute(dense, back), values };
}

const numbersOf = (x: Tensor): number[] => Array.from(library.toDType(x, "float32").dataSync(), Number);

test.each(tested)("drawn permutations of axes equal dense operands, on %s", (backend) => {
  const random = new Random(hash("transposed layouts"));
  const pick = <Value>(list: readonly Value[]): Value => list[random.integer(0, list.length - 1)]!;
  for (let round = 0; round < 60; round++)
    withStrict(true, () =>
      withBackend(backend, () => {
        const isLong = round % 4 === 0;
        const shape = isLong ? [pick(long), random.integer(1, 4)] : [random.integer(1, 3), pick(sizes), pick(sizes)];
        if (round % 4 === 1) shape.splice(0, 3, ...[0, 1, 2, 3].map(() => random.integer(2, 9)));
        if (random.integer(0, 1) === 0) shape.reverse();
        const dtype = pick(backend === "metal" ? dtypes.slice(0, 5) : dtypes);
        const [a, b, c] = [0, 1, 2].map(() => drawn(random, shape, dtype)) as [Drawn, Drawn, Drawn];
        expect(numbersOf(library.clone(a.x))).toEqual([...a.values]);
        expect(numbersOf(library.square(a.x))).toEqual([...a.values].map((value) => value ** 2));
        const sums = [...a.values].map((value, at) => value + b.values[at]);
        expect(numbersOf(library.add(a.x, b.x))).toEqual(sums);
        const chosen = [...a.values].map((value, at) => (value > b.values[at] ? value : c.values[at]));
        expect(numbersOf(library.where(library.gt(a.x, b.x), a.x, c.x) as Tensor)).toEqual(chosen);
      }),
    );
});
type Drawn = ReturnType<typeof drawn>;
