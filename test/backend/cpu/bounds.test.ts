/** The dylib rejects calls that would leave an operand, for any shape that TypeScript passes, with a typed error. */
import { describe, expect, test } from "bun:test";
import { cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { errorOf } from "../../../src/backend/cpu/status.ts";
import { nativeTables } from "../../../src/backend/cpu/tables.ts";
import { ArgumentError, type OrchardError } from "../../../src/core/errors.ts";
import { convertCall } from "../../../src/ops/copy/primitive.ts";
import { fillCall } from "../../../src/ops/creation/primitive.ts";
import { gatherCall, oneHotCall, scatterCall, scatterOthersCall } from "../../../src/ops/indexing/primitive.ts";
import { matmulCall } from "../../../src/ops/matmul/primitive.ts";
import { ropeCall } from "../../../src/ops/position/primitive.ts";
import { reduceCall } from "../../../src/ops/reduction/primitive.ts";
import { updateCall } from "../../../src/optim/primitive.ts";
import { noCoefficients } from "../../../src/optim/rules.ts";

const { native } = cpuLibrary();

/** The error of a call that must fail. */
function errorOfCall(call: () => void): OrchardError {
  try {
    call();
  } catch (error) {
    return error as OrchardError;
  }
  throw new Error("expected a refusal, got none");
}

const claimed = { shape: [4_194_304, 4], strides: [4, 1] };
const bytes = () => new Float32Array(16);

describe("a tensor that claims [4194304, 4] over 64 bytes is rejected", () => {
  test("summing it is rejected", () => {
    const out = new Float32Array(1);
    const error = errorOfCall(() =>
      reduceCall(
        "sum",
        {
          operation: "sum",
          from: "float32",
          to: "float32",
          parameter: 0,
          inputOffset: 0,
          outputOffset: 0,
          indicesOffset: 0,
          kept: { shape: [], strides: [[], []] },
          reduced: { shape: claimed.shape, strides: [claimed.strides] },
        },
        [bytes(), out, undefined],
      ),
    );
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error.message).toBe("[sum] operand 0 (input): expected at least 67108864 bytes, got 64");
  });

  test("filling it is rejected", () => {
    const memory = bytes().fill(1);
    const values = { bytes: 4, offset: 0, bits: 0n, nest: { shape: claimed.shape, strides: [claimed.strides] } };
    const error = errorOfCall(() => fillCall("zero_", values, [memory]));
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error.message).toBe("[zero_] operand 0 (output): expected at least 67108864 bytes, got 64");
    expect([...memory]).toEqual([...bytes().fill(1)]);
  });
});

describe("the bounds of copies are checked", () => {
  const copy = (count: number, fromOffset: number, toOffset: number, to = bytes()) =>
    convertCall("copy", { from: "float32", to: "float32", fromOffset, toOffset, count }, [bytes(), to]);
  test.each([
    ["one element more than there are", 17, 0, 0, "operand 0 (x): expected at least 68 bytes, got 64"],
    ["elements behind the last", 1, 16, 0, "operand 0 (x): expected at least 68 bytes, got 64"],
    ["elements before the first", 1, -1, 0, "operand 0 (x): expected elements from 0 on, got -1"],
    ["elements to behind the last", 2, 0, 15, "operand 1 (out): expected at least 68 bytes, got 64"],
    ["fewer than no elements", -1, 0, 0, "operand 0 (x): expected sizes and strides that memory can have, got others"],
    ["half an element", 0.5, 0, 0, "expected a whole number, got 0.5"],
    ["NaN elements", Number.NaN, 0, 0, "expected a whole number of at most 2^53, got nan"],
    ["elements at infinity", 1, Infinity, 0, "expected a whole number of at most 2^53, got inf"],
  ])("a copy of %s is rejected", (_what, count, fromOffset, toOffset, message) => {
    expect(errorOfCall(() => copy(count, fromOffset, toOffset)).message).toBe(`[copy] ${message}`);
  });

  test("copying all elements, and copying none at any offset, succeed", () => {
    copy(16, 0, 0);
    copy(0, 2 ** 40, -5);
  });
});

test("strides and offsets may reach both ends of an operand, but not go beyond", () => {
  const source = Float32Array.from({ length: 6 }, (_, index) => index);
  const reversed = (offset: number) =>
    reduceCall(
      "sum",
      {
        operation: "sum",
        from: "float32",
        to: "float32",
        parameter: 0,
        inputOffset: offset,
        outputOffset: 0,
        indicesOffset: 0,
        kept: { shape: [], strides: [[], []] },
        reduced: { shape: [3], strides: [[-2]] },
      },
      [source, out, undefined],
    );
  const out = new Float32Array(1);
  reversed(5);
  expect(out[0]).toBe(5 + 3 + 1);
  reversed(4);
  expect(out[0]).toBe(4 + 2 + 0);
  expect(errorOfCall(() => reversed(3)).message).toContain("expected elements from 0 on, got -1");
  expect(errorOfCall(() => reversed(6)).message).toContain("expected at least 28 bytes, got 24");
});

test("results that overlap themselves are rejected", () => {
  const values = { bytes: 4, offset: 0, bits: 0n, nest: { shape: [100], strides: [[0]] } };
  expect(errorOfCall(() => fillCall("fill", values, [bytes()])).message).toBe(
    "[fill] operand 0 (output): expected elements that lie apart, got 100 in 64 bytes",
  );
});

test("a missing operand that is required is rejected", () => {
  const values = { from: "float32", to: "float32", fromOffset: 0, toOffset: 0, count: 1 } as const;
  expect(errorOfCall(() => convertCall("copy", values, [undefined, bytes()])).message).toBe(
    "[copy] operand 0 (x): expected an operand, got none",
  );
});

test("a product whose result is smaller than stated is rejected", () => {
  const values = {
    ...({ dtype: "float32", m: 4, n: 5, k: 4, hasInput: false, alpha: 1, beta: 0 } as const),
    rowStrides: [4, 5, 0, 5],
    columnStrides: [1, 1, 0, 1],
    offsets: [0, 0, 0, 0],
    batch: { shape: [], strides: [[], [], [], []] },
  };
  const operands = [bytes(), new Float32Array(20), undefined, new Float32Array(19)];
  expect(errorOfCall(() => matmulCall("matmul", values, operands)).message).toBe(
    "[matmul] operand 3 (out): expected at least 80 bytes, got 76",
  );
});

test("positions that wrap around are rejected before any row is rotated", () => {
  const rotate = (count: number, stride: number, out = bytes()) => {
    const values = {
      ...({ dtype: "float32", positionDtype: "int64", interleaved: false, hasPositions: false } as const),
      pairs: 1,
      size: 2,
      stride: 1,
      outStride: 1,
      magnitude: 1,
      offset: 0,
      offsets: [0, 0, 0],
      distinct: { shape: [count], strides: [[0], [stride], [2]] },
      repeated: { shape: [], strides: [[], []] },
    };
    ropeCall("rope", values, [bytes().fill(1), undefined, Float64Array.of(0), out]);
    return out;
  };
  const turned = [1, 1, 1, 1, 1, 1, ...bytes().subarray(6)];
  for (const stride of [1, 2 ** 52]) expect([...rotate(3, stride)]).toEqual(turned);
  const limit = 2 ** 53; // the limit of a block's numbers
  expect([...rotate(3, limit)]).toEqual(turned);
  const out = new Float32Array(2 * 1025);
  expect(
    rotate(1024, limit, out.slice())
      .slice(0, 2048)
      .every((value) => value === 1),
  ).toBe(true);
  const error = errorOfCall(() => rotate(1025, limit, out));
  expect(error).toBeInstanceOf(ArgumentError);
  expect(error.message).toBe("[rope] expected positions below 2^63, got larger ones");
  expect(out.every((value) => value === 0)).toBe(true);
});

describe("an index out of range that earlier checks did not catch", () => {
  const message = (index: number, size: number) => `expected indices of at least 0 and less than ${size}, got ${index}`;
  const indices = (index: number) => BigInt64Array.of(0n, BigInt(index));

  test.each([-1, 4, 2 ** 40])("gather of an invalid index is rejected: case %d", (index) => {
    const values = {
      ...({ dtype: "float32", indexDtype: "int64" } as const),
      offsets: [0, 0, 0],
      size: 4,
      stride: 1,
      wraps: false,
      nest: { shape: [2], strides: [[0], [1], [1]] },
    };
    const error = errorOfCall(() => gatherCall("gather", values, [bytes(), indices(index), bytes()]));
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error.message).toBe(`[gather] ${message(index, 4)}`);
  });

  test.each([-1, 4, 2 ** 40])("scatter and scatterOthers of an invalid index are rejected: case %d", (index) => {
    const values = {
      includesSelf: false,
      ...({ dtype: "float32", indexDtype: "int64" } as const),
      offsets: [0, 0, 0, 0],
      length: 2,
      size: 4,
      strides: [1, 1, 1, 1],
      slices: { shape: [1], strides: [[4], [2], [2], [4]] },
    };
    const operands = [bytes(), indices(index), bytes(), bytes()];
    const calls = [
      () => scatterCall("scatter", { ...values, way: "sum", wraps: false }, operands),
      () => scatterOthersCall("scatter", values, operands),
    ];
    for (const call of calls) expect(errorOfCall(call).message).toBe(`[scatter] ${message(index, 4)}`);
  });

  test.each([-1, 3, -(2 ** 40)])("oneHot of an invalid index is rejected: case %d", (index) => {
    const values = {
      ...({ dtype: "int64", offsets: [0, 0], classes: 3 } as const),
      nest: { shape: [2], strides: [[1]] },
    };
    expect(errorOfCall(() => oneHotCall("oneHot", values, [indices(index), new BigInt64Array(6)])).message).toBe(
      `[oneHot] ${message(index, 3)}`,
    );
  });
});

describe("rows of a call", () => {
  const sgd = { ...noCoefficients, rule: "sgd", hasMaster: false, dtype: "float32", gradientDType: "float32" } as const;
  const offsets = { stateBeforeOffset: 0, stateAfterOffset: 0, beforeOffset: 0, gradientOffset: 0, afterOffset: 0 };
  const values = { ...sgd, ...offsets, stepSize: 1, plane: 32, size: 16, start: 0 };
  const rowOf = (parameter: Float32Array, gradient?: Float32Array, own: Partial<typeof values> = {}) => ({
    values: { ...values, ...own },
    operands: [undefined, undefined, parameter, gradient, parameter],
  });
  const ones = () => bytes().fill(1);

  test("one call computes all rows", () => {
    const [a, b] = [ones(), ones()];
    updateCall("SGD", [rowOf(a, ones()), rowOf(b, ones().fill(3))]);
    expect([...a, ...b]).toEqual([...Array(16).fill(0), ...Array(16).fill(-2)]);
  });

  test.each([
    ["a gradient that is too small", [ones(), ones().subarray(1)], {}, "expected at least 64 bytes, got 60"],
    ["a gradient that is left out", [ones(), undefined], {}, "expected an operand, got none"],
    [
      "an offset before the first element",
      [ones(), ones()],
      { gradientOffset: -1 },
      "expected elements from 0 on, got -1",
    ],
  ] as const)(
    "%s is rejected with the row's number, and no row is computed",
    (_what, [parameter, gradient], own, why) => {
      const first = ones();
      const error = errorOfCall(() => updateCall("SGD", [rowOf(first, ones()), rowOf(parameter, gradient, own)]));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toBe(`[SGD] row 1: operand 3 (gradient): ${why}`);
      expect([...first]).toEqual([...ones()]);
    },
  );

  test("a state without its last plane is rejected", () => {
    const [state, parameter] = [new Float32Array(40), ones()];
    const own = { ...values, rule: "adam" as const, plane: 24 };
    const row = { values: own, operands: [state, state, parameter, ones(), parameter] };
    updateCall("Adam", [row]);
    const error = errorOfCall(() => updateCall("Adam", [{ ...row, values: { ...own, start: 1 } }, row]));
    expect(error.message).toBe("[Adam] row 0: operand 0 (stateBefore): expected at least 164 bytes, got 160");
  });

  test("a function without rows, a call without rows, and blocks of another length are rejected", () => {
    const { ordinal, blockBytes, operands } = nativeTables().functions["update"];
    const unary = nativeTables().functions["unary"].ordinal;
    const block = new Float64Array(blockBytes / 8 + operands);
    const refused = (own: number, length: number, rows: number) =>
      errorOf(native, native.orchard_cpu_run_rows(own, block, length, rows, block), "rows").message;
    expect(refused(unary, block.byteLength, 1)).toBe("[rows] unary: expected no rows, got 1");
    for (const rows of [0, -1])
      expect(refused(ordinal, rows * block.byteLength, rows)).toBe(
        `[rows] update: expected at least 1 rows, got ${rows}`,
      );
    expect(refused(ordinal, block.byteLength, 2)).toBe(
      `[rows] update: expected a block of ${2 * block.byteLength} bytes, got ${block.byteLength}`,
    );
  });
});

describe("arguments of calls, such as lengths, are checked", () => {
  const { ordinal, blockBytes } = nativeTables().functions["unary"];
  const block = new Float64Array(blockBytes / 8 + 2);
  const refused = (status: number) => errorOf(native, status, "unary").message;

  test("a block of another length is rejected, and not read", () => {
    for (const own of [0, 8, block.byteLength - 8, block.byteLength + 8, -1])
      expect(refused(native.orchard_cpu_run3(ordinal, block, own, block, block, block))).toBe(
        `[unary] unary: expected a block of ${block.byteLength} bytes, got ${own}`,
      );
  });

  test("a function with too many operands is rejected", () => {
    const update = nativeTables().functions["update"];
    const own = new Float64Array(update.blockBytes / 8 + update.operands);
    expect(refused(native.orchard_cpu_run3(update.ordinal, own, own.byteLength, own, own, own))).toBe(
      `[unary] update: expected room for ${update.operands} operands, got 3`,
    );
  });

  test("the size of an operand is read at the time of the call", () => {
    const buffer = new ArrayBuffer(64, { maxByteLength: 64 });
    const x = new Float32Array(buffer);
    const values = { from: "float32", to: "float32", fromOffset: 0, toOffset: 0, count: 16 } as const;
    const copy = () => convertCall("copy", values, [x, bytes()]);
    copy();
    buffer.resize(8);
    expect(errorOfCall(copy).message).toBe("[copy] operand 0 (x): expected at least 64 bytes, got 8");
    structuredClone(buffer, { transfer: [buffer] });
    expect(errorOfCall(copy).message).toBe("[copy] operand 0 (x): expected at least 64 bytes, got 0");
  });
});
