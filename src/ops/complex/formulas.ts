/** Lowerings of elementwise functions: formulas on the real and the imaginary parts. */
import { noGrad } from "../../autograd/modes.ts";
import { defineLowering } from "../../backend/complex.ts";
import { isComplexTensor, plane } from "../../tensor/planes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { abs, add, mul, neg, sub } from "../elementwise/arithmetic.ts";
import { eq, ge, ne } from "../elementwise/comparison.ts";
import { trueDivide } from "../elementwise/division.ts";
import { exp } from "../elementwise/exponential.ts";
import { hypot } from "../elementwise/hypot.ts";
import { logicalAnd, logicalOr } from "../elementwise/logic.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { cos, sin } from "../elementwise/trigonometric.ts";
import { where } from "../elementwise/where.ts";
import { expand } from "../view/expand.ts";
import { joinedParts } from "./planewise.ts";

/** The real and the imaginary parts of complex numbers, as real tensors of one shape. */
export interface Parts {
  readonly re: Tensor;
  readonly im: Tensor;
}

/** Computes a function of complex numbers: its parts, or a real result. */
type Formula = (...operands: [x: Parts, y: Parts]) => Parts | Tensor;

function defineFormula(primitive: string, formula: Formula): void {
  defineLowering(primitive, {
    compute: ({ operation, inputs }) =>
      noGrad(() =>
        tidy(() => {
          const result = formula(...(inputs.map(partsOf) as [Parts, Parts]));
          return ["re" in result ? joinedParts(result.re, result.im, operation) : result];
        }),
      ),
  });
}

function partsOf(x: Tensor): Parts {
  if (!isComplexTensor(x)) throw new TypeError("operands of formulas are promoted to one complex dtype");
  return { re: plane(x, 0), im: plane(x, 1) };
}

// Operations whose results have the dtype of real operands.
const plus = (a: Tensor, b: Tensor | number): Tensor => add(a, b) as Tensor;
const minus = (a: Tensor, b: Tensor | number): Tensor => sub(a, b) as Tensor;
const times = (a: Tensor, b: Tensor | number): Tensor => mul(a, b) as Tensor;
const over = (a: Tensor | number, b: Tensor): Tensor => trueDivide(a, b) as Tensor;
const choose = (condition: Tensor, a: Tensor | number, b: Tensor | number): Tensor => where(condition, a, b) as Tensor;

const filledLike = (x: Tensor, value: number): Tensor => expand(scalarTensor(value, x.dtype), x.shape);

/** (a + bi)(c + di) = (ac − bd) + (ad + bc)i. */
const product = (x: Parts, y: Parts): Parts => ({
  re: minus(times(x.re, y.re), times(x.im, y.im)),
  im: plus(times(x.re, y.im), times(x.im, y.re)),
});

/**
 * Divides by the larger part first, so that no square overflows (Smith, "Algorithm 116: Complex division", 1962). A
 * division by 0 divides both parts by it.
 */
function quotient({ re: a, im: b }: Parts, { re: c, im: d }: Parts): Parts {
  const isRealLarger = ge(abs(c), abs(d));
  const larger = choose(isRealLarger, c, d);
  const smaller = choose(isRealLarger, d, c);
  const isZero = eq(larger, 0);
  const ratio = choose(isZero, 0, over(smaller, larger));
  const scale = over(1, choose(isZero, abs(larger), plus(larger, times(smaller, ratio))));
  const first = choose(isRealLarger, a, b);
  const second = choose(isRealLarger, b, a);
  const across = minus(second, times(first, ratio));
  return {
    re: times(plus(first, times(second, ratio)), scale),
    im: times(choose(isRealLarger, across, neg(across)), scale),
  };
}

/** Scales e^re · (cos im + i · sin im). For im = 0 the result is real also if e^re is infinite. */
function exponential({ re, im }: Parts): Parts {
  const size = exp(re) as Tensor;
  const isReal = eq(im, 0);
  return {
    re: choose(isReal, size, times(size, cos(im) as Tensor)),
    im: choose(isReal, im, times(size, sin(im) as Tensor)),
  };
}

/** z / |z|; 0 for 0. */
function direction({ re, im }: Parts): Parts {
  const size = hypot(re, im) as Tensor;
  const isZero = eq(size, 0);
  return { re: choose(isZero, 0, over(re, size)), im: choose(isZero, 0, over(im, size)) };
}

defineFormula("mul", product);
defineFormula("square", (z) => product(z, z));
defineFormula("div", quotient);
defineFormula("reciprocal", (z) => quotient({ re: filledLike(z.re, 1), im: filledLike(z.re, 0) }, z));
defineFormula("abs", ({ re, im }) => hypot(re, im) as Tensor);
defineFormula("sign", direction); // for the gradient of abs; the public `sign` rejects complex numbers
defineFormula("exp", exponential);
defineFormula("eq", (x, y) => logicalAnd(eq(x.re, y.re), eq(x.im, y.im)));
defineFormula("ne", (x, y) => logicalOr(ne(x.re, y.re), ne(x.im, y.im)));
