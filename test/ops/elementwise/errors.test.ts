/** Calls that elementwise operations reject, on every backend where it matters. */
import { describe, expect, test } from "bun:test";
import { noGrad } from "../../../src/autograd/modes.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { softplus } from "../../../src/ops/activation/softplus.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { add_, copy_, div_, fill_, mul_, sub_, zero_ } from "../../../src/ops/copy/inplace.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { abs, add, mul, neg, sub } from "../../../src/ops/elementwise/arithmetic.ts";
import { bitwiseAnd, bitwiseNot } from "../../../src/ops/elementwise/bitwise.ts";
import { clamp } from "../../../src/ops/elementwise/clamp.ts";
import { lt } from "../../../src/ops/elementwise/comparison.ts";
import { div, floorDivide, fmod, remainder } from "../../../src/ops/elementwise/division.ts";
import { lerp } from "../../../src/ops/elementwise/lerp.ts";
import { pow } from "../../../src/ops/elementwise/power.ts";
import { isnan } from "../../../src/ops/elementwise/predicates.ts";
import type { Operand } from "../../../src/ops/elementwise/types.ts";
import { where } from "../../../src/ops/elementwise/where.ts";
import { expand } from "../../../src/ops/view/expand.ts";
import { dtypes } from "../../../src/tensor/dtype.ts";
import { Tensor } from "../../../src/tensor/tensor.ts";

const floats = tensor([1, 2, 3]);
const bools = tensor([true, false, true]);
const bytes = tensor([1, 2, 3], { dtype: "uint8" });
const pair = tensor([1, 2]);

const message = (body: () => unknown): string => {
  try {
    body();
  } catch (error) {
    return error instanceof Error ? `${error.name} ${error.message}` : String(error);
  }
  return "nothing was thrown";
};

const mistakes: readonly (readonly [string, () => unknown, string])[] = [
  ["shapes", () => add(floats, pair), "ShapeError [add] [3] and [2] can't be broadcast together: axis -1 has 3 and 2"],
  ["shapes of a comparison", () => lt(floats, pair), "ShapeError [lt] [3] and [2]"],
  ["three shapes", () => clamp(floats, { min: pair }), "ShapeError [clamp]"],
  ["bools subtracted", () => sub(bools, bools), "DTypeError [sub] expected floats or integers, got bool"],
  ["bools negated", () => neg(bools), "DTypeError [neg] expected floats or integers, got bool"],
  ["a bool's magnitude", () => abs(bools), "DTypeError [abs]"],
  ["bits of floats", () => bitwiseAnd(floats, 1), "DTypeError [bitwiseAnd] expected integers or bools, got float32"],
  ["bits of a float", () => bitwiseNot(floats), "DTypeError [bitwiseNot]"],
  [
    "a condition of floats",
    () => where(floats, 1, 2),
    "DTypeError [where] expected the condition to be bool, got float32[3]",
  ],
  ["integers blended", () => lerp(bytes, bytes, 0.5), "DTypeError [lerp] expected floats, got uint8[3]"],
  ["a number beyond uint8", () => add(bytes, 256), "DTypeError [add] the number 256 does not fit a tensor of uint8"],
  ["a negative power of integers", () => pow(bytes, -1), "ArgumentError [pow] integers can't be raised to -1"],
  [
    "another rounding",
    () => div(floats, 2, { roundingMode: "up" as never }),
    'ArgumentError [div] expected roundingMode to be "floor" or "trunc" or null, got "up"',
  ],
  [
    "no operand",
    () => mul(floats, "2" as never),
    "ArgumentError [mul] expected b to be a tensor, a number, a bigint or a boolean",
  ],
  ["a float into bytes", () => add_(bytes, 0.5), "DTypeError [add_] the result is float32, which uint8[3] can't hold"],
  ["true division of bytes", () => div_(bytes, 2), "DTypeError [div_]"],
  ["a larger operand", () => mul_(pair, tensor([[1], [2]])), "ShapeError [mul_] the result would have more elements"],
  ["a larger source", () => copy_(tensor(1), pair), "ShapeError [copy_]"],
  ["no bound", () => clamp(floats), "ArgumentError [clamp] expected min, max or both, got neither"],
  ["bools bounded", () => clamp(bools, { min: bools }), "DTypeError [clamp]"],
  [
    "a bound beyond uint8",
    () => clamp(bytes, { max: 256 }),
    "DTypeError [clamp] the number 256 does not fit a tensor of uint8",
  ],
  [
    "a negative number among bytes",
    () => where(bools, bytes, -1),
    "DTypeError [where] the number -1 does not fit a tensor",
  ],
  ["three shapes chosen from", () => where(bools, floats, pair), "ShapeError [where] [3] and [3] and [2]"],
  ["three shapes blended", () => lerp(floats, floats, pair), "ShapeError [lerp]"],
  ["a bigint beyond int64", () => add(tensor([1n]), 2n ** 63n), "DTypeError [add] the number 9223372036854775808"],
  [
    "a fraction for integers",
    () => fill_(bytes, 0.5),
    "DTypeError [fill_] the number 0.5 does not fit a tensor of uint8",
  ],
  [
    "no number for integers",
    () => fill_(bytes, Number.NaN),
    "DTypeError [fill_] the number NaN does not fit a tensor of uint8",
  ],
  [
    "another policy",
    () => toDType(floats, "int8", { overflow: "wrap" as never }),
    "ArgumentError [toDType] expected overflow to be",
  ],
  [
    "repeated elements",
    () => fill_(expand(tensor([1]), [3]), 2),
    "ArgumentError [fill_] axis 0 of float32[3] is expanded",
  ],
];

test.each(mistakes)("%s rejects invalid arguments", (_name, body, expected) => {
  expect(message(body)).toStartWith(expected);
});

/** PyTorch's `sub` rejects a bool in either operand. */
describe.each(["metal", "cpu", "reference"] as const)("differences of bools are rejected, on %s", (backend) => {
  const tensors = dtypes.flatMap((dtype) => [[1, 0], 1].map((x) => tensor(x, { dtype })));
  const operands: readonly Operand[] = [...tensors, 1, 1n, true, false];
  const foundIn = (x: Operand): string | undefined =>
    typeof x === "boolean" ? String(x) : Tensor.isTensor(x) && x.dtype === "bool" ? "bool" : undefined;

  test.each([
    ["sub", "a", "b", operands, (a, b) => sub(a, b)],
    ["sub", "a", "b", operands, (a, b) => sub(a, b, { alpha: 2 })],
    ["sub", "a", "b", tensors, (a, b) => (a as Tensor).sub(b)],
    ["sub_", "x", "other", tensors, (x, other) => sub_(x as Tensor, other)],
    ["sub_", "x", "other", tensors, (x, other) => sub_(x as Tensor, other, { alpha: 2 })],
  ] as readonly [string, string, string, readonly Operand[], (a: Operand, b: Operand) => unknown][])(
    "%s(%s, %s) is rejected",
    (operation, first, second, minuends, call) => {
      const heard = (a: Operand, b: Operand) =>
        withStrict(true, () => withBackend(backend, () => message(() => call(a, b))));
      for (const [a, b] of minuends.flatMap((one) => operands.map((other) => [one, other] as const))) {
        const [found, name] = foundIn(a) === undefined ? [foundIn(b), second] : [foundIn(a), first];
        if (found === undefined) continue;
        const expected = `DTypeError [${operation}] expected floats or integers, got ${found} for ${name}; `;
        expect(heard(a, b)).toStartWith(expected);
      }
      expect(heard(tensor([1, 2]), 1)).toBe("nothing was thrown");
    },
  );
});

describe.each(["metal", "cpu", "reference"] as const)("operands are rejected after dispose(), on %s", (backend) => {
  const uses: readonly (readonly [string, (x: Tensor, whole: Tensor) => unknown])[] = [
    ["neg", (x) => neg(x)],
    ["isnan", (x) => isnan(x)],
    ["add", (x, whole) => add(whole, x)],
    ["lt", (x, whole) => lt(x, whole)],
    ["where", (x, whole) => where(lt(whole, 1), x, whole)],
    ["clamp", (x, whole) => clamp(whole, { min: x })],
    ["lerp", (x, whole) => lerp(whole, x, 0.5)],
    ["softplus", (x) => softplus(x)],
    ["add_", (x) => add_(x, 1)],
    ["mul_", (x) => mul_(x, x)],
    ["copy_", (x, whole) => copy_(x, whole)],
    ["fill_", (x) => fill_(x, 1)],
  ];

  test.each(uses)("%s of a disposed tensor is an error", (name, use) => {
    const heard = withStrict(true, () =>
      withBackend(backend, () => {
        const [gone, whole] = [tensor([1, 2]), tensor([3, 4])];
        gone.dispose();
        return message(() => use(gone, whole));
      }),
    );
    expect(heard).toBe(`DisposedError [${name}] a tensor float32[2] was used after dispose()`);
  });

  test.each([
    ["a source", copy_],
    ["an operand", add_],
  ] as const)("%s of a disposed tensor in place is an error", (_name, change) => {
    const [target, gone] = [tensor([1, 2]), tensor([3, 4])];
    gone.dispose();
    expect(message(() => withBackend(backend, () => change(target, gone)))).toStartWith("DisposedError [");
    expect(target.toArray()).toEqual([1, 2]);
  });

  test("a cast of a disposed tensor is an error", () => {
    const gone = withBackend(backend, () => tensor([1, 2]));
    gone.dispose();
    expect(message(() => withBackend(backend, () => toDType(gone, "int8")))).toStartWith("DisposedError [");
  });
});

describe.each(["cpu", "reference"] as const)("errors of elementwise functions on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  test.each([
    ["floorDivide", floorDivide],
    ["remainder", remainder],
    ["fmod", fmod],
    ["div floor", (a, b) => div(a, b, { roundingMode: "floor" })],
    ["div trunc", (a, b) => div(a, b, { roundingMode: "trunc" })],
  ] as readonly [string, (a: Tensor, b: Operand) => Tensor][])(
    "%s of an integer by zero is an error",
    (_name, divide) => {
      for (const dtype of ["int64", "int32", "uint32", "int8", "uint8"] as const) {
        const by = tensor([1, 2, 0, 4], { dtype });
        expect(message(() => on(() => divide(tensor([1, 2, 3, 4], { dtype }), by)))).toContain(
          "an integer is divided by 0",
        );
        expect(message(() => on(() => divide(tensor(1, { dtype }), 0)))).toContain("an integer is divided by 0");
      }
      const quotient = on(() => divide(tensor([1]), 0)).item();
      expect(Number.isFinite(quotient)).toBe(false);
    },
  );
});

test("on metal an integer divided by zero is 0", () => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));
  const a = tensor([5, -5], { dtype: "int32" });
  for (const divide of [floorDivide, remainder, fmod]) expect(on(() => divide(a, 0)).toArray()).toEqual([0, 0]);
});

describe("a cast that overflows is an error", () => {
  const strictly = (x: Parameters<typeof toDType>[0], dtype: "int8" | "uint8" | "int64" | "int32") =>
    toDType(x, dtype, { overflow: "error" });

  test("the error names the first value and the range", () => {
    const wanted = "DTypeError [toDType] element 1 is 300; int8 holds whole numbers from -128 to 127";
    expect(message(() => strictly(tensor([127.9, 300, 400]), "int8"))).toStartWith(wanted);
    expect(message(() => strictly(tensor([0, -1], { dtype: "int32" }), "uint8"))).toContain("element 1 is -1");
    expect(message(() => strictly(tensor([1, Number.NaN]), "int64"))).toContain("element 1 is NaN");
    expect(message(() => strictly(tensor([2 ** 63], { dtype: "float64" }), "int64"))).toContain("element 0 is");
  });

  test("values that fit after truncation are accepted", () => {
    expect(strictly(tensor([-128.9, 127.9, -0.5]), "int8").toArray()).toEqual([-128, 127, 0]);
    expect(strictly(tensor([-(2 ** 63)], { dtype: "float64" }), "int64").toArray()).toEqual([-(2n ** 63n)]);
    expect(toDType(tensor([300, Number.NaN, -300]), "int8").toArray()).toEqual([127, 0, -128]);
  });
});

describe("methods in place reject leaves", () => {
  const leaf = () => tensor([1, 2], { requiresGrad: true });
  const changes = { add_, sub_, mul_, div_, copy_ };

  test.each(Object.entries(changes))("%s rejects a leaf that requires a gradient, outside noGrad", (name, change) => {
    expect(message(() => change(leaf(), 2))).toStartWith(`AutogradError [${name}] a leaf float32[2]`);
    expect(message(() => change(mul(leaf(), 2), 2))).toStartWith(`AutogradError [${name}] a tensor float32[2]`);
    expect(message(() => change(tensor([1, 2]), leaf()))).toStartWith(`AutogradError [${name}]`);
    expect(message(() => noGrad(() => change(leaf(), 2)))).toBe("nothing was thrown");
  });

  test.each([
    ["zero_", (x) => zero_(x)],
    ["fill_", (x) => fill_(x, 1)],
  ] as readonly [string, (x: typeof floats) => unknown][])(
    "%s rejects an operand that requires a gradient, too",
    (name, change) => {
      expect(message(() => change(leaf()))).toStartWith(`AutogradError [${name}] a leaf`);
    },
  );
});
