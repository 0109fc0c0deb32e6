/** How tensors print, to the letter. */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { fromArray, tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

const lines = (...texts: string[]) => texts.join("\n");
const counted = (length: number, shape: number[]) =>
  fromArray(
    Int32Array.from({ length }, (_, index) => index),
    shape,
  );

describe("a tensor prints its shape, its dtype and its elements", () => {
  test("single values, rows, matrices, and more axes are printed", () => {
    expect(String(tensor(Math.PI))).toBe(lines("Tensor float32[]", "3.1416"));
    expect(String(tensor([1, -20]))).toBe(lines("Tensor float32[2]", "[  1, -20]"));
    expect(
      String(
        tensor([
          [1, 2],
          [3, 4.5],
        ]),
      ),
    ).toBe(lines("Tensor float32[2, 2]", "[[  1,   2],", " [  3, 4.5]]"));
    expect(String(counted(8, [2, 2, 2]))).toBe(
      lines("Tensor int32[2, 2, 2]", "[[[0, 1],", "  [2, 3]],", " [[4, 5],", "  [6, 7]]]"),
    );
  });

  test("a tensor without elements is printed", () => {
    expect(String(tensor([]))).toBe("Tensor float32[0]");
    expect(String(tensor([[], []]))).toBe("Tensor float32[2, 0]");
  });

  test("every kind of element is printed", () => {
    expect(String(tensor([true, false]))).toBe(lines("Tensor bool[2]", "[ true, false]"));
    expect(String(tensor([2n ** 62n, -1n]))).toBe(
      lines("Tensor int64[2]", "[4611686018427387904,                  -1]"),
    );
    expect(String(tensor([-0, Number.NaN, Number.NEGATIVE_INFINITY]))).toBe(
      lines("Tensor float32[3]", "[       -0,       NaN, -Infinity]"),
    );
    expect(String(tensor([1e10, 1e-8, 0.1]))).toBe(lines("Tensor float32[3]", "[1e+10,  1e-8,   0.1]"));
    expect(String(tensor([1 / 3], { dtype: "float64" }))).toBe(lines("Tensor float64[1]", "[0.33333333]"));
    expect(String(tensor([0.1], { dtype: "bfloat16" }))).toBe(lines("Tensor bfloat16[1]", "[0.1001]"));
    expect(String(tensor([0.1], { dtype: "float16" }))).toBe(lines("Tensor float16[1]", "[0.099976]"));
  });

  test("printing shows whether a tensor is part of a graph", () => {
    const w = tensor([1, 2], { requiresGrad: true });
    expect(String(w)).toBe(lines("Tensor float32[2], requires grad", "[1, 2]"));
    expect(String(mul(w, 2))).toBe(lines("Tensor float32[2], requires grad", "[2, 4]"));
  });

  test("views are printed as they read", () => {
    expect(String(transpose(counted(4, [2, 2]), 0, 1))).toBe(lines("Tensor int32[2, 2]", "[[0, 2],", " [1, 3]]"));
    expect(String(expand(tensor([7]), [2, 2]))).toBe(lines("Tensor float32[2, 2]", "[[7, 7],", " [7, 7]]"));
    const x = counted(4, [4]);
    expect(String(new Tensor(x.storage, x.dtype, [2], [-2], 3))).toBe(lines("Tensor int32[2]", "[3, 1]"));
  });
});

describe("long texts are truncated or wrapped", () => {
  test("rows are wrapped at 80 columns", () => {
    expect(String(counted(25, [25]))).toBe(
      lines(
        "Tensor int32[25]",
        "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18,",
        " 19, 20, 21, 22, 23, 24]",
      ),
    );
    for (const line of String(counted(1000, [1, 1, 1000])).split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  test("over 1,000 elements, three are printed at either end of each axis that has more than six", () => {
    expect(String(counted(1200, [3, 400]))).toBe(
      lines(
        "Tensor int32[3, 400]",
        "[[   0,    1,    2, …,  397,  398,  399],",
        " [ 400,  401,  402, …,  797,  798,  799],",
        " [ 800,  801,  802, …, 1197, 1198, 1199]]",
      ),
    );
    expect(String(counted(1001, [1001, 1]))).toBe(
      lines("Tensor int32[1001, 1]", "[[   0],", " [   1],", " [   2],", " …,", " [ 998],", " [ 999],", " [1000]]"),
    );
    expect(String(counted(1000, [500, 2])).split("\n")).toHaveLength(501);
  });

  test("the rest is not read: a billion elements print at once", () => {
    expect(String(expand(tensor([1]), [1e9]))).toBe(lines("Tensor float32[1000000000]", "[1, 1, 1, …, 1, 1, 1]"));
  });
});

describe("console.log shows a tensor", () => {
  test("console.log shows the same, alone and inside objects", () => {
    const x = tensor([[1], [2]]);
    expect(Bun.inspect(x)).toBe(String(x));
    expect(Bun.inspect({ weight: x })).toContain(lines("Tensor float32[2, 1]", "[[1],", " [2]]"));
  });

  test("console.log never throws: a disposed tensor says so", () => {
    const x = tensor([1, 2]);
    x.dispose();
    expect(Bun.inspect(x)).toBe("Tensor float32[2] (disposed)");
  });

  test.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))(
    "console.log does not throw for a tensor of a closed Metal context",
    () => {
      const y = withBackend("metal", () => mul(tensor([1, 2]), 2));
      metalContext().close();
      expect(Bun.inspect(y)).toBe("Tensor float32[2] (its Metal context was closed)");
    },
  );
});
