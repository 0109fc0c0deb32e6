/**
 * Sums, softmaxes, running sums and sorts of drawn shapes, layouts and axes. Plans of calls are cached by layout, so
 * the layouts alternate, and there are more of them than the caches have slots.
 */
import { expect, test } from "bun:test";
import * as library from "../../../src/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tidy } from "../../../src/tensor/tidy.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

const calls: readonly ((x: Tensor, axis: number) => Tensor)[] = [
  (x, axis) => library.sum(x, axis),
  (x, axis) => library.max(x, axis).indices,
  (x, axis) => library.softmax(x, axis),
  (x, axis) => library.cumsum(x, axis),
  (x, axis) => library.sort(x, { dim: axis }).values,
  (x) => library.sum(x, { dim: x.shape.map((_, at) => at).filter((at) => at % 2 === 0) }),
];

const elementsOf = (x: Tensor): number[] =>
  Array.from(library.contiguous(x).dataSync() as ArrayLike<number | bigint>, Number);

test.each(tested)("on %s, reductions of strided tensors match those of contiguous copies", (backend) => {
  const random = new Random(3);
  library.withBackend(backend, () => {
    for (let round = 0; round < (backend === "cpu" ? 1500 : 30); round++)
      tidy(() => {
        const rank = random.integer(1, 4);
        const shape = Array.from({ length: rank }, () => random.integer(1, 6));
        const count = shape.reduce((product, size) => product * size, 1);
        const whole = library.tensor(Array.from({ length: count }, () => random.integer(0, 8))).reshape(shape);
        const order = shape.map((_, at) => [random.next(), at] as const).sort(([a], [b]) => a - b);
        const x = library.permute(whole, ...order.map(([, at]) => at)) as Tensor;
        const axis = random.integer(0, rank - 1);
        const call = calls[random.integer(0, calls.length - 1)];
        const [found, expected] = [x, library.clone(library.contiguous(x))].map((each) => elementsOf(call(each, axis)));
        expect(found.length).toBe(expected.length);
        for (const [at, value] of expected.entries()) expect(Math.abs(found[at] - value)).toBeLessThan(1e-6);
      });
  });
});
