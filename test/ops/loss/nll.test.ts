/** The negative log likelihood of drawn shapes, layouts, weights and ignored targets, compared with its formula. */
import { expect, test } from "bun:test";
import { nllLoss, type Tensor, tensor, toDType, transpose, withBackend } from "../../../src/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import { repeats } from "../../support/repeats.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

const numbersOf = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync() as Float64Array);
const roundings = { float64: 2 ** -50, float32: 2 ** -20, float16: 2 ** -9, bfloat16: 2 ** -6 } as const;

test.each(tested)("drawn calls equal the formula, on %s", (backend) => {
  const random = new Random(71);
  const dtypes = Object.keys(roundings) as (keyof typeof roundings)[];
  withBackend(backend, () => {
    for (let round = 0; round < (backend === "cpu" ? repeats({ usual: 80, all: 800 }) : 8); round++) {
      const dtype = dtypes[random.integer(backend === "metal" ? 1 : 0, 3)];
      const others = Array.from({ length: random.integer(0, 2) }, () => random.integer(1, 5));
      const [batch, classes] = [
        random.integer(1, round % 8 === 0 ? 9000 / elementCount(others) : 20),
        random.integer(1, 9),
      ];
      const shape = [batch, classes, ...others];
      const values = Float32Array.from({ length: elementCount(shape) }, () => -random.next() * 4);
      const plain = toDType(tensor(values, { shape }), dtype) as Tensor;
      const x = others.length > 0 && round % 3 === 0 ? transpose(plain.transpose(0, 1).contiguous(), 0, 1) : plain;
      const spots = elementCount([batch, ...others]);
      const ignoreIndex = round % 4 === 0 ? -100 : random.integer(0, classes - 1);
      const named = Array.from({ length: spots }, () => random.integer(0, classes - 1));
      if (ignoreIndex < 0) for (let at = 0; at < spots; at += 3) named[at] = ignoreIndex;
      const targets = toDType(tensor(named, { shape: [batch, ...others] }), round % 2 === 0 ? "int64" : "int32");
      const factors = Float32Array.from({ length: classes }, () => 1 + random.integer(0, 3));
      const weight = round % 5 < 2 ? (toDType(tensor(factors), dtype) as Tensor) : undefined;
      const reduction = (["none", "sum", "mean"] as const)[random.integer(0, 2)];
      const found = nllLoss(x, targets, { ...(weight && { weight }), ignoreIndex, reduction });

      const logarithms = numbersOf(plain);
      const inner = elementCount(others);
      const factorOf = (target: number) => (target === ignoreIndex ? 0 : weight ? factors[target] : 1);
      const losses = named.map((target, at) => {
        const [n, within] = [Math.floor(at / inner), at % inner];
        return target === ignoreIndex ? 0 : -logarithms[(n * classes + target) * inner + within] * factorOf(target);
      });
      const total = losses.reduce((sum, each) => sum + each, 0);
      const divisor = named.reduce((sum, target) => sum + factorOf(target), 0);
      const expected = reduction === "none" ? losses : [reduction === "sum" ? total : total / divisor];
      const got = numbersOf(found);
      expect(got).toHaveLength(expected.length);
      for (const [at, each] of expected.entries()) {
        const isNear = Math.abs(got[at] - each) <= roundings[dtype] * Math.max(1, Math.abs(each));
        expect([round, dtype, reduction, Number.isNaN(each) ? Number.isNaN(got[at]) : isNear]).toEqual([
          round,
          dtype,
          reduction,
          true,
        ]);
      }
    }
  });
});

test("a target out of range is an error that names it", () => {
  withBackend("cpu", () =>
    expect(() => nllLoss(tensor([[-1, -2]]), tensor([2n]))).toThrow("expected indices of 0 to 1, got 2 at [0]"),
  );
});
