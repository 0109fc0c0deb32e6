/**
 * In-place methods: afterwards the tensor equals the result of the corresponding function, for drawn dtypes, layouts
 * and operands.
 */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { OrchardError } from "../../../src/core/errors.ts";
import * as o from "../../../src/index.ts";
import { definitions } from "../../../src/ops/elementwise/define.ts";
import { inPlaceRows } from "../../../src/ops/inplace/rows.ts";
import { type DType, dtypes, isFloat } from "../../../src/tensor/dtype.ts";
import { sameShape } from "../../../src/tensor/shape.ts";
import { repeats } from "../../support/repeats.ts";
import { Random } from "../samples.ts";

type Tensor = o.Tensor;
type Method = (...rest: readonly unknown[]) => Tensor;
type Target = Pick<Tensor, "shape" | "dtype" | "size">;
type Draw = (x: Target, random: Random) => readonly unknown[];

const one = <T>(random: Random, items: readonly T[]): T => items[random.integer(0, items.length - 1)]!;
const generator = (random: Random) => new o.Generator(random.integer(0, 1e6));

/** A tensor of a drawn layout: contiguous, transposed, every second column, or a window of a larger one. */
function drawn(random: Random, shape: readonly number[], dtype: DType, low = -3, high = 4): Tensor {
  const make = (sizes: readonly number[]): Tensor => {
    const x = o.uniform(low, high, sizes, { dtype: "float64", generator: generator(random) });
    return o.toDType(dtype === "uint32" || dtype === "uint8" || dtype === "bool" ? o.abs(x) : x, dtype);
  };
  if (shape.length !== 2) return make(shape);
  const [rows, columns] = shape as [number, number];
  const layout = one(random, ["contiguous", "transposed", "strided", "window"]);
  if (layout === "transposed") return o.transpose(make([columns, rows]), 0, 1);
  if (layout === "strided") return o.slice(make([rows, 2 * columns]), { dim: 1, step: 2 });
  if (layout === "window") return o.narrow(o.narrow(make([rows + 2, columns + 3]), 0, 1, rows), 1, 2, columns);
  return make(shape);
}

/** Another operand: of x's shape, one that is broadcast, one that is too large, a number; of any dtype. */
const other: Draw = ({ shape, dtype }, random) => {
  const [rows, columns] = shape as unknown as [number, number];
  const kind = random.integer(0, 5);
  if (kind === 0) return [random.integer(1, 3)];
  const sizes = kind === 1 ? [columns] : kind === 2 ? [rows, 1] : kind === 3 ? [2, rows, columns] : [...shape];
  return [drawn(random, sizes, random.integer(0, 2) === 0 ? one(random, dtypes) : dtype)];
};
const nothing: Draw = () => [];
const alike: Draw = ({ shape, dtype }, random) => [drawn(random, shape, dtype), drawn(random, shape, dtype)];
const places = (random: Random, count: number, end: number): Tensor =>
  o.randint(0, end, [count], { generator: generator(random) });
const indices = (random: Random, shape: readonly number[], end: number): Tensor =>
  o.randint(0, end, [...shape], { generator: generator(random) });
const distinct = (random: Random, count: number): Tensor => o.randperm(count, { generator: generator(random) });
const slices: Draw = ({ shape, dtype }, random) => [1, distinct(random, shape[1]), drawn(random, shape, dtype)];
const elements: Draw = ({ shape, dtype }, random) => [0, indices(random, shape, shape[0]), drawn(random, shape, dtype)];
const product =
  (left: (rows: number, columns: number) => readonly [readonly number[], readonly number[]]): Draw =>
  ({ shape, dtype }, random) => {
    const [a, b] = left(shape[0], shape[1]);
    return [drawn(random, a, dtype), drawn(random, b, dtype), { beta: 2, alpha: 3 }];
  };
const randomly: Draw = (_, random) => [{ p: 0.25, generator: generator(random) }];

/** The arguments of rows that are not elementwise operations of one or two operands. */
const others: Readonly<Record<string, Draw>> = {
  addbmm_: product((rows, columns) => [
    [2, rows, 3],
    [2, 3, columns],
  ]),
  addcdiv_: alike,
  addcmul_: (x, random) => [...alike(x, random), { value: 2 }],
  addmm_: product((rows, columns) => [
    [rows, 3],
    [3, columns],
  ]),
  addmv_: product((rows) => [[rows, 4], [4]]),
  addr_: product((rows, columns) => [[rows], [columns]]),
  alphaDropout_: randomly,
  baddbmm_: ({ shape: [count, rows, columns], dtype }, random) => [
    drawn(random, [count, rows, 3], dtype),
    drawn(random, [count, 3, columns], dtype),
  ],
  celu_: () => [0.5],
  clamp_: (x, random) => one<readonly unknown[]>(random, [[-1, 1], [{ min: 1 }], [...other(x, random)]]),
  cumprod_: () => [0],
  cumsum_: () => [-1],
  dropout_: randomly,
  elu_: () => [0.5],
  floatPower_: other,
  fmax_: other,
  fmin_: other,
  gammainc_: other,
  gammaincc_: other,
  gelu_: () => [{ approximate: "tanh" }],
  hardtanh_: () => [-0.5, 1.5],
  heaviside_: other,
  indexAdd_: (x, random) => [...slices(x, random), { alpha: 2 }],
  indexCopy_: slices,
  indexFill_: ({ shape }, random) => [0, places(random, 2, shape[0]), 2],
  indexPut_: ({ shape, dtype }, random) => [[distinct(random, shape[0])], drawn(random, shape, dtype)],
  indexReduce_: (x, random) => [...slices(x, random), "amax"],
  ldexp_: ({ shape }, random) => [drawn(random, shape, "int32")],
  leakyRelu_: () => [0.25],
  lerp_: ({ shape, dtype }, random) => [drawn(random, shape, dtype), 0.25],
  logit_: () => [1e-3],
  maskedScatter_: ({ shape, dtype }, random) => [drawn(random, shape, "bool"), drawn(random, shape, dtype)],
  mvlgamma_: () => [1],
  nanToNum_: () => [7, 8, 9],
  polygamma_: () => [1],
  pow_: other,
  put_: ({ size, dtype }, random) => [distinct(random, size), drawn(random, [size], dtype)],
  renorm_: () => [2, 0, 1],
  round_: (_, random) => one<readonly unknown[]>(random, [[], [{ decimals: 1 }]]),
  rrelu_: (_, random) => [0.1, 0.3, true, { generator: generator(random) }],
  scatterAdd_: elements,
  scatterReduce_: (x, random) => [...elements(x, random), "amin"],
  scatter_: ({ shape, dtype }, random) => [
    0,
    indices(random, [1, shape[1]], shape[0]),
    random.integer(0, 1) === 0 ? 3 : drawn(random, [1, shape[1]], dtype),
  ],
  softplus_: () => [2, 5],
  threshold_: () => [0.5, 2],
  tril_: (_, random) => [random.integer(-1, 1)],
  triu_: (_, random) => [random.integer(-1, 1)],
};

const drawOf = (name: string): Draw =>
  others[name] ?? (definitions.get(name.slice(0, -1))?.operands === 2 ? other : nothing);

const kindOf = (dtype: DType): number =>
  dtype.startsWith("complex") ? 3 : isFloat(dtype) ? 2 : dtype === "bool" ? 0 : 1;

/** Calls the function of a row. A generator in the arguments has the same state as for the method. */
const functionOf = (name: string) => inPlaceRows[name as keyof typeof inPlaceRows] as (...values: unknown[]) => Tensor;

const bytesOf = (x: Tensor): Uint8Array => {
  const { buffer, byteOffset, byteLength } = o.contiguous(o.clone(x)).dataSync();
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
};

const failureOf = (call: () => unknown): OrchardError | undefined => {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof OrchardError) return error;
    throw error;
  }
};

/** Whether the result can be written into x: PyTorch's rule. */
const fits = (result: Tensor, x: Tensor): boolean =>
  sameShape(result.shape, x.shape) && kindOf(result.dtype) <= kindOf(x.dtype);

/** The elements of a tensor and those between and before them in memory. */
function wholeOf({ storage, dtype, shape, strides, offset }: Tensor): Tensor {
  const last = shape.reduce((at, size, axis) => at + (size - 1) * strides[axis], offset);
  return new o.Tensor(storage, dtype, [last + 1], [1], 0);
}

const ranks: Readonly<Record<string, number>> = { addmv_: 1, baddbmm_: 3 };

/** Compares a drawn call of a method with the function on a copy of the same layout. Returns whether it succeeded. */
function check(name: string, seed: number): boolean {
  const random = new Random(seed);
  const shape = Array.from({ length: ranks[name] ?? 2 }, () => random.integer(1, 7));
  const dtype =
    random.integer(0, 2) > 0 ? one(random, ["float32", "float64", "float16"] as const) : one(random, dtypes);
  const x = drawn(random, shape, dtype);
  const copy = o.clone(wholeOf(x));
  const target = new o.Tensor(copy.storage, dtype, x.shape, x.strides, x.offset);
  const state = random.integer(0, 1e6);
  const [forFunction, forMethod] = [state, state].map((same) => drawOf(name)(x, new Random(same)));
  const { version } = x.storage;
  let result: Tensor | undefined;
  const failure = failureOf(() => {
    result = functionOf(name)(target, ...forFunction);
  });
  const refusal = failureOf(() => {
    expect((x as unknown as Record<string, Method>)[name](...forMethod)).toBe(x);
  });
  if (result === undefined || !fits(result, x)) {
    expect(refusal?.message).toStartWith(`[${name}]`);
    expect(refusal?.constructor).toBe(failure?.constructor ?? refusal?.constructor);
    expect(bytesOf(wholeOf(x))).toEqual(bytesOf(copy));
    return false;
  }
  expect(refusal).toBeUndefined();
  if (result !== target) {
    expect(x.storage.version).toBeGreaterThan(version);
    o.copy_(target, result);
  }
  expect(bytesOf(wholeOf(x))).toEqual(bytesOf(copy));
  for (const value of forMethod) if (o.Tensor.isTensor(value)) expect(value.isDisposed).toBe(false);
  return true;
}

describe.each(["cpu", "reference", "metal"] as const)("methods in place on %s", (backend) => {
  test.each(Object.keys(inPlaceRows))("%s stores the result of the function", (name) => {
    withBackend(backend, () => {
      let succeeded = 0;
      const rounds = repeats({ usual: backend === "cpu" ? 12 : 3, all: 200 });
      for (let round = 0; round < rounds; round++) succeeded += Number(check(name, 1000 * round + name.length));
      if (backend === "cpu") expect(succeeded).toBeGreaterThan(0);
    });
  });
});

/** A valid call: the first of drawn ones with a float32 matrix that succeeds. */
function validCall(name: string): readonly [shape: readonly number[], rest: readonly unknown[]] {
  const shape = [3, 3, 3].slice(0, ranks[name] ?? 2);
  for (let seed = 1; ; seed++) {
    const x = o.ones(shape, { dtype: dtypeFor(name) });
    const rest = drawOf(name)(x, new Random(seed));
    const isValid = failureOf(() => x.clone()[name as "exp_"](...(rest as []))) === undefined;
    if (isValid) return [shape, rest];
    if (seed > 40) throw new Error(`no valid call of ${name} was drawn`);
  }
}

const ofIntegers = /^(bitwise|gcd|lcm)/;
const dtypeFor = (name: string): DType =>
  ofIntegers.test(name) ? "int32" : name === "floatPower_" ? "float64" : "float32";

describe("every method follows the rules of methods in place", () => {
  test.each(Object.keys(inPlaceRows))("%s follows the rules", (name) => {
    const [shape, rest] = validCall(name);
    const call = (x: Tensor, ...more: readonly unknown[]) =>
      (x as unknown as Record<string, Method>)[name](...rest, ...more);
    const make = (options = {}) => o.ones(shape, { dtype: dtypeFor(name), ...options });
    // Backward detects that a method has changed a saved tensor.
    const saved = o.full(shape, 0.5);
    const loss = o.sum(o.mul(o.ones(shape, { requiresGrad: true }), saved));
    const isChanged = failureOf(() => call(saved)) === undefined && saved.storage.version > 0;
    if (isChanged) expect(failureOf(() => loss.backward())?.message).toContain("was changed in place");
    // An expanded tensor, and a disposed one.
    const expanded = o.expand(o.ones([1], { dtype: dtypeFor(name) }), shape);
    expect(failureOf(() => call(expanded))?.code).toBe("repeats");
    const gone = make();
    gone.dispose();
    expect(failureOf(() => call(gone))?.code).toBe("disposed");
    expect(failureOf(() => call(make(), ...Array(20).fill({})))).toBeInstanceOf(o.ArgumentError);
    if (ofIntegers.test(name)) return;
    // Leaves and results of a graph, and operands that need a gradient.
    for (const x of [make({ requiresGrad: true }), o.mul(make({ requiresGrad: true }), 1)]) {
      expect(failureOf(() => call(x as Tensor))?.code).toBe("inPlace");
      o.noGrad(() => expect(call(x as Tensor)).toBe(x as Tensor));
    }
  });

  test("an operand that requires a gradient is rejected, except where the result has none", () => {
    const weight = o.ones([3], { requiresGrad: true });
    const x = () => o.ones([3]);
    for (const call of [() => x().atan2_(weight), () => x().lerp_(x(), weight), () => x().clamp_({ min: weight })])
      expect(failureOf(call)?.code).toBe("inPlace");
    expect(x().gt_(weight).toArray()).toEqual([0, 0, 0]);
    expect(o.noGrad(() => x().atan2_(weight)).requiresGrad).toBe(false);
  });

  test("a function that returns x itself leaves it alive, and a result of another shape is rejected", () => {
    const x = o.tensor([1, 2]);
    for (const call of [() => x.dropout_(0), () => x.dropout_(0.5, false), () => x.alphaDropout_(0)])
      expect([call() === x, x.isDisposed, x.toArray()]).toEqual([true, false, [1, 2]]);
    expect(failureOf(() => x.atan2_(o.ones([1, 2])))?.code).toBe("shapesDiffer");
    expect(failureOf(() => o.tensor([[1, 2]]).atan2_(o.ones([2])))).toBeUndefined();
  });

  test("integers reject float results, and floats hold bools", () => {
    const integers = o.tensor([1n, 4n]);
    for (const name of ["exp_", "sqrt_", "sigmoid_"] as const)
      expect(failureOf(() => integers[name]())?.message).toStartWith(`[${name}] the result is float32, which int64[2]`);
    expect(failureOf(() => integers.clamp_(0.5))?.code).toBe("kindDiffers");
    const wave = o.complex(o.tensor([1, 2]), o.tensor([3, 4]));
    expect(failureOf(() => o.tensor([1, 2]).add_(wave))?.code).toBe("kindDiffers");
    expect(failureOf(() => o.tensor([1, 2]).pow_(wave))?.code).toBe("kindDiffers");
    expect(integers.pow_(2).toArray()).toEqual([1n, 16n]);
    expect(o.tensor([1.5, -2]).lt_(0).toArray()).toEqual([0, 1]);
    expect(failureOf(() => o.tensor([2]).floatPower_(2))?.message).toStartWith("[floatPower_] the result is float64");
  });
});

/** Operations whose elements are computed in one pass, in several, and by two formulas. */
const inOnePass = ["exp", "neg", "square", "bitwiseNot", "mul", "sub", "div", "atan2"] as const;
const inSeveral = ["sin", "cos", "tan", "pow", "remainder", "floorDivide"] as const;
const ofOne = new Set<string>(["exp", "neg", "square", "bitwiseNot", "sin", "cos", "tan"]);

/** A second operand: a number, a vector, one element, the tensor itself, or elements that it shares. */
const partners: readonly ((x: Tensor, random: Random) => unknown)[] = [
  (_, random) => random.integer(1, 4),
  (x, random) => drawn(random, x.shape, x.dtype, 1, 5),
  (x, random) => drawn(random, [1], x.dtype, 1, 5),
  (x) => x,
  (x) => o.narrow(x, 0, 0, 1),
];

describe.each(["cpu", "metal", "reference"] as const)("results are in the tensor's memory on %s", (backend) => {
  test("drawn lengths, angles of any size, and operands that share the memory are right", () =>
    withBackend(backend, () => {
      const random = new Random(41);
      for (let round = repeats({ usual: 40, all: 1000 }); round > 0; round--) {
        const name = one(random, [...inOnePass, ...inSeveral]);
        const dtype = name === "bitwiseNot" ? "int32" : one(random, ["float32", "float16", "float32"] as const);
        const high = one(random, [4, 3e4, dtype === "float32" ? 3e7 : 4]);
        const x = drawn(random, [random.integer(1, 5000)], dtype, 0.5, high);
        const rest = ofOne.has(name) ? [] : [one(random, partners)(x, random)];
        const expected = (o as unknown as Record<string, Method>)[name](x, ...rest).toArray();
        (x as unknown as Record<string, Method>)[`${name}_`](...rest);
        expect({ name, rest, elements: x.toArray() }).toEqual({ name, rest, elements: expected });
      }
    }));

  test("nothing is copied, unless the tensor is a view or an operand shares its memory", () =>
    withBackend(backend, () => {
      const copies = () => o.codepaths().reduce((sum, each) => sum + (each.operation === "copy" ? each.calls : 0), 0);
      const copiesOf = (body: () => unknown): number => {
        const before = copies();
        body();
        return copies() - before;
      };
      const [x, y] = [o.ones([2, 3]), o.ones([3])];
      for (const body of [() => x.add_(1), () => x.mul_(y), () => x.exp_(), () => x.atan2_(y), () => x.sub_(0.5)])
        expect(copiesOf(body)).toBe(0);
      for (const body of [() => x.mul_(o.select(x, 0, 1)), () => o.select(x, 0, 0).add_(1), () => x.gt_(y)])
        expect(copiesOf(body)).toBe(1);
      expect(x.dtype).toBe("float32");
    }));
});
