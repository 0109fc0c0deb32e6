import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled, noGrad } from "../../../src/autograd/modes.ts";
import { AutogradError } from "../../../src/autograd/node.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../../src/core/errors.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { copyInto } from "../../../src/ops/copy/copy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { add, mul, neg, sub } from "../../../src/ops/elementwise/arithmetic.ts";
import { exp } from "../../../src/ops/elementwise/exponential.ts";
import { backward, detach, grad, valueAndGrad } from "../../../src/ops/gradient/backward.ts";
import { sum } from "../../../src/ops/reduction/sum.ts";
import { expand } from "../../../src/ops/view/expand.ts";
import { reshape } from "../../../src/ops/view/reshape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

const parameter = (values: number[]) => tensor(values, { dtype: "float64", requiresGrad: true });
const numbers = (x: Tensor | null | undefined) => x && Array.from(x.dataSync(), Number);
const codeOf = (body: () => unknown): string | undefined => {
  try {
    body();
  } catch (error) {
    return error instanceof AutogradError ? error.code : String(error);
  }
  return undefined;
};

describe("backward() computes correct gradients", () => {
  test("gradients sum up if a tensor is used more than once: d(x·x)/dx = 2x, and diamonds", () => {
    const x = parameter([1, -2, 3]);
    backward(sum(mul(x, x)));
    expect(numbers(x.grad)).toEqual([2, -4, 6]);
    const y = parameter([2, 5]);
    const middle = mul(y, 3);
    backward(sum(add(mul(middle, middle), middle))); // 9y² + 3y
    expect(numbers(y.grad)).toEqual([18 * 2 + 3, 18 * 5 + 3]);
  });

  test("gradients accumulate over passes until they are cleared", () => {
    const x = parameter([1, 2]);
    backward(sum(mul(x, 3)));
    backward(sum(mul(x, 4)));
    expect(numbers(x.grad)).toEqual([7, 7]);
    x.grad = null;
    backward(sum(x));
    expect(numbers(x.grad)).toEqual([1, 1]);
  });

  test("gradients flow through views and casts, and have the leaf's dtype", () => {
    const x = tensor([1, 2, 3, 4, 5, 6], { requiresGrad: true });
    const wide = expand(reshape(reshape(x, [2, 3]), [2, 3, 1]), [2, 3, 4]);
    backward(sum(mul(toDType(wide, "float64"), 0.5)));
    expect(x.grad?.dtype).toBe("float32");
    expect(numbers(x.grad)).toEqual([2, 2, 2, 2, 2, 2]);
  });

  test("gradients are those of the outputs' sum, weighted by the given gradient", () => {
    const x = parameter([1, 2, 3]);
    backward(mul(x, x), tensor([1, 10, 100], { dtype: "float64" }));
    expect(numbers(x.grad)).toEqual([2, 40, 600]);
  });

  test("integers and tensors without requiresGrad get no gradient", () => {
    const x = parameter([1, 2]);
    const constant = tensor([3, 4], { dtype: "float64" });
    backward(sum(mul(x, constant)));
    expect(constant.grad).toBeNull();
    expect(toDType(x, "int32").requiresGrad).toBe(false);
    expect(() => {
      tensor([1], { dtype: "int32" }).requiresGrad = true;
    }).toThrow(ArgumentError);
  });

  test("gradients pass through 10,000 operations without deep recursion", () => {
    const x = parameter([1]);
    let y: Tensor = x;
    for (let step = 0; step < 10_000; step++) y = add(y, x);
    backward(y);
    expect(numbers(x.grad)).toEqual([10_001]);
  });

  test("gradients may be computed on another backend than the result", () => {
    const run = (forward: "cpu" | "reference" | "metal", back: "cpu" | "reference" | "metal") => {
      const x = tensor([0.5, -1, 2], { requiresGrad: true });
      const y = withBackend(forward, () => mul(exp(x), x));
      withBackend(back, () => backward(y, tensor([1, 2, 3])));
      return numbers(x.grad)!;
    };
    const expected = [0.5, -1, 2].map((x, index) => (index + 1) * Math.exp(x) * (x + 1));
    for (const [forward, back] of [
      ["metal", "reference"],
      ["reference", "metal"],
      ["cpu", "metal"],
      ["metal", "cpu"],
    ] as const)
      for (const [index, value] of run(forward, back).entries())
        expect(Math.abs(value - expected[index])).toBeLessThan(1e-5 * Math.max(1, Math.abs(expected[index])));
  });
});

describe("the memory of a leaf's gradient is not shared", () => {
  const shares = (a: Tensor, b: Tensor) => a.storage === b.storage;

  test("leaves that receive one tensor as their gradient share no memory, with each other or with the caller", () => {
    const [a, b] = [parameter([1, 2]), parameter([3, 4])];
    const given = tensor([5, 6], { dtype: "float64" });
    backward(add(a, b), given);
    expect(shares(a.grad!, b.grad!) || shares(a.grad!, given) || shares(b.grad!, given)).toBe(false);
    copyInto(a.grad!, tensor([0, 0], { dtype: "float64" }));
    expect([numbers(b.grad), numbers(given)]).toEqual([
      [5, 6],
      [5, 6],
    ]);
  });

  test("a gradient is not shared with a tensor that a hook returned, or with a leaf's initial gradient", () => {
    const x = parameter([1, 2]);
    const replacement = tensor([7, 8], { dtype: "float64" });
    x.registerHook(() => replacement);
    backward(sum(x));
    expect(shares(x.grad!, replacement)).toBe(false);
    const leaf = parameter([1]);
    const given = tensor([4], { dtype: "float64" });
    backward(leaf, given);
    expect([numbers(leaf.grad), shares(leaf.grad!, given)]).toEqual([[4], false]);
  });

  test("a leaf's gradient is row-major, even if the sum was expanded", () => {
    const x = parameter([1, 2]);
    backward(sum(x));
    expect(x.grad?.isContiguous).toBe(true);
  });
});

describe("grad returns gradients of given tensors", () => {
  test("grad returns gradients of leaves and of intermediate results, and leaves x.grad unchanged", () => {
    const x = parameter([1, 2]);
    const y = mul(x, x);
    const [dx, dy] = grad(sum(mul(y, 3)), [x, y]);
    expect([numbers(dx), numbers(dy), x.grad]).toEqual([[6, 12], [3, 3], null]);
  });

  test("grad accepts several outputs with separate gradients, and one output twice", () => {
    const x = parameter([1, 2]);
    const one = tensor([1, 1], { dtype: "float64" });
    const y = mul(x, 2);
    expect(numbers(grad([y, mul(x, x)], [x], { gradOutputs: [one, one] })[0])).toEqual([4, 6]);
    const z = mul(x, 5);
    expect(numbers(grad([z, z], [x], { gradOutputs: [one, one] })[0])).toEqual([10, 10]);
  });

  test("an unused input is an error, or null if that is allowed", () => {
    const [x, other] = [parameter([1]), parameter([2])];
    expect(codeOf(() => grad(sum(x), [other]))).toBe("unused");
    expect(grad(sum(x), [x, other], { allowUnused: true })[1]).toBeNull();
  });

  test("createGraph gives d³(x⁴)/dx³ = 24x", () => {
    const x = parameter([2]);
    const fourth = mul(mul(x, x), mul(x, x));
    const [first] = grad(fourth, [x], { createGraph: true });
    const [second] = grad(first, [x], { createGraph: true });
    const [third] = grad(second, [x]);
    expect([numbers(first), numbers(second), numbers(third)]).toEqual([[32], [48], [48]]);
    expect([first.requiresGrad, third.requiresGrad]).toEqual([true, false]);
  });

  test("createGraph works through an operation that saves its result: d²(eˣ)/dx² = eˣ", () => {
    const x = parameter([0.5]);
    const [first] = grad(exp(x), [x], { createGraph: true });
    expect(grad(first, [x])[0].item()).toBeCloseTo(Math.exp(0.5), 12);
  });

  test("backward with createGraph leaves a gradient that has a gradient", () => {
    const x = parameter([3]);
    backward(mul(mul(x, x), x), undefined, { createGraph: true });
    expect(numbers(grad(x.grad!, [x])[0])).toEqual([18]);
  });

  test("valueAndGrad returns the value and the gradients of the given arguments, and changes no grad", () => {
    const [w, x] = [tensor([1, 2]), tensor([3, 4])];
    const step = valueAndGrad((a: Tensor, b: Tensor) => sum(mul(mul(a, a), b)), 2);
    const { value, gradients } = noGrad(() => step(w, x));
    expect([value.item(), ...gradients.map(numbers)]).toEqual([19, [6, 16], [1, 4]]);
    expect([value.requiresGrad, w.grad, w.requiresGrad]).toEqual([false, null, false]);
    expect(() => valueAndGrad((a: number) => tensor(a))(3)).toThrow(ArgumentError);
    const one = valueAndGrad((a: Tensor, factor: number) => sum(mul(a, factor)) as Tensor)(w, 3); // factor is passed on
    expect([one.value.item(), ...one.gradients.map(numbers)]).toEqual([9, [3, 3]]);
  });
});

describe("hooks of tensors see their gradients", () => {
  test("hooks on a leaf see the whole sum once; their result replaces it", () => {
    const x = parameter([1, 2]);
    const seen: unknown[] = [];
    x.registerHook((gradient) => {
      seen.push(numbers(gradient));
      return mul(gradient, 10) as Tensor;
    });
    backward(sum(add(mul(x, 2), mul(x, 3))));
    expect([seen, numbers(x.grad)]).toEqual([[[5, 5]], [50, 50]]);
  });

  test("hooks on intermediate results change the gradient that flows on; later hooks see it changed", () => {
    const x = parameter([1, 2]);
    const y = mul(x, 2);
    y.registerHook((gradient) => neg(gradient));
    const seen: unknown[] = [];
    y.registerHook((gradient) => void seen.push(numbers(gradient)));
    backward(sum(mul(y, 3)));
    expect([seen, numbers(x.grad)]).toEqual([[[-3, -3]], [-6, -6]]);
  });

  test("hooks are gone once they are removed, even by themselves while they run", () => {
    const x = parameter([1]);
    const calls: string[] = [];
    const remove = x.registerHook(() => {
      calls.push("first");
      remove();
      return undefined;
    });
    x.registerHook(() => void calls.push("second"));
    backward(sum(x));
    backward(sum(x));
    remove();
    expect(calls).toEqual(["first", "second", "second"]);
  });

  test("hooks that change the shape or the dtype are rejected", () => {
    const x = parameter([1, 2]);
    x.registerHook((gradient) => reshape(gradient, [2, 1]));
    expect(codeOf(() => backward(sum(x)))).toBe("wrongGradient");
    expect(() => tensor([1]).registerHook(() => undefined)).toThrow(ArgumentError);
  });

  test("retainGrad keeps an intermediate gradient as hooks have changed it, and adds those of later passes", () => {
    const x = parameter([1, 2]);
    const y = mul(x, 2).retainGrad();
    y.registerHook((gradient) => neg(gradient));
    const z = sum(mul(y, 3));
    backward(z, undefined, { retainGraph: true });
    backward(z);
    expect([numbers(y.grad), numbers(x.grad)]).toEqual([
      [-6, -6],
      [-12, -12],
    ]);
    expect(mul(x, 1).grad).toBeNull();
    expect(() => tensor([1]).retainGrad()).toThrow(/retainGrad.*float32\[1\] requires no gradient/);
  });
});

describe("recording can stop and continue", () => {
  test("recording stops in noGrad, continues in enableGrad inside it, and across awaits", async () => {
    const x = parameter([1]);
    expect(noGrad(() => mul(x, 2).requiresGrad)).toBe(false);
    expect(noGrad(() => enableGrad(() => mul(x, 2).requiresGrad))).toBe(true);
    const inside = noGrad(async () => {
      await Bun.sleep(2);
      return isGradEnabled();
    });
    expect(isGradEnabled()).toBe(true); // gradients are on while the body waits
    expect(await inside).toBe(false);
    expect(isGradEnabled()).toBe(true);
  });

  test("recording resumes after an error inside, sync and async", async () => {
    expect(() =>
      noGrad(() => {
        throw new Error("inside");
      }),
    ).toThrow("inside");
    await expect(
      noGrad(async () => {
        await Bun.sleep(1);
        throw new Error("later");
      }),
    ).rejects.toThrow("later");
    expect(isGradEnabled()).toBe(true);
  });

  test("detach cuts the graph, and shares the elements", () => {
    const x = parameter([1, 2]);
    const y = detach(mul(x, 2));
    expect([y.requiresGrad, y.isLeaf]).toEqual([false, true]);
    expect(detach(x).storage).toBe(x.storage);
    backward(sum(mul(x, y)));
    expect(numbers(x.grad)).toEqual([2, 4]);
  });

  test("requiresGrad of a result can't be set", () => {
    expect(() => {
      mul(parameter([1]), 2).requiresGrad = false;
    }).toThrow(/expected a leaf, got the result of an operation/);
  });
});

describe("misuse throws a typed error that says what to do", () => {
  test("an invalid gradient is rejected", () => {
    const x = parameter([1, 2]);
    x.grad = parameter([3, 4]);
    const assign = (value: unknown) => () => Reflect.set(x, "grad", value);
    expect(assign(5)).toThrow("[grad] expected grad to be a tensor or null, got 5");
    expect(assign(undefined)).toThrow("[grad] expected grad to be a tensor or null, got undefined");
    const differs = "[grad] expected the gradient of a float64[2] to have its shape and a float dtype, got";
    expect(assign(parameter([1, 2, 3]))).toThrow(`${differs} float64[3]`);
    expect(assign(tensor([1n, 2n]))).toThrow(`${differs} int64[2]`);
    expect(numbers(x.grad)).toEqual([3, 4]);
    x.grad = null;
    expect(x.grad).toBeNull();
  });

  test("no graph, no scalar, another shape, and an integer gradient are errors", () => {
    const x = parameter([1, 2]);
    expect(codeOf(() => backward(tensor(1)))).toBe("noGraph");
    expect(codeOf(() => backward(noGrad(() => sum(x))))).toBe("noGraph");
    expect(codeOf(() => backward(mul(x, 2)))).toBe("notAScalar");
    expect(() => backward(mul(x, 2))).toThrow("got float64[2]; reduce it (sum, mean) or pass its gradient");
    expect(() => backward(mul(x, 2), tensor([1, 2, 3]))).toThrow(ShapeError);
    expect(() => backward(mul(x, 2), tensor([1, 2], { dtype: "int32" }))).toThrow(DTypeError);
  });

  test("a second pass over a graph whose tensors were freed is an error", () => {
    const x = parameter([1, 2]);
    const y = sum(mul(x, x));
    backward(y);
    expect(codeOf(() => backward(y))).toBe("graphFreed");
    expect(() => backward(y)).toThrow(/saved by mul were freed.*retainGraph: true/);
    const z = sum(mul(x, x));
    backward(z, undefined, { retainGraph: true });
    backward(z);
    expect(numbers(x.grad)).toEqual([6, 12]);
  });

  test("two graphs can share a view and both be differentiated, because a view saves no tensors", () => {
    const x = parameter([1, 2]);
    const view = reshape(x, [2, 1]);
    backward(sum(mul(view, 2)));
    backward(sum(mul(view, 3)));
    expect(numbers(x.grad)).toEqual([5, 5]);
  });

  test("a saved tensor that was changed in place, also through a view, is an error; another tensor is not", () => {
    const x = parameter([1, 2]);
    const constant = tensor([3, 4], { dtype: "float64" });
    const y = sum(mul(x, constant));
    copyInto(reshape(constant, [2, 1]), tensor([[0], [0]], { dtype: "float64" }));
    expect(codeOf(() => backward(y))).toBe("savedTensorChanged");
    expect(() => backward(y)).toThrow(/float64\[2\] that mul needs.*version 1, expected 0.*clone\(\)/);
    const z = sum(add(x, constant));
    copyInto(constant, tensor([1, 1], { dtype: "float64" }));
    backward(z);
    expect(numbers(x.grad)).toEqual([1, 1]);
  });

  test("disposing of operands and results before the pass does no harm", () => {
    const x = parameter([1, 2]);
    const factor = tensor([3, 4], { dtype: "float64" });
    const middle = mul(x, factor);
    const y = sum(mul(middle, middle)); // Σ f²x²
    factor.dispose();
    middle.dispose();
    backward(y);
    expect(numbers(x.grad)).toEqual([18, 64]);
    expect(() => sub(middle, 1)).toThrow(/sub.*float64\[2\] was used after dispose/);
  });
});
