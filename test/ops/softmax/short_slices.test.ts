/**
 * Softmax, norms and cross entropy of slices around the length up to which the cpu backend computes many at once: drawn
 * shapes, axes, layouts and dtypes, forward and backward, compared with formulas in float64.
 */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import {
  crossEntropy,
  layerNorm,
  logSoftmax,
  permute,
  rmsNorm,
  softmax,
  tensor,
  toDType,
} from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { mapSlices } from "../reduction/groups.ts";
import { testSameBits } from "../same_bits.ts";
import {
  type Block,
  expandedBlock,
  hash,
  type Layout,
  layouts,
  makeBlock,
  place,
  Random,
  rounder,
} from "../samples.ts";

type Slice = readonly number[];

const total = (values: Slice): number => values.reduce((sum, value) => sum + value, 0);
const averageOf = (values: Slice): number => total(values) / values.length;

const softmaxOf = (x: Slice): number[] => {
  const powers = x.map((value) => Math.exp(value - Math.max(...x)));
  return powers.map((power) => power / total(powers));
};
const logSumOf = (x: Slice): number => {
  const top = Math.max(...x);
  return top + Math.log(total(x.map((value) => Math.exp(value - top))));
};

/** Gradients of softmax and log-softmax; g is the gradient of their results. */
const softmaxBack = (x: Slice, g: Slice): number[] => {
  const y = softmaxOf(x);
  const sum = total(y.map((value, k) => value * g[k]));
  return y.map((value, k) => value * (g[k] - sum));
};
const logSoftmaxBack = (x: Slice, g: Slice): number[] => {
  const y = softmaxOf(x);
  return y.map((value, k) => g[k] - value * total(g));
};

/** The dtypes, each with the error that its roundings explain, relative to the larger of 1 and the result. */
const roundings: Readonly<Partial<Record<DType, number>>> = {
  float64: 1e-13,
  float32: 2 ** -19,
  float16: 2 ** -9,
  bfloat16: 2 ** -6,
};
const dtypes = Object.keys(roundings) as DType[];

interface Case {
  readonly block: Block;
  readonly layout: Layout;
  readonly dim: number;
  readonly x: Tensor;
}

/** Slices of 1 to 300 elements, mostly few, in up to three other axes. */
function drawCase(random: Random, dtype: DType, { isLast = false } = {}): Case {
  const length = random.integer(1, [9, 9, 40, 150, 300][random.integer(0, 4)]);
  const others = Array.from({ length: random.integer(1, 3) }, () => random.integer(1, random.integer(1, 24)));
  const axis = isLast ? others.length : random.integer(0, others.length);
  const shape = others.toSpliced(axis, 0, length);
  const layout = layouts[random.integer(0, layouts.length - 1)];
  const drawn = makeBlock({ shape, values: { low: -4, high: 4 } }, dtype, random);
  const block = layout === "expanded" ? expandedBlock(drawn) : drawn;
  return { block, layout, dim: axis, x: place(block, layout, "cpu", random) };
}

const numbers = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync(), Number);

/** Throws unless each number is within the error that the dtype's roundings explain. */
function check(name: string, { x, dim }: Case, result: Tensor, expected: Slice, scale = 1): void {
  const allowed = roundings[x.dtype]! * scale;
  for (const [at, value] of numbers(result).entries()) {
    const off = Math.abs(value - expected[at]);
    if (!(off <= allowed * Math.max(1, Math.abs(expected[at]))))
      throw new Error(`${name} of ${x.describe()} along ${dim}, element ${at}: expected ${expected[at]}, got ${value}`);
  }
}

/** Calls a function on the cpu alone, and returns its result and the gradients for a drawn gradient of it. */
function differentiate(
  random: Random,
  inputs: readonly Tensor[],
  compute: (...inputs: Tensor[]) => Tensor,
): { output: Tensor; given: Block; gradients: Tensor[] } {
  return withStrict(true, () =>
    withBackend("cpu", () => {
      for (const input of inputs) input.requiresGrad = true;
      const output = compute(...inputs);
      const given = makeBlock({ shape: output.shape, values: { low: -1, high: 1 } }, output.dtype, random);
      const gradients = grad([output], [...inputs], { gradOutputs: [place(given, "contiguous", "cpu", random)] });
      return { output: output.detach(), given, gradients };
    }),
  );
}

const rounds = repeats({ usual: 12, all: 300 });

test.each(dtypes)("softmax and logSoftmax of %s are accurate", (dtype) => {
  const random = new Random(hash(`short softmax of ${dtype}`));
  for (let round = 0; round < rounds; round++) {
    const drawn = drawCase(random, dtype);
    const { block, dim, x } = drawn;
    const of = (map: (x: Slice, g: Slice) => number[], g: Slice = block.values) =>
      mapSlices(block.shape, [block.values, [...g]], dim, (slice, other) => map(slice, other));
    // the gradient is computed from the rounded result
    const soft = differentiate(random, [x], (input) => softmax(input, dim) as Tensor);
    check("softmax", drawn, soft.output, of(softmaxOf));
    check("softmax backward", drawn, soft.gradients[0], of(softmaxBack, soft.given.values), 2);
    const log = differentiate(random, [x], (input) => logSoftmax(input, dim) as Tensor);
    check(
      "logSoftmax",
      drawn,
      log.output,
      of((slice) => slice.map((value) => value - logSumOf(slice))),
    );
    const size = 1 + Math.sqrt(x.shape[dim]);
    check("logSoftmax backward", drawn, log.gradients[0], of(logSoftmaxBack, log.given.values), 4 * size);
  }
  expect(random.next()).toBeLessThan(1);
});

/** Returns normalized elements `n`, and `back`, which maps the gradient of `n` to that of `x`. */
function normalized(x: Slice, isCentered: boolean, eps: number): { n: number[]; back: (v: Slice) => number[] } {
  const mean = isCentered ? averageOf(x) : 0;
  const scale = 1 / Math.sqrt(averageOf(x.map((value) => (value - mean) ** 2)) + eps);
  const n = x.map((value) => (value - mean) * scale);
  const back = (v: Slice): number[] => {
    const [average, projection] = [isCentered ? averageOf(v) : 0, averageOf(v.map((value, k) => value * n[k]))];
    return v.map((value, k) => scale * (value - average - n[k] * projection));
  };
  return { n, back };
}

test.each(dtypes)("layerNorm and rmsNorm of %s are accurate", (dtype) => {
  const random = new Random(hash(`short norms of ${dtype}`));
  for (let round = 0; round < rounds; round++) {
    const drawn = drawCase(random, dtype, { isLast: true });
    const { block, x } = drawn;
    const length = x.shape.at(-1)!;
    const [weight, bias] = [0, 1].map(() => makeBlock({ shape: [length] }, dtype, random)) as [Block, Block];
    const vectors = [weight, bias].map((vector) => place(vector, "contiguous", "cpu", random)) as [Tensor, Tensor];
    for (const isCentered of [true, false]) {
      const inputs = isCentered ? [x, ...vectors] : [x, vectors[0]];
      const { output, given, gradients } = differentiate(random, inputs, (input, w, b) =>
        isCentered ? (layerNorm(input, [length], w, b, 0.1) as Tensor) : (rmsNorm(input, [length], w, 0.1) as Tensor),
      );
      const name = isCentered ? "layerNorm" : "rmsNorm";
      const rows = Array.from({ length: elementCount(x.shape) / length }, (_, row) => {
        const part = ({ values }: Block) => values.slice(row * length, (row + 1) * length);
        return { ...normalized(part(block), isCentered, 0.1), g: part(given) };
      });
      const shifted = (value: number, k: number) => value * weight.values[k] + (isCentered ? bias.values[k] : 0);
      check(
        name,
        drawn,
        output,
        rows.flatMap(({ n }) => n.map(shifted)),
        2,
      );
      const back = rows.flatMap((row) => row.back(row.g.map((value, k) => value * weight.values[k])));
      check(`${name} backward`, drawn, gradients[0], back, 8);
      const sums = (map: (row: (typeof rows)[number], k: number) => number) =>
        Array.from({ length }, (_, k) => total(rows.map((row) => map(row, k))));
      const size = 4 + Math.sqrt(rows.length);
      check(
        `${name} weight`,
        drawn,
        gradients[1],
        sums(({ n, g }, k) => n[k] * g[k]),
        size,
      );
      if (isCentered)
        check(
          `${name} bias`,
          drawn,
          gradients[2],
          sums(({ g }, k) => g[k]),
          size,
        );
    }
  }
  expect(random.next()).toBeLessThan(1);
});

test.each(dtypes)("crossEntropy of %s is accurate", (dtype) => {
  const random = new Random(hash(`short cross entropies of ${dtype}`));
  for (let round = 0; round < rounds; round++) {
    const drawn = drawCase(random, dtype, { isLast: true });
    const { block } = drawn;
    const classes = block.shape.at(-1)!;
    const count = elementCount(block.shape) / classes;
    const targets = Array.from({ length: count }, () => random.integer(-1, classes - 1)); // −1 is ignored
    const weights = Array.from({ length: classes }, () => rounder(dtype)(random.integer(1, 8) / 4));
    const labelSmoothing = random.integer(0, 1) * 0.25;
    const hasWeights = random.integer(0, 1) === 1;
    const rank = block.shape.length;
    const x = permute(drawn.x, [0, rank - 1, ...Array.from({ length: rank - 2 }, (_, axis) => axis + 1)]);
    const target = tensor(targets.map(BigInt), { shape: block.shape.slice(0, -1), dtype: "int64" });
    const options = {
      ...({ reduction: "none", ignoreIndex: -1, labelSmoothing } as const),
      ...(hasWeights && { weight: tensor(weights, { dtype }) }),
    };
    const { output, given, gradients } = differentiate(
      random,
      [x],
      (input) => crossEntropy(input, target, options) as Tensor,
    );
    const rows = targets.map((y, row) => {
      const logits = block.values.slice(row * classes, (row + 1) * classes);
      const w = hasWeights ? weights : logits.map(() => 1);
      // loss = Σ share[c] (log Σ exp(x) − x[c])
      const shares = w.map((weight, c) => weight * ((c === y ? 1 - labelSmoothing : 0) + labelSmoothing / classes));
      const logSum = logSumOf(logits);
      const loss = y < 0 ? 0 : total(shares.map((share, c) => share * (logSum - logits[c])));
      const powers = softmaxOf(logits).map((p) => p * total(shares));
      return { loss, gradient: powers.map((p, c) => (y < 0 ? 0 : (p - shares[c]) * given.values[row])) };
    });
    check(
      "crossEntropy",
      drawn,
      output,
      rows.map(({ loss }) => loss),
      4,
    );
    const back = permute(gradients[0], [0, ...Array.from({ length: rank - 2 }, (_, axis) => axis + 2), 1]);
    check(
      "crossEntropy backward",
      drawn,
      back,
      rows.flatMap(({ gradient }) => gradient),
      4,
    );
  }
  expect(random.next()).toBeLessThan(1);
});

const rowsOf = { cpu: 9000, metal: 1000 } as const;
testSameBits((backend) => {
  const shape = [rowsOf[backend], 7];
  const { values } = makeBlock({ shape, values: { low: -4, high: 4 } }, "float32", new Random(5));
  const x = tensor(values, { shape, requiresGrad: true });
  const weight = tensor([1, 2, 3, 4, 5, 6, 7], { requiresGrad: true });
  const results = [softmax(x, 1), logSoftmax(x, 1), layerNorm(x, [7], weight)] as Tensor[];
  const ones = results.map((result) => tensor(values.toReversed(), { shape: result.shape }));
  const gradients = results.flatMap((result, at) => {
    const inputs = at === 2 ? [x, weight] : [x];
    return grad([result], inputs, { gradOutputs: [ones[at]] });
  });
  return [...results, ...gradients].map((result) => result.dataSync());
});
