import { describe, expect, test } from "bun:test";
import { ArgumentError, DisposedError, DTypeError, type OrchardError, ShapeError } from "../../../src/core/errors.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { scaledDotProductAttention } from "../../../src/ops/attention/scaled_dot_product_attention.ts";
import { ones, zeros } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { DType } from "../../../src/tensor/dtype.ts";

type Kind = new (...parameters: never[]) => OrchardError;
type Shapes = readonly [readonly number[], readonly number[], readonly number[]];

/**
 * Rejected calls: the test's name, the shapes of q, k and v, the options, the error's class, and words of its message.
 */
type Row = readonly [string, Shapes, Readonly<Record<string, unknown>>, Kind, ...string[]];

const good: Shapes = [
  [2, 4, 5, 8],
  [2, 2, 7, 8],
  [2, 2, 7, 3],
];
const packed: Shapes = [
  [1, 2, 6, 8],
  [1, 2, 6, 8],
  [1, 2, 6, 8],
];
const large: Shapes = [
  [1, 1, 2, 257],
  [1, 1, 2, 257],
  [1, 1, 2, 4],
];

const shapes: readonly Row[] = [
  [
    "rank 2",
    [
      [5, 8],
      [7, 8],
      [7, 3],
    ],
    {},
    ShapeError,
    "float32[5, 8]",
    "[batch, rows, dim]",
  ],
  [
    "rank 5",
    [
      [1, 2, 4, 5, 8],
      [2, 2, 7, 8],
      [2, 2, 7, 3],
    ],
    {},
    ShapeError,
    "[batch, heads, rows, dim]",
  ],
  ["ranks that differ", [[2, 5, 8], good[1], good[2]], {}, ShapeError, "all to be"],
  ["batches that differ", [[3, 4, 5, 8], good[1], good[2]], {}, ShapeError, "equal batches"],
  ["a batch of v that differs", [good[0], good[1], [1, 2, 7, 3]], {}, ShapeError, "equal batches"],
  ["dims that differ", [[2, 4, 5, 9], good[1], good[2]], {}, ShapeError, "equal last axes of q and k"],
  ["keys that differ", [good[0], good[1], [2, 2, 6, 3]], {}, ShapeError, "same heads and rows"],
  ["heads of k and v that differ", [good[0], good[1], [2, 4, 7, 3]], {}, ShapeError, "same heads and rows"],
  ["heads that are not a multiple", [[2, 3, 5, 8], good[1], good[2]], {}, ShapeError, "(3)", "multiple", "(2)"],
  ["heads without those of keys", [good[0], [2, 0, 7, 8], [2, 0, 7, 3]], {}, ShapeError, "(4)", "(0)"],
  ["no dim", [[2, 4, 5, 0], [2, 2, 7, 0], good[2]], {}, ShapeError, "at least one element"],
  ["a dim of 257", large, { path: "fused" }, ArgumentError, "257", 'path: "unfused"'],
];

const numbers: readonly Row[] = [
  ["dropout of 1", good, { dropout: 1 }, ArgumentError, "dropout", "[0, 1)", "got 1"],
  ["dropout below 0", good, { dropout: -0.1 }, ArgumentError, "-0.1"],
  ["dropout NaN", good, { dropout: Number.NaN }, ArgumentError, "NaN"],
  ["dropout that is not a number", good, { dropout: "0.1" }, ArgumentError, "0.1"],
  ["an infinite scale", good, { scale: Infinity }, ArgumentError, "scale", "finite"],
  ["a scale of -∞", good, { scale: -Infinity }, ArgumentError, "scale", "finite"],
  ["a softcap of 0", good, { softcap: 0 }, ArgumentError, "softcap", "above 0"],
  ["a softcap of NaN", good, { softcap: Number.NaN }, ArgumentError, "softcap"],
  ["a window below 0", good, { window: -1 }, ArgumentError, "window.left", "-1"],
  ["a window of a fraction", good, { window: { right: 1.5 } }, ArgumentError, "window.right", "1.5"],
  ["an unknown alignment", good, { causal: "left" }, ArgumentError, "bottom-right", 'got "left"'],
  ["an unknown path", good, { path: "gpu" }, ArgumentError, "unfused", 'got "gpu"'],
  ["an unknown option", good, { isCausal: true }, ArgumentError, '"isCausal"', "causal, scale"],
];

const operands: readonly Row[] = [
  ["a mask of floats", good, { mask: ones([5, 7]) }, DTypeError, "got float32[5, 7]", "expected mask to be bool"],
  ["a mask that does not fit", good, { mask: ones([4, 7], { dtype: "bool" }) }, ShapeError, "[2, 4, 5, 7]"],
  ["a mask of rank 5", good, { mask: ones([1, 1, 1, 5, 7], { dtype: "bool" }) }, ShapeError, "broadcast"],
  [
    "a bias of float16",
    good,
    { bias: ones([5, 7], { dtype: "float16" }) },
    DTypeError,
    "bias",
    "dtype of q",
    "toDType",
  ],
  ["a bias that does not fit", good, { bias: ones([3, 1, 7]) }, ShapeError, "expected bias to", "got float32[3, 1, 7]"],
  ["sinks of another number", good, { sinks: ones([2]) }, ShapeError, "got float32[2]", "[4]"],
  ["sinks of another dtype", good, { sinks: ones([4], { dtype: "float64" }) }, DTypeError, "float64[4]"],
  ["slopes of another number", good, { alibi: [1, 2, 3] }, ShapeError, "got float32[3]", "[4] or [2, 4]"],
  ["slopes of another batch", good, { alibi: ones([3, 4]) }, ShapeError, "[2, 4]"],
  ["slopes of integers", good, { alibi: tensor([1n, 2n, 3n, 4n]) }, DTypeError, "int64"],
  ["slopes that want a gradient", good, { alibi: ones([4], { requiresGrad: true }) }, ArgumentError, "alibi", "bias"],
  ["packed sequences in a batch of 2", good, { cuSeqlens: [0, 5] }, ShapeError, "batch of size 1", "got size 2"],
  ["bounds that end early", packed, { cuSeqlens: [0, 3, 5] }, ArgumentError, "queries", "6", "[0, 3, 5]"],
  ["bounds that start late", packed, { cuSeqlens: [1, 6] }, ArgumentError, "to rise from 0"],
  ["bounds that fall", packed, { cuSeqlens: [0, 4, 3, 6] }, ArgumentError, "to rise from 0"],
  ["bounds of a fraction", packed, { cuSeqlens: [0, 2.5, 6] }, ArgumentError, "2.5"],
  ["no bounds", packed, { cuSeqlens: [] }, ArgumentError, "to rise from 0"],
  [
    "other bounds of keys",
    packed,
    { cuSeqlens: { queries: [0, 6], keys: [0, 2, 6] } },
    ArgumentError,
    "equally many bounds",
    "got 2 and 3",
  ],
];

function refused(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  return undefined;
}

function expectRefusal(error: unknown, operation: string, kind: Kind, said: readonly string[]): void {
  expect(error).toBeInstanceOf(kind);
  for (const words of [`[${operation}]`, ...said]) expect((error as OrchardError).message).toContain(words);
}

describe("flashAttention rejects invalid operands", () => {
  test.each([...shapes, ...numbers, ...operands])("%s is rejected, and no random number drawn", (...row) => {
    const [, [q, k, v], options, kind, ...said] = row;
    const generator = new Generator(1);
    const all: object = { dropout: 0.5, generator, ...options };
    const call = () => flashAttention(zeros(q), zeros(k), zeros(v), all);
    expectRefusal(refused(call), "flashAttention", kind, said);
    expect(generator.getState().offset).toBe(0n);
  });

  test.each<[string, DType, DType, string]>([
    ["dtypes that differ", "float32", "float16", "one dtype"],
    ["integers", "int32", "int32", "floats"],
    ["bools", "bool", "bool", "floats"],
  ])("%s are rejected", (_, first, second, said) => {
    const [q, k, v] = good.map((shape, at) => zeros(shape, { dtype: at === 1 ? second : first }));
    expectRefusal(
      refused(() => flashAttention(q, k, v)),
      "flashAttention",
      DTypeError,
      [said, first],
    );
  });

  test.each(["q", "k", "v", "bias", "sinks", "mask", "alibi"])("a disposed %s is rejected", (name) => {
    const all = {
      q: zeros(good[0]),
      k: zeros(good[1]),
      v: zeros(good[2]),
      bias: zeros([7]),
      sinks: zeros([4]),
      mask: ones([7], { dtype: "bool" }),
      alibi: zeros([4]),
    };
    all[name as keyof typeof all].dispose();
    const { q, k, v, ...options } = all;
    expectRefusal(
      refused(() => flashAttention(q, k, v, options)),
      "flashAttention",
      DisposedError,
      ["after dispose()"],
    );
  });
});

describe("scaledDotProductAttention rejects invalid operands", () => {
  test("scaledDotProductAttention rejects different numbers of heads without enableGqa", () => {
    const call = () => scaledDotProductAttention(zeros(good[0]), zeros(good[1]), zeros(good[2]));
    expectRefusal(refused(call), "scaledDotProductAttention", ShapeError, ["got 4 and 2", "enableGqa"]);
  });

  test("scaledDotProductAttention rejects an option of flashAttention, and names its own", () => {
    const options = { causal: true } as object;
    const call = () => scaledDotProductAttention(zeros(packed[0]), zeros(packed[1]), zeros(packed[2]), options);
    expectRefusal(refused(call), "scaledDotProductAttention", ArgumentError, ['"causal"', "isCausal"]);
  });

  test("scaledDotProductAttention rejects a mask of another dtype", () => {
    const attnMask = zeros([6, 6], { dtype: "int32" });
    const call = () => scaledDotProductAttention(zeros(packed[0]), zeros(packed[1]), zeros(packed[2]), { attnMask });
    expectRefusal(refused(call), "scaledDotProductAttention", DTypeError, ["int32[6, 6]"]);
  });
});
