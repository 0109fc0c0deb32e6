/** Adaptive maxima of drawn sizes on every backend, compared with loops: windows whose sizes differ, ties and NaN. */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as library from "../../../src/ops/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const dtypes = ["float32", "float16", "bfloat16", "float64"] as const;
const pools = [library.adaptiveMaxPool1d, library.adaptiveMaxPool2d, library.adaptiveMaxPool3d] as const;

/** For each window, the first index of its largest number, or the last index of a NaN. */
function indicesOf(plane: readonly number[], input: readonly number[], output: readonly number[]): number[] {
  return Array.from({ length: elementCount(output) }, (_, number) => {
    const bounds = output.map((count, axis) => {
      const window = Math.floor(number / elementCount(output.slice(axis + 1))) % count;
      return [Math.floor((window * input[axis]) / count), Math.ceil(((window + 1) * input[axis]) / count)] as const;
    });
    let best = -1;
    for (const [place, value] of plane.entries()) {
      const isInside = bounds.every(([begin, end], axis) => {
        const at = Math.floor(place / elementCount(input.slice(axis + 1))) % input[axis];
        return at >= begin && at < end;
      });
      if (isInside && (best < 0 || value > plane[best] || Number.isNaN(value))) best = place;
    }
    return best;
  });
}

const numbersOf = (x: Tensor): number[] => Array.from(library.toDType(x, "float32").dataSync(), Number);

test.each(tested)("adaptive max pooling of drawn sizes equals the definition, on %s", (backend) => {
  const random = new Random(hash("adaptive maxima"));
  for (let round = 0; round < 24; round++)
    withStrict(true, () =>
      withBackend(backend, () => {
        const rank = random.integer(1, 3);
        const input = Array.from({ length: rank }, () => random.integer(1, rank === 1 ? 90 : rank === 2 ? 24 : 7));
        const output = input.map((size) => random.integer(1, Math.min(size + 1, 5)));
        const planes = random.integer(1, 3);
        const hasNaN = random.integer(0, 3) === 0;
        const values = Array.from({ length: planes * elementCount(input) }, () =>
          hasNaN && random.integer(0, 40) === 0 ? Number.NaN : random.integer(-30, 30),
        );
        const dtype = dtypes[random.integer(0, backend === "metal" ? 2 : 3)];
        const made = library.tensor(Float32Array.from(values), { shape: [planes, ...input] });
        const x = library.toDType(made, dtype).detach();
        x.requiresGrad = true;
        const pixels = elementCount(input);
        const places = Array.from({ length: planes }, (_, plane) =>
          indicesOf(values.slice(plane * pixels, (plane + 1) * pixels), input, output),
        );
        const expected = places.flatMap((each, plane) => each.map((place) => values[plane * pixels + place]));
        const pool = pools[rank - 1];
        const found = pool(x, output, { returnIndices: true });
        expect(numbersOf(found.indices as Tensor)).toEqual(places.flat());
        expect(numbersOf(found.values as Tensor)).toEqual(expected);
        const pooled = pool(x, output) as Tensor;
        expect(numbersOf(pooled)).toEqual(expected);
        const weights = library.toDType(
          library.tensor(
            Float32Array.from(expected, (_, at) => (at % 5) + 1),
            { shape: pooled.shape },
          ),
          dtype,
        );
        const gradient = new Float64Array(values.length);
        for (const [plane, each] of places.entries())
          for (const [at, place] of each.entries())
            gradient[plane * pixels + place] += ((plane * each.length + at) % 5) + 1;
        const [given] = grad([pooled], [x], { gradOutputs: [weights as Tensor] });
        expect(numbersOf(given)).toEqual([...gradient]);
      }),
    );
});
