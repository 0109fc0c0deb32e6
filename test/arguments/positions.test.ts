/**
 * Positional arguments in PyTorch's order: each call with PyTorch's result (written by hand from its documentation),
 * and with the types that callers see.
 */
import { describe, expect, test } from "bun:test";
import { AutogradError } from "../../src/autograd/node.ts";
import { ArgumentError, DTypeError, OrchardError, ShapeError } from "../../src/core/errors.ts";
import * as o from "../../src/index.ts";
import { type Tensor, tensor } from "../../src/index.ts";

const x = tensor([[1, 2], [3, 4]]); // biome-ignore format: a matrix
const y = tensor([[10, 20], [30, 40]]); // biome-ignore format: a matrix
const row = tensor([3, 1, 2]);
const shapeOf = ({ shape }: Tensor) => [...shape];
const listOf = (value: Tensor) => value.toArray() as unknown;
const positions = tensor([[1n, 0n], [0n, 0n]]); // biome-ignore format: a matrix

describe("options can be passed by position", () => {
  test.each<readonly [string, () => Tensor, unknown]>([
    ["x.sum(1)", () => x.sum(1), [3, 7]],
    ["x.sum(1, true)", () => x.sum(1, true), [[3], [7]]],
    ["sum(x, 1, { keepdim })", () => o.sum(x, 1, { keepdim: true }), [[3], [7]]],
    ["sum(x, [0, 1])", () => o.sum(x, [0, 1]), 10],
    ["sum(x, undefined, true)", () => o.sum(x, undefined, true), [[10]]],
    ["diff(row, 1, 0, row)", () => o.diff(row, 1, 0, row), [-2, 1, 1, -2, 1]],
    ["diff(row, 0, 0, row, row)", () => o.diff(row, 0, 0, row, row), [3, 1, 2]],
    ["mean(x, 0)", () => o.mean(x, 0), [2, 3]],
    ["prod(x, -1)", () => o.prod(x, -1), [2, 12]],
    ["amax(x, 0, true)", () => o.amax(x, 0, true), [[3, 4]]],
    ["x.max(1).values", () => x.max(1).values, [2, 4]],
    ["x.min(0).values", () => x.min(0).values, [1, 2]],
    ["x.argmax(1)", () => x.argmax(1), [1n, 1n]],
    ["argmin(x, 0, true)", () => o.argmin(x, 0, true), [[0n, 0n]]],
    ["all(x, 1)", () => o.all(x, 1), [true, true]],
    ["norm(x, 1)", () => o.norm(x, 1), 10],
    ["norm(x, 1, 0)", () => o.norm(x, 1, 0), [4, 6]],
    ["x.var(0)", () => x.var(0), [2, 2]],
    ["std(x, 0, { correction: 0 })", () => o.std(x, 0, { correction: 0 }), [1, 1]],
    [
      "softmax(zeros, 0)",
      () => o.softmax(o.zeros(2, 4), 0),
      [
        [0.5, 0.5, 0.5, 0.5],
        [0.5, 0.5, 0.5, 0.5],
      ],
    ],
    [
      "cumsum(x, 0)",
      () => o.cumsum(x, 0),
      [
        [1, 2],
        [4, 6],
      ],
    ],
    [
      "cumprod(x, 1)",
      () => o.cumprod(x, 1),
      [
        [1, 2],
        [3, 12],
      ],
    ],
    [
      "cat([x, x], 1)",
      () => o.cat([x, x], 1),
      [
        [1, 2, 1, 2],
        [3, 4, 3, 4],
      ],
    ],
    [
      "stack([row, row], 1)",
      () => o.stack([row, row], 1),
      [
        [3, 3],
        [1, 1],
        [2, 2],
      ],
    ],
    ["split(row, 2, 0)[1]", () => o.split(row, 2, 0)[1], [2]],
    ["chunk(x, 2, 1)[0]", () => o.chunk(x, 2, 1)[0], [[1], [3]]],
    ["unbind(x, 1)[0]", () => o.unbind(x, 1)[0], [1, 3]],
    [
      "transpose(x, 0, 1)",
      () => o.transpose(x, 0, 1),
      [
        [1, 3],
        [2, 4],
      ],
    ],
    [
      "x.permute(1, 0)",
      () => x.permute(1, 0),
      [
        [1, 3],
        [2, 4],
      ],
    ],
    ["x.reshape(4)", () => x.reshape(4), [1, 2, 3, 4]],
    ["x.reshape(-1, 1)", () => x.reshape(-1, 1), [[1], [2], [3], [4]]],
    [
      "x.flip(0, 1)",
      () => x.flip(0, 1),
      [
        [4, 3],
        [2, 1],
      ],
    ],
    [
      "x.repeat(1, 2)",
      () => x.repeat(1, 2),
      [
        [1, 2, 1, 2],
        [3, 4, 3, 4],
      ],
    ],
    ["row.tile(2)", () => row.tile(2), [3, 1, 2, 3, 1, 2]],
    [
      "row.expand(2, -1)",
      () => row.expand(2, -1),
      [
        [3, 1, 2],
        [3, 1, 2],
      ],
    ],
    [
      "roll(x, 1, 0)",
      () => o.roll(x, 1, 0),
      [
        [3, 4],
        [1, 2],
      ],
    ],
    [
      "tril(x, -1)",
      () => o.tril(x, -1),
      [
        [0, 0],
        [3, 0],
      ],
    ],
    [
      "triu(x, 1)",
      () => o.triu(x, 1),
      [
        [0, 2],
        [0, 0],
      ],
    ],
    ["diag(x, 1)", () => o.diag(x, 1), [2]],
    ["diagonal(x, -1, 0, 1)", () => o.diagonal(x, -1, 0, 1), [3]],
    [
      "sort(x, 0, true).values",
      () => o.sort(x, 0, true).values,
      [
        [3, 4],
        [1, 2],
      ],
    ],
    ["argsort(row, 0, true)", () => o.argsort(row, 0, true), [0n, 2n, 1n]],
    ["topk(row, 2, 0, false).values", () => o.topk(row, 2, 0, false).values, [1, 2]],
    [
      "gather(x, 1, index)",
      () => o.gather(x, 1, positions),
      [
        [2, 1],
        [3, 3],
      ],
    ],
    [
      "gather(x, index, { dim })",
      () => o.gather(x, positions, { dim: 1 }),
      [
        [2, 1],
        [3, 3],
      ],
    ],
    ["indexSelect(x, 1, index)", () => o.indexSelect(x, 1, tensor([1n])), [[2], [4]]],
    [
      "scatterAdd(x, 1, index, y)",
      () => o.scatterAdd(x, 1, positions, y),
      [
        [21, 12],
        [73, 4],
      ],
    ],
    [
      "indexAdd(x, 0, index, y, { alpha })",
      () => o.indexAdd(x, 0, tensor([0n, 0n]), y, { alpha: 2 }),
      [
        [81, 122],
        [3, 4],
      ],
    ],
    [
      "takeAlongDim(x, index, 1)",
      () => o.takeAlongDim(x, positions, 1),
      [
        [2, 1],
        [3, 3],
      ],
    ],
    [
      "clamp(x, 2, 3)",
      () => o.clamp(x, 2, 3),
      [
        [2, 2],
        [3, 3],
      ],
    ],
    [
      "clamp(x, null, 2)",
      () => o.clamp(x, null, 2),
      [
        [1, 2],
        [2, 2],
      ],
    ],
    ["oneHot(index, 3)", () => o.oneHot(tensor([1n]), 3), [[0n, 1n, 0n]]],
    ["pad(row, [1, 0], 'constant', 9)", () => o.pad(row, [1, 0], "constant", 9), [9, 3, 1, 2]],
    ["leakyRelu(-x, 0.5)", () => o.leakyRelu(o.neg(row), 0.5), [-1.5, -0.5, -1]],
    [
      "hardtanh(x, 2, 3)",
      () => o.hardtanh(x, 2, 3),
      [
        [2, 2],
        [3, 3],
      ],
    ],
    [
      "dropout(x, 1)",
      () => o.dropout(x, 1),
      [
        [0, 0],
        [0, 0],
      ],
    ],
    [
      "dropout(x, 0.9, false)",
      () => o.dropout(x, 0.9, false),
      [
        [1, 2],
        [3, 4],
      ],
    ],
    ["slice(row, 0, 1, 3)", () => o.slice(row, 0, 1, 3), [1, 2]],
    [
      "einsum of a list",
      () => o.einsum("ij,jk->ik", [x, y]),
      [
        [70, 100],
        [150, 220],
      ],
    ],
    ["layerNorm(row, [3], weight)", () => o.layerNorm(tensor([1, 1]), [2], tensor([5, 5]), tensor([7, 8])), [7, 8]],
    ["div floor", () => o.div(tensor([7, -7]), 2, { roundingMode: "floor" }), [3, -4]],
    ["div trunc", () => tensor([7, -7]).div(2, { roundingMode: "trunc" }), [3, -3]],
    [
      "add alpha",
      () => x.add(y, { alpha: 2 }),
      [
        [21, 42],
        [63, 84],
      ],
    ],
    [
      "sub alpha",
      () => o.sub(x, 1, { alpha: 2 }),
      [
        [-1, 0],
        [1, 2],
      ],
    ],
    ["add alpha of integers", () => o.add(tensor([5n]), tensor([2n]), { alpha: 3 }), [11n]],
    [
      "x.T",
      () => x.T,
      [
        [1, 3],
        [2, 4],
      ],
    ],
    [
      "mT of a batch",
      () => o.stack([x, y]).mT,
      [
        [
          [1, 3],
          [2, 4],
        ],
        [
          [10, 30],
          [20, 40],
        ],
      ],
    ],
  ])("%s accepts its options by position", (_, call, expected) => expect(listOf(call())).toEqual(expected));

  test("sizes may be separate arguments, followed by options", () => {
    expect([o.zeros(2, 3), o.ones(2), o.empty(3, 1), o.rand(2, 2), o.randn(4)].map(shapeOf)).toEqual([
      ...[[2, 3], [2], [3, 1], [2, 2], [4]],
    ]);
    const whole: Tensor<"int64"> = o.zeros(2, 3, { dtype: "int64" });
    expect([whole.dtype, shapeOf(whole)]).toEqual(["int64", [2, 3]]);
    const digits = o.randint(10, [5]);
    expect([...digits.dataSync()].every((digit) => digit >= 0n && digit < 10n)).toBeTrue();
  });

  test("the result's type depends on the arguments", () => {
    const summed: Tensor<"float32"> = x.sum(1);
    const cast: Tensor<"int32"> = o.sum(x, 1, true, { dtype: "int32" });
    const other: Tensor<"int32"> = x.sum({ dim: 1, dtype: "int32" });
    const along: Tensor<"int64"> = x.max(1).indices;
    const all: Tensor<"float32"> = x.max();
    expect([summed, cast, other, along, all].map(({ dtype }) => dtype)).toEqual([
      ...(["float32", "int32", "int32", "int64", "float32"] as const),
    ]);
  });
});

describe("functions of tensors accept plain values", () => {
  test.each([
    ["numbers float32", () => o.full([2], 1), "float32"],
    ["bigints int64", () => o.full([2], 1n), "int64"],
    ["booleans bool", () => o.full([2], true), "bool"],
    ["arange of numbers float32", () => o.arange(3), "float32"],
    ["arange of bigints int64", () => o.arange(3n), "int64"],
    ["two numbers added float32", () => o.add(1, 2), "float32"],
    ["where of numbers float32", () => o.where(tensor([true]), 1, 0), "float32"],
    ["where of bigints int64", () => o.where(tensor([true]), 1n, 0n), "int64"],
    ["tensor() of numbers float32", () => tensor([1]), "float32"],
  ] as const)("%s accepts plain values in place of tensors", (_, make, dtype) =>
    expect((make() as Tensor).dtype).toBe(dtype),
  );

  test("a number keeps the dtype of an integer tensor", () => expect(o.add(tensor([1n]), 2).dtype).toBe("int64"));
});

describe("axes may be negative", () => {
  const cube = o.reshape(o.arange(24), 2, 3, 4);
  test.each<readonly [string, () => Tensor | readonly Tensor[], readonly number[]]>([
    ["sum", () => o.sum(cube, -1), [2, 3]],
    ["softmax", () => o.softmax(cube, -3), [2, 3, 4]],
    ["transpose", () => o.transpose(cube, -1, -3), [4, 3, 2]],
    ["permute", () => o.permute(cube, -1, 0, -2), [4, 2, 3]],
    ["movedim", () => o.movedim(cube, -1, -3), [4, 2, 3]],
    ["unsqueeze", () => o.unsqueeze(cube, -4), [1, 2, 3, 4]],
    ["stack", () => o.stack([cube, cube], -1), [2, 3, 4, 2]],
    ["cat", () => o.cat([cube, cube], -2), [2, 6, 4]],
    ["select", () => o.select(cube, -2, -1), [2, 4]],
    ["narrow", () => o.narrow(cube, -1, -2, 2), [2, 3, 2]],
    ["slice", () => o.slice(cube, { dim: -1, start: -3, end: -1 }), [2, 3, 2]],
    ["flatten", () => o.flatten(cube, -2, -1), [2, 12]],
    ["unflatten", () => o.unflatten(cube, -1, [2, -1]), [2, 3, 2, 2]],
    ["flip", () => o.flip(cube, -1), [2, 3, 4]],
    ["roll", () => o.roll(cube, -1, -2), [2, 3, 4]],
    ["diagonal", () => o.diagonal(cube, 0, -2, -1), [2, 3]],
    ["squeeze", () => o.squeeze(o.zeros(2, 1), -1), [2]],
    ["cumsum", () => o.cumsum(cube, -2), [2, 3, 4]],
    ["sort", () => o.sort(cube, -3).values, [2, 3, 4]],
    ["topk", () => o.topk(cube, 2, -2).values, [2, 2, 4]],
    ["argmax", () => o.argmax(cube, -1), [2, 3]],
    ["split", () => o.split(cube, 2, -1), [2, 3, 2]],
    ["unbind", () => o.unbind(cube, -1), [2, 3]],
    ["gather", () => o.gather(cube, -1, o.zeros(2, 3, 1, { dtype: "int64" })), [2, 3, 1]],
    ["norm", () => o.norm(cube, 2, -1), [2, 3]],
  ])("%s accepts negative indices", (_, call, shape) => {
    const result = call();
    expect(shapeOf(result instanceof o.Tensor ? result : result[0])).toEqual([...shape]);
  });
});

describe("arguments of the wrong type are rejected", () => {
  const loss = (options: object) => () => o.crossEntropy(o.zeros(1, 2), tensor([0n]), options as o.CrossEntropyOptions);
  const wrong =
    (call: (...values: never[]) => unknown, ...values: readonly unknown[]) =>
    () =>
      (call as (...values: readonly unknown[]) => unknown)(...values);
  test.each<readonly [string, () => unknown, new (...values: never[]) => Error, string]>([
    [
      "an option in PyTorch's spelling",
      loss({ label_smoothing: 0.1 }),
      ArgumentError,
      'did you mean "labelSmoothing"?',
    ],
    ["a misspelled option", wrong(o.sum, x, { keepdims: true }), ArgumentError, 'did you mean "keepdim"?'],
    [
      "an option of another function",
      wrong(o.abs, x, { dim: 1 }),
      ArgumentError,
      'there is no option "dim"; there are none',
    ],
    ["too many arguments", wrong(o.sum, x, 1, true, 2), ArgumentError, "at most 3 arguments by position, got 4"],
    ["a second argument of abs", wrong(o.abs, x, 1), ArgumentError, "at most 1 argument, got 2"],
    ["an argument twice", wrong(o.sum, x, 1, { dim: 0 }), ArgumentError, "dim is given twice, by position and by name"],
    ["abs(5)", wrong(o.abs, 5), ArgumentError, "[abs] expected x to be a tensor, got 5"],
    ["abs()", wrong(o.abs), ArgumentError, "[abs] missing argument x. Usage: abs(x)"],
    [
      "null among tensors",
      wrong(o.cat, [x, null]),
      ArgumentError,
      "to be an array of tensors, got [float32[2, 2], null]",
    ],
    ["cat(5)", wrong(o.cat, 5), ArgumentError, "[cat] expected tensors to be an array of tensors, got 5"],
    ['dim: "0"', wrong(o.sum, x, { dim: "0" }), ArgumentError, "[sum] expected dim to be an axis"],
    ["dim: 1.5", wrong(o.sum, x, 1.5), ShapeError, "from -2 to 1 for a tensor of rank 2, got 1.5"],
    ["a bigint as an axis", wrong(o.sum, x, 0n), ArgumentError, "got 0n"],
    ["a symbol as a dtype", wrong(o.zeros, 2, { dtype: Symbol("a") }), DTypeError, "got Symbol(a)"],
    ["a name of Object's as a dtype", wrong(o.zeros, 2, { dtype: "constructor" }), DTypeError, 'got "constructor"'],
    ["a shape with a hole", wrong(o.zeros, Object.assign([2], { 2: 3 })), ShapeError, "[zeros] expected shape"],
    ["an array that holds itself", wrong(o.tensor, cyclic()), ShapeError, "a rank of at most 8"],
    ["T of a batch", () => o.ones(1, 2, 3).T, ShapeError, "expected a matrix, got float32[1, 2, 3]"],
    ["mT of a vector", () => row.mT, ShapeError, "[mT] expected a matrix or a batch"],
    [
      "half an alpha for integers",
      wrong(o.add, tensor([1n]), 1, { alpha: 0.5 }),
      ArgumentError,
      "whole number for int64",
    ],
    [
      "a hook that is no function",
      wrong((hook: never) => leaf().registerHook(hook), 5),
      ArgumentError,
      "a function, got 5",
    ],
    ["a hook's result that is not a tensor", hookThatReturns(5), AutogradError, "a gradient or nothing, got 5"],
    [
      "requiresGrad = 1",
      wrong((value: never) => Object.assign(leaf(), { requiresGrad: value }), 1),
      ArgumentError,
      "got 1",
    ],
  ])("%s is rejected", (_, call, kind, message) => {
    expect(call).toThrow(kind);
    expect(call).toThrow(message);
  });
});

test("a sparse array of length 2^32 is rejected at once", () => {
  const holes = new Array(2 ** 32 - 1) as never;
  const calls = [o.zeros, o.tensor, o.cat, () => o.sum(x, holes), () => o.reshape(x, holes), () => o.split(x, holes)];
  for (const call of calls) expect(() => (call as (value: never) => unknown)(holes)).toThrow(OrchardError);
  const own = leaf();
  expect(() => o.grad(own.sum(), [own], { gradOutputs: holes })).toThrow(ArgumentError);
});

const leaf = () => tensor([1, 2], { requiresGrad: true });

function hookThatReturns(value: unknown): () => void {
  return () => {
    const own = leaf();
    own.registerHook(() => value as never);
    own.sum().backward();
  };
}

function cyclic(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}

describe("required arguments are passed by position, the others by position or by name", () => {
  test("schedules accept both forms", () => {
    const { step, multiStep, polynomial, cosineWarmRestarts, linear } = o.optim;
    expect(step(7, { gamma: 0.3 })(7)).toBe(0.3);
    expect(step(7, 0.3)(14)).toBe(0.3 ** 2);
    expect(multiStep([2, 4], 0.5)(4)).toBe(0.25);
    expect(polynomial(4, 2)(2)).toBe(0.25);
    expect(cosineWarmRestarts(2, 3, { floor: 1 })(1)).toBe(1);
    expect(linear(10, { from: 0.5, to: 1 })(0)).toBe(0.5);
    expect(() => step(7, 0.3, 5 as never)).toThrow("Usage: optim.step(stepSize, gamma?)");
  });

  test("layers accept both forms", () => {
    expect(new o.nn.MLP(8, { hidden: 5 }).up.weight.shape).toEqual([5, 8]);
    expect(new o.nn.SwiGLU(8, { hidden: 5 }).up.weight.shape).toEqual([5, 8]);
    expect(new o.nn.MultiHeadAttention(8, { heads: 2 }).heads).toBe(2);
    expect(() => new o.nn.MLP(8, { nonsense: 5 } as never)).toThrow(ArgumentError);
  });

  test("a proxy of a typed array is not trusted", () => {
    const array = Object.defineProperties(new Float32Array([1, 2, 3]), {
      buffer: { value: new ArrayBuffer(0) },
      byteOffset: { value: 3 },
      length: { value: 0 },
    });
    expect(listOf(o.fromArray(array))).toEqual([1, 2, 3]);
  });

  test("modules may be nested 20,000 deep", () => {
    let deep: o.nn.Module = new o.nn.Identity();
    for (let depth = 0; depth < 20_000; depth++) deep = new o.nn.ModuleList([deep]);
    for (const run of [() => deep.stateDict(), () => deep.eval(), () => deep.modules(), () => String(deep)])
      expect(run).toThrow("expected modules nested at most 1000 deep");
  });
});
