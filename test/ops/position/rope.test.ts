/** Rotary position embedding on every backend. */
import { afterAll, describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { detach, grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { rotationOf } from "../../../src/ops/position/frequencies.ts";
import { type RopeOptions, rope } from "../../../src/ops/position/rope.ts";
import { randn } from "../../../src/ops/random/randn.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { isRowMajor } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { floats } from "../elementwise/oracle.ts";
import { checkFindings, tested, testTable } from "../run.ts";
import { type Block, type Layout, layouts } from "../samples.ts";
import type { Expected, Round, Sample } from "../table.ts";
import { compare } from "../tolerance.ts";

/** A call's options, with positions as numbers: [seq] or [batch, seq]. */
interface Call extends Omit<RopeOptions, "positions"> {
  readonly positions?: { readonly list: readonly number[]; readonly shape: readonly number[]; readonly dtype: DType };
}

function callOf(x: Tensor, { positions, ...options }: Call): Tensor {
  if (!positions) return rope(x, options);
  const { list, shape, dtype } = positions;
  return rope(x, { ...options, positions: tensor([...list], { shape, dtype }) as Tensor<"int64"> });
}

/** The definition, without scaling of the frequencies, which fixtures cover. */
function turned({ shape, values, dtype }: Block, call: Call, round: Round): Expected {
  const { offset = 0, positions, base = 10_000, interleaved = false, dim = shape.at(-1)! } = call;
  const [seq, size] = shape.slice(-2) as [number, number];
  const rowsOfBatch = values.length / size / shape[0];
  const result = [...values];
  const roundings = new Array<number>(values.length).fill(0);
  for (let row = 0; row < values.length / size; row++) {
    const batch = positions?.shape.length === 2 ? Math.floor(row / rowsOfBatch) : 0;
    const position = offset + (positions ? positions.list[batch * seq + (row % seq)] : row % seq);
    for (let pair = 0; pair < dim / 2; pair++) {
      const angle = position / base ** ((2 * pair) / dim);
      const first = row * size + (interleaved ? 2 * pair : pair);
      const second = first + (interleaved ? 1 : dim / 2);
      const [a, b, cosine, sine] = [values[first], values[second], Math.cos(angle), Math.sin(angle)];
      result[first] = round(round(a * cosine) - round(b * sine));
      result[second] = round(round(a * sine) + round(b * cosine));
      // In float64 an angle is a rounded product, also in the reference.
      if (dtype === "float64")
        roundings[first] = roundings[second] = (Math.abs(a) + Math.abs(b)) * (4 + 2 * Math.abs(angle));
    }
  }
  return { shape, values: result, roundings };
}

/** The largest angle. */
const furthest = ({ shape }: Block, { offset = 0, positions: given }: Call): number =>
  Math.abs(offset) + Math.max(shape.at(-2)!, ...(given?.list ?? []));

const sample = (shape: readonly number[], options: Call = {}, layout: Layout = "contiguous"): Sample<Call> => ({
  inputs: [{ shape, layout }],
  options,
});

const positions = (dtype: DType, shape: readonly number[], ...list: number[]) => ({ list, shape, dtype });

const samples: readonly Sample<Call>[] = [
  sample([1, 2]),
  sample([5, 8]),
  sample([0, 4]),
  sample([2, 0, 4]),
  sample([3, 0]),
  ...layouts.map((layout) => sample([2, 3, 5, 8], {}, layout)),
  ...layouts.map((layout) => sample([2, 3, 5, 10], { interleaved: true, offset: 3 }, layout)),
  sample([3, 7], { dim: 4 }),
  sample([3, 7], { dim: 4, interleaved: true }, "strided"),
  sample([3, 4], { dim: 0 }),
  sample([2, 1, 6], { offset: 77, base: 500_000 }),
  sample([4, 6], { offset: -9 }),
  sample([3, 2, 4, 6], { positions: positions("int64", [4], 7, 0, 3, 1) }),
  sample([3, 2, 4, 6], { positions: positions("int32", [3, 4], ...Array.from({ length: 12 }, (_, at) => at * 5)) }),
  sample([2, 3, 4], { positions: positions("int64", [2, 3], 1, 2, 3, -1, -2, -3), interleaved: true }, "transposed"),
  sample([1, 2, 1, 2, 1, 2, 3, 4], {}, "strided"),
  sample([2, 37, 64], { interleaved: true }),
];

testTable("rope", [
  {
    name: "rope",
    compute: ([x], options) => callOf(x, options),
    dtypes: floats,
    samples,
    oracle: ([x], options, round) => turned(x, options, round),
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: ([x], call) => (x.dtype === "float64" ? 4 + 2 * furthest(x, call) : 0),
  },
]);

const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as Float32Array);
const drawn = (shape: readonly number[], dtype: "float32" | "float64" = "float32"): Tensor =>
  randn(shape, { dtype, generator: new Generator(5) });

describe.each(tested)("rope on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  // An angle that is a product of float32 would be off by 0.004 at 100,000, and by 0.06 at a million.
  test.each([100_003, 1_048_576, 16_777_213])("angles at position %d are as accurate as at 0", (offset) => {
    const x = on(() => drawn([4, 128]));
    const block = { shape: [4, 128], dtype: "float32", values: numbers(x) } as const;
    for (const interleaved of [false, true]) {
      const { values } = turned(block, { offset, interleaved }, (value) => value);
      const { values: plain } = turned(block, { offset, interleaved }, Math.fround);
      const got = numbers(on(() => rope(x, { offset, interleaved })));
      const given = numbers(
        on(() => rope(x, { positions: tensor([0, 1, 2, 3], { dtype: "int32" }), offset, interleaved })),
      );
      expect(compare("float32", got, values, plain, { flash: true })).toBeUndefined();
      expect(given).toEqual(got);
    }
  });

  test("the result of a transposed view is a transposed view, forward and backward, without a copy", () => {
    on(() => {
      const packed = drawn([2, 5, 3, 8]);
      packed.requiresGrad = true;
      const heads = transpose(packed, 1, 2);
      const y = rope(heads);
      expect(isRowMajor(packed.shape, transpose(y, 1, 2).strides)).toBe(true);
      const cotangent = transpose(drawn([2, 5, 3, 8]), 1, 2);
      const [gradient] = grad([y], [heads], { gradOutputs: [cotangent] });
      expect(isRowMajor(packed.shape, transpose(gradient, 1, 2).strides)).toBe(true);
    });
  });

  test("the gradient rotates back", () => {
    on(() => {
      const x = drawn([3, 6, 16]);
      x.requiresGrad = true;
      const y = rope(x, { offset: 1000, interleaved: true, dim: 12 });
      const [back] = grad([y], [x], { gradOutputs: [detach(y)] });
      // Two rotations, each with a table's error and two roundings.
      expect(compare("float32", numbers(back), numbers(x), undefined, { scaleUlps: 4 })).toBeUndefined();
      if (backend === "metal") checkFindings({ name: "rope" });
    });
  });
});

test.each(["cpu", "reference"] as const)("rope has gradients of gradients on %s", (backend) => {
  withBackend(backend, () => {
    const [cotangent, x] = [drawn([2, 3, 6], "float64"), drawn([2, 3, 6], "float64")];
    for (const leaf of [cotangent, x]) leaf.requiresGrad = true;
    const scaling = { type: "yarn", factor: 2, originalContextLength: 8 } as const;
    const gradient = (own: Tensor, input: Tensor) => {
      input.requiresGrad = true; // also in float64, for finite differences
      return enableGrad(
        () => grad([rope(input, { dim: 4, scaling })], [input], { gradOutputs: [own], createGraph: true })[0],
      );
    };
    gradcheck(gradient, [cotangent, x]);
  });
});

describe("rope on cpu equals the other backend", () => {
  const { native } = cpuLibrary();
  const { isa: initial, isas } = cpuInfo(native);
  afterAll(() => {
    configure(native, "isa", initial);
    configure(native, "threads", "auto");
  });
  const compute = (options: RopeOptions) =>
    withBackend("cpu", () => [
      ...numbers(rope(drawn([3, 5, 41, 64]), options)),
      ...numbers(rope(transpose(drawn([3, 41, 5, 70]), 1, 2), options)),
    ]);

  test.each(isas)("with %s it equals reference, on one thread and on several", (isa) => {
    configure(native, "isa", isa);
    for (const options of [{}, { interleaved: true, offset: 9 }]) {
      const wanted = withBackend("reference", () => [
        ...numbers(rope(drawn([3, 5, 41, 64]), options)),
        ...numbers(rope(transpose(drawn([3, 41, 5, 70]), 1, 2), options)),
      ]);
      configure(native, "threads", "1");
      const single = compute(options);
      configure(native, "threads", "4");
      expect(compute(options)).toEqual(single);
      expect(compare("float32", single, wanted, undefined, { scaleUlps: 1 })).toBeUndefined();
    }
  });
});

test.skipIf(!tested.includes("metal"))("rows too wide for metal go to the cpu", () => {
  const x = withBackend("metal", () => drawn([2, 1000]));
  expect(() => withStrict(true, () => withBackend("metal", () => rope(x)))).toThrow(
    "more than 896 elements of a row rotate",
  );
  const wide = numbers(withBackend("metal", () => rope(x)));
  expect(wide).toEqual(numbers(withBackend("cpu", () => rope(x))));
});

describe("kinds of scaling change the frequencies of rope", () => {
  test("linear scaling divides all frequencies, and the other kinds only low ones", () => {
    const { frequencies: plain } = rotationOf(64, 10_000, undefined);
    expect(rotationOf(64, 10_000, { type: "linear", factor: 4 }).frequencies).toEqual(plain.map((each) => each / 4));
    const stretched = [
      { type: "yarn", factor: 4, originalContextLength: 2048 },
      { type: "llama3", factor: 4, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalContextLength: 2048 },
    ] as const;
    for (const scaling of stretched) {
      const { frequencies } = rotationOf(64, 10_000, scaling);
      expect(frequencies[0]).toBe(plain[0]);
      expect(frequencies.at(-1)).toBeCloseTo(plain.at(-1)! / 4, 12);
      expect(frequencies.toSorted((a, b) => b - a)).toEqual([...frequencies]);
    }
  });
});
