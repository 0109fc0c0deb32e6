/**
 * Matrix products of the cpu backend, by the dylib on every instruction set and by the BLAS that it can use, compared
 * with sums in float64 or exact integers.
 */
import { dlopen } from "bun:ffi";
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo, cpuStatistics } from "../../../src/backend/cpu/report.ts";
import { OutOfMemoryError } from "../../../src/core/errors.ts";
import { type MatmulOperand, multiply } from "../../support/cpu-matmul.ts";
import {
  expectRight,
  firstWrong,
  floats,
  formula,
  integers,
  nth,
  operandLayouts,
  random,
  randomCase,
  randomOperand,
  resultLayouts,
  use,
  useDefaults,
  ways,
} from "../../support/drawn-products.ts";
import { elementTypes } from "../../support/elements.ts";
import { repeats, usually } from "../../support/repeats.ts";

const { native } = cpuLibrary();
const { blas } = cpuInfo(native);
afterAll(useDefaults);

// Sizes around those of tiles (6, 8, 14 rows; 8 to 128 columns), around those of blocks (120 rows, 384 deep), and 1.
const sizes = [
  [1, 1, 1],
  [1, 7, 5],
  [7, 1, 3],
  [3, 5, 0],
  [5, 3, 17],
  [14, 32, 16],
  [15, 33, 9],
  [29, 65, 31],
  [121, 9, 40],
  [6, 40, 385],
  [9, 130, 300],
] as const;

describe.each([...floats, ...integers])("matmul is correct with %s", (dtype) => {
  const isWide = dtype === "int64";

  test("products of every size are correct, each with another layout", () => {
    const chosen = isWide ? sizes.slice(0, 8) : sizes;
    for (const [index, size] of chosen.entries())
      for (let round = 0; round < repeats({ usual: 2, all: 3 }); round++) {
        const picked = [
          nth(operandLayouts, index + 2 * round),
          nth(operandLayouts, 3 * index + round + 1),
          nth(resultLayouts, index + round),
        ] as const;
        expectRight(randomCase(dtype, size, picked), `${size} ${picked}`);
      }
  });

  test("products are correct for operands in each orientation, whole and partial tiles, and sums of two blocks", () => {
    const sizes = [
      [28, 64, 32],
      [43, 65, 39],
      [70, 100, 66],
      [17, 31, 400],
    ] as const;
    const orientations = [
      ["rows", "columns"],
      ["rows", "rows"],
      ["columns", "rows"],
    ] as const;
    const turn = [...floats, ...integers].indexOf(dtype);
    for (const [index, size] of sizes.entries())
      for (const [la, lb] of usually(orientations, (_, at) => (at + index + turn) % 3 === 0)) {
        const given = randomCase(dtype, size, [la, lb, nth(["rows", "gaps"], index)]);
        const input = randomOperand(elementTypes[dtype], size[0], size[1], nth(["oneRow", "rows"], index), []);
        expectRight(given, `${size} ${la} ${lb}`);
        expectRight({ ...given, input, beta: 1 }, `${size} ${la} ${lb} and an input`);
      }
  });

  test("a matrix times a column and a row times a matrix are correct, also larger than a block", () => {
    const vectorSizes = [
      [1, 9, 5000],
      [9, 1, 5000],
      [600, 1, 41],
      [1, 1030, 7],
      [1, 1, 70_000],
    ] as const;
    for (const [index, size] of vectorSizes.entries())
      for (const layout of usually(["rows", "columns", "gaps"] as const, (_, at) => (at + index) % 3 === 0)) {
        const given = randomCase(dtype, size, [layout, layout, nth(resultLayouts, index)]);
        const input = randomOperand(elementTypes[dtype], size[0], size[1], nth(operandLayouts, index), []);
        expectRight({ ...given, input, alpha: 2, beta: -1 }, `${size}, ${layout}`);
      }
  });

  test("every layout of one operand is correct with every layout of the other", () => {
    for (const la of operandLayouts)
      for (const [index, lb] of operandLayouts.entries()) {
        const picked = [la, lb, nth(resultLayouts, index)] as const;
        expectRight(randomCase(dtype, [5, 7, 6], picked), `${picked}`);
      }
  });

  test("batches, repeated operands, and rows that continue across a batch are correct", () => {
    for (const batchShape of [[3], [2, 3], [2, 1, 2], [1, 1, 1, 1, 2, 2], [0], [2, 0]])
      for (const repeated of [{}, { a: true }, { b: true }, { a: true, b: true }])
        expectRight(
          randomCase(dtype, [4, 9, 5], ["rows", "columns", "rows"], batchShape, repeated),
          `${batchShape}, ${JSON.stringify(repeated)}`,
        );
    const type = elementTypes[dtype];
    const folded = randomCase(dtype, [12, 9, 5], ["rows", "rows", "rows"]);
    const axes = { batchShape: [2, 2], m: 3 };
    const through = (operand: MatmulOperand) => ({
      ...operand,
      batchStrides: [6, 3].map((rows) => rows * operand.rowStride),
    });
    const batched = {
      ...folded,
      ...axes,
      a: through(folded.a),
      out: through(folded.out),
      b: { ...folded.b, batchStrides: [0, 0] },
    };
    expectRight(batched, "rows through a batch");
    expectRight({ ...batched, input: through(randomOperand(type, 12, 9, "rows", [])) }, "with an input");
    expectRight(
      { ...batched, input: { ...randomOperand(type, 3, 9, "rows", []), batchStrides: [0, 0] } },
      "with an input that is repeated",
    );
  });

  test("an input may be scaled and repeated, and may share the result's elements", () => {
    const type = elementTypes[dtype];
    const scales = type.wrap
      ? [
          [1, 1],
          [-3, 2],
          [5, -1],
        ]
      : [
          [1, 1],
          [0.5, -2],
          [-1.25, 0.75],
        ];
    for (const [alpha = 1, beta = 1] of scales)
      for (const layout of operandLayouts)
        for (const size of [
          [5, 7, 6],
          [3, 4, 0],
          [15, 40, 20],
        ] as const) {
          const given = randomCase(dtype, size, ["rows", "columns", "rows"]);
          const input = randomOperand(type, size[0], size[1], layout, []);
          expectRight({ ...given, input, alpha, beta }, `${alpha}, ${beta}, ${layout}, ${size}`);
        }
    const inPlace = randomCase(dtype, [15, 40, 20], ["rows", "columns", "gaps"]);
    expectRight({ ...inPlace, input: inPlace.out }, "in place");
  });
});

test.each(["float64", "float32"] as const)(
  "%s: a batch of products large enough for a BLAS is correct, with copied operands",
  (dtype) => {
    const layouts = ["strided", "reversed", "strided"] as const;
    for (const repeated of [{}, { b: true }]) {
      const given = randomCase(dtype, [97, 101, 103], layouts, [2], repeated);
      const input = randomOperand(elementTypes[dtype], 97, 101, "columns", [2]);
      expectRight({ ...given, input, alpha: 2, beta: 0.5 }, JSON.stringify(repeated));
    }
  },
);

describe.each(["float64", "float32", "float16", "bfloat16", "int32"] as const)(
  "products of few rows are correct, %s",
  (dtype) => {
    // Columns of b: whole groups, and a tail. k: whole vectors and blocks, and a tail.
    test.each([
      { size: [4, 258, 131], lies: ["rows", "columns"] },
      { size: [3, 61, 1049], lies: ["rows", "columns"] },
      { size: [2, 71, 1024], lies: ["gaps", "columns"] },
      { size: [4, 600, 70], lies: ["rows", "rows"] },
      { size: [3, 600, 70], lies: ["columns", "gaps"] },
      { size: [5, 1058, 67], lies: ["rows", "rows"] },
    ] as const)("the product $size of $lies is correct", ({ size, lies }) => {
      const type = elementTypes[dtype];
      const turn = 1 + ((size[1] + dtype.length) % (resultLayouts.length - 1));
      // Usually tests contiguous operands and one other layout, which differs by size and dtype.
      for (const out of usually(resultLayouts, (_, at) => at === 0 || at === turn)) {
        const given = randomCase(dtype, size, [...lies, out]);
        expectRight(given, out);
        const input = randomOperand(type, size[0], size[1], "oneRow", []);
        expectRight({ ...given, input, alpha: 2, beta: -1 }, `${out}, with an input`);
      }
    });
  },
);

test("with beta 0 the input is not read, and NaN in it is ignored", () => {
  const given = randomCase("float32", [5, 6, 7], ["rows", "rows", "rows"]);
  const input = { ...given.out, storage: new Float32Array(given.out.storage.length).fill(Number.NaN) };
  expectRight({ ...given, input, beta: 0 }, "beta 0");
});

test.each([
  { dtype: "float32", size: [600, 500, 700], lies: ["rows", "rows"] },
  { dtype: "float32", size: [600, 100, 700], lies: ["rows", "columns"] },
  { dtype: "float32", size: [500, 100, 800], lies: ["columns", "rows"] },
  { dtype: "float32", size: [300, 600, 400], lies: ["columns", "columns"] },
  { dtype: "float32", size: [6, 900, 700], lies: ["rows", "rows"] },
  { dtype: "float32", size: [6, 900, 700], lies: ["rows", "columns"] },
  { dtype: "float32", size: [13, 1100, 300], lies: ["rows", "rows"] },
  { dtype: "float32", size: [130, 150, 140], lies: ["rows", "columns"], batch: 7 },
  { dtype: "bfloat16", size: [6, 900, 700], lies: ["rows", "columns"] },
  { dtype: "bfloat16", size: [130, 150, 140], lies: ["rows", "rows"], batch: 7 },
  { dtype: "float16", size: [300, 500, 700], lies: ["rows", "rows"] },
  { dtype: "int32", size: [300, 500, 700], lies: ["rows", "rows"] },
] as const)("large products have the same bits on one thread and on many: $dtype $size of $lies", (large) => {
  const given = randomCase(large.dtype, large.size, [...large.lies, "rows"], "batch" in large ? [large.batch] : []);
  const results = ["1", "2", "3", "7", "16"].map((threads) => {
    configure(native, "threads", threads);
    configure(native, "products", "own");
    const storage = given.out.storage.slice();
    multiply({ ...given, out: { ...given.out, storage } });
    return Bun.hash(storage.buffer);
  });
  configure(native, "threads", "auto");
  expect(new Set(results).size).toBe(1);
});

test.if(blas?.name === "OpenBLAS")("products on Linux use the dylib, or a BLAS if one is set", () => {
  const bitsBy = (given: ReturnType<typeof randomCase>, products: string) => {
    configure(native, "products", products);
    const storage = given.out.storage.slice();
    multiply({ ...given, out: { ...given.out, storage } });
    return Bun.hash(storage.buffer);
  };
  for (const dtype of ["float32", "float64"] as const) {
    // OpenBLAS divides such a k into other blocks, so the bits of the result show which code computed it.
    const given = randomCase(dtype, [100, 100, 1000], ["rows", "rows", "rows"]);
    const own = bitsBy(given, "own");
    expect(bitsBy(given, "blas")).not.toBe(own);
    const { symbols, close } = dlopen(blas!.path, { openblas_get_num_threads: { args: [], returns: "i32" } });
    expect(symbols.openblas_get_num_threads()).toBe(1); // one thread again, because OpenBLAS is not computing
    close();
    expect(bitsBy(given, "table")).toBe(own);
  }
});

// Both operands, one, or neither are read in place. Some products have too few rows for each thread to have a panel.
test.each([
  { size: [250, 1100, 530], lies: ["rows", "columns"] },
  { size: [550, 200, 800], lies: ["rows", "columns"] },
  { size: [550, 200, 800], lies: ["rows", "rows"] },
  { size: [300, 200, 800], lies: ["columns", "rows"] },
  { size: [300, 530, 390], lies: ["columns", "rows"] },
  { size: [6, 1103, 541], lies: ["rows", "columns"] },
  { size: [5, 1103, 541], lies: ["rows", "rows"] },
] as const)("a product larger than every block is correct with every method: $size of $lies", ({ size, lies }) => {
  const [m, n, k] = size;
  const given = randomCase("float32", size, [...lies, "rows"]);
  const input = randomOperand(elementTypes.float32, m, n, "oneRow", []);
  const [a, b] = [given.a.storage as Float32Array, given.b.storage as Float32Array];
  // Drawn elements of the result, whose sums are computed once for all methods.
  const elements = Array.from({ length: repeats({ usual: 1000, all: 5000 }) }, () => {
    const [i, j] = [Math.floor(random() * m), Math.floor(random() * n)];
    let sum = Number(input.storage[input.offset + j]);
    let bound = Math.abs(sum);
    for (let p = 0; p < k; p++) {
      const left = a[given.a.offset + i * given.a.rowStride + p * given.a.columnStride];
      const term = left * b[given.b.offset + p * given.b.rowStride + j * given.b.columnStride];
      sum += term;
      bound += Math.abs(term);
    }
    return { at: given.out.offset + i * n + j, sum, allowed: bound * (k + 3) * 2 ** -24 };
  });
  for (const way of ways) {
    use(way);
    const storage = (given.out.storage as Float32Array).slice();
    multiply({ ...given, input, beta: 1, out: { ...given.out, storage } });
    const wrong = elements.filter(({ at, sum, allowed }) => !(Math.abs(storage[at] - sum) < allowed));
    expect([way.name, wrong]).toEqual([way.name, []]);
  }
});

describe("invalid calls of matmul", () => {
  const given = randomCase("int32", [5, 6, 7], ["strided", "rows", "rows"]);

  test("bool, a batch of too many axes, and fractional factors are rejected with an error that names them", () => {
    expect(() => multiply({ ...given, dtype: "bool" })).toThrow("[matmul] there is no matrix product of bool");
    const nine = Array(9).fill(1);
    expect(() => multiply({ ...given, batchShape: nine })).toThrow("expected a rank of 0 to 8, got 9");
    const whole = randomCase("int32", [5, 6, 7], ["rows", "rows", "rows"]);
    expect(() => multiply({ ...whole, alpha: 0.5 })).toThrow("expected whole numbers as alpha and beta");
    expect(() => multiply({ ...given, m: -1 })).toThrow("expected m to be at least 0, got -1");
  });

  test("without memory for packed operands it fails, keeps nothing, and the next call works", () => {
    for (const way of ways) {
      use(way);
      Bun.gc(true); // collects other tests' garbage now, not between two readings
      const { liveBytes } = cpuStatistics(native);
      native.orchard_cpu_fail_allocations(1);
      expect(() => multiply(given)).toThrow(OutOfMemoryError);
      expect(cpuStatistics(native).liveBytes).toBe(liveBytes);
      expect(firstWrong(given, formula(given))).toBeUndefined();
    }
    const batch = randomCase("int32", [5, 6, 7], ["strided", "rows", "rows"], [50]);
    native.orchard_cpu_fail_allocations(3);
    expect(() => multiply(batch)).toThrow(OutOfMemoryError);
    native.orchard_cpu_fail_allocations(0);
  });
});
