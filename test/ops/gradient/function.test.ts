import { describe, expect, test } from "bun:test";
import { onArrival } from "../../../src/autograd/arrival.ts";
import { noGrad } from "../../../src/autograd/modes.ts";
import { AutogradError } from "../../../src/autograd/node.ts";
import { AnomalyError, detectAnomaly } from "../../../src/backend/anomaly.ts";
import { ArgumentError, DisposedError } from "../../../src/core/errors.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { add, mul, sub } from "../../../src/ops/elementwise/arithmetic.ts";
import { gt } from "../../../src/ops/elementwise/comparison.ts";
import { div } from "../../../src/ops/elementwise/division.ts";
import { exp } from "../../../src/ops/elementwise/exponential.ts";
import { backward, grad } from "../../../src/ops/gradient/backward.ts";
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch users know it by this name
import { Function, type FunctionContext } from "../../../src/ops/gradient/function.ts";
import { GradcheckError, gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { argmax } from "../../../src/ops/reduction/extrema.ts";
import { sum } from "../../../src/ops/reduction/sum.ts";
import { reshape } from "../../../src/ops/view/reshape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

const parameter = (values: number[]) => tensor(values, { dtype: "float64", requiresGrad: true });
const numbers = (x: Tensor | null | undefined) => x && Array.from(x.dataSync(), Number);

/** x³, times a plain number. */
class ScaledCube extends Function {
  static forward(context: FunctionContext, x: Tensor, scale: number): Tensor {
    context.saveForBackward(x);
    context["scale"] = scale;
    return mul(mul(x, mul(x, x)), scale);
  }
  static backward(context: FunctionContext, gradient: Tensor | null) {
    const [x] = context.savedTensors;
    return [mul(gradient!, mul(mul(x, x), 3 * (context["scale"] as number))), null];
  }
}

/** Sum and difference, and the signs of the difference, which have no gradient. */
class SumAndDifference extends Function {
  static got: (Tensor | null)[] = [];
  static forward(context: FunctionContext, a: Tensor, b: Tensor): Tensor[] {
    const flags = mul(sub(a, b), 2);
    context.markNonDifferentiable(flags);
    return [add(a, b), sub(a, b), flags];
  }
  static backward(_: FunctionContext, ...gradients: (Tensor | null)[]) {
    SumAndDifference.got = gradients;
    const [ofSum, ofDifference] = gradients;
    if (!ofSum) return [ofDifference, mul(ofDifference!, -1)];
    if (!ofDifference) return [ofSum, ofSum];
    return [add(ofSum, ofDifference), sub(ofSum, ofDifference)];
  }
}

describe("Function defines an operation with its gradient", () => {
  test("Function accepts arguments other than tensors; a differentiable rule gives gradients of gradients", () => {
    const x = parameter([2, -1]);
    backward(sum(ScaledCube.apply(x, 2)));
    expect(numbers(x.grad)).toEqual([24, 6]);
    const y = parameter([2]);
    const [first] = grad(ScaledCube.apply(y, 1), [y], { createGraph: true });
    expect(numbers(grad(first, [y])[0])).toEqual([12]);
    expect(gradcheck((z) => ScaledCube.apply(z, 1.5), [parameter([0.3, -0.7])])).toBe(true);
  });

  test("a Function has several outputs: unused ones give null, marked ones are not differentiable", () => {
    const [a, b] = [parameter([5, 1]), parameter([2, 3])];
    const [total, difference, flags] = SumAndDifference.apply(a, b);
    expect([total.requiresGrad, difference.requiresGrad, flags.requiresGrad]).toEqual([true, true, false]);
    backward(difference, tensor([1, 10], { dtype: "float64" }));
    expect([numbers(a.grad), numbers(b.grad)]).toEqual([
      [1, 10],
      [-1, -10],
    ]);
    expect(SumAndDifference.got.map((gradient) => gradient === null)).toEqual([true, false, true]);
    expect(total.edge?.node).toBe(difference.edge!.node);
  });

  test("a Function knows which arguments need a gradient, and records nothing if none does", () => {
    const needs: (readonly boolean[])[] = [];
    class Probe extends Function {
      static forward(context: FunctionContext, a: Tensor, _: string, b: Tensor): Tensor {
        needs.push(context.needsInputGrad);
        expect(mul(a, 2).requiresGrad).toBe(false); // forward is not recorded
        return add(a, b);
      }
      static backward(_: FunctionContext, gradient: Tensor | null) {
        return [gradient, null, gradient];
      }
    }
    expect(Probe.apply(parameter([1]), "name", tensor([1], { dtype: "float64" })).requiresGrad).toBe(true);
    expect(Probe.apply(tensor([1]), "name", tensor([1])).requiresGrad).toBe(false);
    expect(noGrad(() => Probe.apply(parameter([1]), "name", parameter([1])).requiresGrad)).toBe(false);
    expect(needs[0]).toEqual([true, false, false]);
  });

  /** A function of one argument that returns `given` in backward. */
  const returning = (given: (gradient: Tensor) => Tensor | null | (Tensor | null)[]) => {
    class Wrong extends Function {
      static forward(_: FunctionContext, x: Tensor): Tensor {
        return mul(x, 1);
      }
      static backward(_: FunctionContext, gradient: Tensor | null) {
        return given(gradient!);
      }
    }
    return () => backward(sum(Wrong.apply(parameter([1, 2]))));
  };

  test("the error for a wrong count, a wrong shape or an integer gradient names the Function", () => {
    expect(returning((gradient) => [gradient, gradient])).toThrow(/Wrong.*2 gradients, forward has 1 arg/);
    expect(returning(() => [])).toThrow(/Wrong.*0 gradients/);
    expect(returning((gradient) => reshape(gradient, [2, 1]))).toThrow(
      /Wrong.*float64\[2, 1\] for argument 0, which is float64\[2\]/,
    );
    expect(returning(() => tensor([1, 2], { dtype: "int32" }))).toThrow(AutogradError);
    expect(returning(() => null)).not.toThrow();
  });

  test("a gradient of another float type is converted to the argument's", () => {
    class Half extends Function {
      static forward(_: FunctionContext, x: Tensor): Tensor {
        return mul(x, 1);
      }
      static backward() {
        return tensor([0.5, 0.25], { dtype: "float16" });
      }
    }
    const x = parameter([1, 2]);
    backward(sum(Half.apply(x)));
    expect([x.grad?.dtype, numbers(x.grad)]).toEqual(["float64", [0.5, 0.25]]);
  });

  test("a forward that returns its argument, saved tensors read outside, and disposed arguments are rejected", () => {
    let kept: FunctionContext | undefined;
    class Same extends Function {
      static forward(context: FunctionContext, x: Tensor): Tensor {
        kept = context;
        return x;
      }
      static backward = () => null;
    }
    expect(() => Same.apply(parameter([1]))).toThrow(ArgumentError);
    expect(() => kept?.savedTensors).toThrow(/in backward\(\) only/);
    const gone = parameter([1]);
    gone.dispose();
    expect(() => ScaledCube.apply(gone, 1)).toThrow(DisposedError);
  });
});

describe("gradcheck compares gradients with differences", () => {
  test("gradcheck accepts correct gradients, of several inputs and outputs", () => {
    const inputs = [parameter([0.4, -0.3, 1.2]), parameter([1.5, 2, -0.7])];
    expect(gradcheck((a, b) => [mul(exp(a), b), div(a, b)], inputs)).toBe(true);
    expect(gradcheck((a, b) => [detached(a), mul(a, b)], inputs)).toBe(true);
  });

  test.each([
    ["a factor", (gradient: Tensor, x: Tensor) => mul(gradient, mul(x, 2.01))],
    ["the sign", (gradient: Tensor, x: Tensor) => mul(gradient, mul(x, -2))],
    ["no use of the gradient", (_: Tensor, x: Tensor) => mul(x, 2)],
    ["nothing", () => null],
  ])("gradcheck catches a wrong gradient of x²: %s", (_, rule) => {
    class Square extends Function {
      static forward(context: FunctionContext, x: Tensor): Tensor {
        context.saveForBackward(x);
        return mul(x, x);
      }
      static backward(context: FunctionContext, gradient: Tensor | null): Tensor | null {
        return rule(gradient!, context.savedTensors[0]) as Tensor | null;
      }
    }
    expect(() => gradcheck((x) => Square.apply(x), [parameter([0.7, -1.1])])).toThrow(GradcheckError);
    expect(() => gradcheck((x) => Square.apply(x), [parameter([0.7, -1.1])])).toThrow(
      /input 0, element 0 \(0\.7\): backward gives/,
    );
  });

  test("gradcheck requires float64", () => {
    expect(() => gradcheck((x) => x, [tensor([1], { requiresGrad: true })])).toThrow(ArgumentError);
    expect(() => gradcheck((x) => x, [tensor([1], { dtype: "float64" })])).toThrow(ArgumentError);
  });

  const detached = (x: Tensor) => noGrad(() => mul(x, 2));
});

describe("detectAnomaly names the operation that made the first NaN", () => {
  test("the operation of the forward pass is named, with its operands", () => {
    const zero = tensor([1, 0]);
    expect(() => detectAnomaly(() => exp(mul(div(zero, zero), 2)))).toThrow(AnomalyError);
    expect(() => detectAnomaly(() => exp(mul(div(zero, zero), 2)))).toThrow(
      "[div] it returned the first NaN, in result 0 (float32[2]), from float32[2], float32[2] without NaN",
    );
    expect(div(zero, zero).dataSync()[1]).toBeNaN(); // outside of detectAnomaly, NaN is no error
  });

  test("in backward, the operation whose gradient has the first NaN is named: 0 · e¹⁰⁰⁰", () => {
    const zero = tensor([0], { dtype: "float64" });
    expect(() => detectAnomaly(() => backward(exp(parameter([1000])), zero))).toThrow(/^\[backward of exp: mul\]/);
    class Bad extends Function {
      static forward(_: FunctionContext, x: Tensor): Tensor {
        return mul(x, 1);
      }
      static backward(_: FunctionContext, gradient: Tensor | null): Tensor {
        const nothing = mul(gradient!, 0);
        return div(nothing, nothing);
      }
    }
    expect(() => detectAnomaly(() => backward(sum(Bad.apply(parameter([1])))))).toThrow(/^\[backward of Bad: div\]/);
  });

  test("integers and bools, which have neither NaN nor infinity, are skipped", () => {
    const x = tensor([1, 2]);
    const results = detectAnomaly(() => [argmax(x), gt(x, 1), toDType(x, "int64")], { infinity: true });
    expect(results.map((own) => own.toArray())).toEqual([1n, [false, true], [1n, 2n]]);
  });

  test("the first infinity is named if infinities are searched for", () => {
    const overflow = () => sub(mul(tensor([3e38]), 10), mul(tensor([3e38]), 10));
    expect(() => detectAnomaly(overflow)).toThrow("[sub] it returned the first NaN");
    expect(() => detectAnomaly(overflow, { infinity: true })).toThrow("[mul] it returned the first infinity or NaN");
  });

  test("operands that already had NaN blame no operation, and the mode applies across awaits", async () => {
    const x = tensor([Number.NaN]);
    expect(numbers(detectAnomaly(() => exp(x)))).toEqual([Number.NaN]);
    const later = detectAnomaly(async () => {
      await Bun.sleep(1);
      return div(tensor([0]), tensor([0]));
    });
    await expect(later).rejects.toThrow(AnomalyError);
  });
});

test.each<readonly [order: string, compute: (a: Tensor, b: Tensor) => Tensor]>([
  ["b, a", (a, b) => mul(mul(mul(a, 2), b), a)], // a receives a part of its gradient first, and the rest last
  ["b, a", (a, b) => mul(mul(mul(a, 2), b), b)],
])("gradients of leaves arrive with the last operation that uses them, not at the end: %s", (order, compute) => {
  const [a, b] = [parameter([2]), parameter([3])];
  const arrived: string[] = [];
  const removers = [onArrival(a, () => arrived.push("a")), onArrival(b, () => arrived.push("b"))];
  backward(sum(mul(compute(a, b), add(parameter([1]), 1))));
  for (const remove of removers) remove();
  expect(arrived.join(", ")).toBe(order);
});
