/** Lowerings of elementwise functions: the table of their formulas. */
import { noGrad } from "../../autograd/modes.ts";
import { defineLowering } from "../../backend/complex.ts";
import { isComplexTensor, plane } from "../../tensor/planes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { neg, square } from "../elementwise/arithmetic.ts";
import { eq, ge, lt, ne } from "../elementwise/comparison.ts";
import { exp, exp2, expm1 } from "../elementwise/exponential.ts";
import { hypot } from "../elementwise/hypot.ts";
import { logicalAnd, logicalNot, logicalOr, logicalXor } from "../elementwise/logic.ts";
import { isfinite, isinf, isnan } from "../elementwise/predicates.ts";
import { cos, sin } from "../elementwise/trigonometric.ts";
import {
  direction,
  exponential,
  logarithm,
  logarithmOfSum,
  polarForm,
  power,
  product,
  quotient,
  root,
  scaled,
} from "./formulas.ts";
import { joinedParts } from "./planewise.ts";
import { choose, filledLike, minus, over, type Parts, plus, times } from "./real_operations.ts";
import * as trigonometry from "./trigonometry.ts";

/** Computes a function of complex numbers: the parts of the result, or a real result. */
type Formula = (x: Parts, y: Parts, z: Parts) => Parts | Tensor;

const one = (like: Parts): Parts => ({ re: filledLike(like.re, 1), im: filledLike(like.im, 0) });
const isNotZero = ({ re, im }: Parts): Tensor => logicalOr(re, im);

/** 2^z, with the angle im · ln 2. */
const powerOfTwo = ({ re, im }: Parts): Parts => polarForm(exp2(re), times(im, Math.LN2), im);

/** e^z − 1, accurate near 0: the real part is (e^re − 1) · cos im − 2 · sin²(im/2). */
const exponentialLessOne = ({ re, im }: Parts): Parts => ({
  re: minus(times(expm1(re), cos(im)), times(square(sin(times(im, 0.5))), 2)),
  im: times(exp(re), sin(im)),
});

/** 1 / (1 + e^(−z)). */
function logistic(z: Parts): Parts {
  const { re, im } = exponential({ re: neg(z.re), im: neg(z.im) });
  return quotient(one(z), { re: plus(re, 1), im });
}

const sum = (x: Parts, y: Parts): Parts => ({ re: plus(x.re, y.re), im: plus(x.im, y.im) });
const difference = (x: Parts, y: Parts): Parts => ({ re: minus(x.re, y.re), im: minus(x.im, y.im) });
const chosen = (condition: Tensor, x: Parts, y: Parts): Parts => ({
  re: choose(condition, x.re, y.re),
  im: choose(condition, x.im, y.im),
});

/** a + w (b − a), or b − (b − a)(1 − w) for |w| ≥ ½. */
function interpolation(a: Parts, b: Parts, weight: Parts): Parts {
  const step = difference(b, a);
  const near = sum(a, product(weight, step));
  const far = difference(b, product(step, difference(one(weight), weight)));
  return chosen(lt(hypot(weight.re, weight.im), 0.5), near, far);
}

/** ln(eˣ + eʸ) = x + ln(1 + eʸ⁻ˣ) with the larger real part in x. */
function logarithmOfExponentials(x: Parts, y: Parts): Parts {
  const isFirstLarger = ge(x.re, y.re);
  const [larger, smaller] = [chosen(isFirstLarger, x, y), chosen(isFirstLarger, y, x)];
  return sum(larger, logarithmOfSum(exponential(difference(smaller, larger))));
}

/** sin(πz) / (πz); 1 for 0. */
function cardinalSine(z: Parts): Parts {
  const angle = scaled(z, Math.PI);
  const isZero = logicalAnd(eq(z.re, 0), eq(z.im, 0));
  return chosen(isZero, one(z), quotient(trigonometry.sine(angle), angle));
}

/** The derivative of z σ(z), times g: σ (1 + z (1 − σ)). */
function siluGradient(g: Parts, z: Parts): Parts {
  const share = logistic(z);
  return product(g, product(share, sum(one(z), product(z, difference(one(z), share)))));
}

/** z / (1 + |z|). */
function softsign(z: Parts): Parts {
  const size = plus(hypot(z.re, z.im), 1);
  return { re: over(z.re, size), im: over(z.im, size) };
}

const formulas: Readonly<Record<string, Formula>> = {
  mul: product,
  square: (z) => product(z, z),
  div: quotient,
  reciprocal: (z) => quotient(one(z), z),
  abs: ({ re, im }) => hypot(re, im),
  sign: direction,
  sqrt: root,
  rsqrt: (z) => quotient(one(z), root(z)),
  pow: power,
  exp: exponential,
  exp2: powerOfTwo,
  expm1: exponentialLessOne,
  log: logarithm,
  log2: (z) => scaled(logarithm(z), Math.LOG2E),
  log10: (z) => scaled(logarithm(z), Math.LOG10E),
  log1p: logarithmOfSum,
  sin: trigonometry.sine,
  cos: trigonometry.cosine,
  tan: trigonometry.tangent,
  sinh: trigonometry.hyperbolicSine,
  cosh: trigonometry.hyperbolicCosine,
  tanh: trigonometry.hyperbolicTangent,
  asin: trigonometry.arcsine,
  acos: trigonometry.arccosine,
  atan: trigonometry.arctangent,
  asinh: trigonometry.hyperbolicArcsine,
  acosh: trigonometry.hyperbolicArccosine,
  atanh: trigonometry.hyperbolicArctangent,
  sigmoid: logistic,
  silu: (z) => product(z, logistic(z)),
  siluGradient,
  softsign,
  tanhshrink: (z) => difference(z, trigonometry.hyperbolicTangent(z)),
  sinc: cardinalSine,
  logaddexp: logarithmOfExponentials,
  addcmul: (x, a, b) => sum(x, product(a, b)),
  addcdiv: (x, a, b) => sum(x, quotient(a, b)),
  lerp: interpolation,
  eq: (x, y) => logicalAnd(eq(x.re, y.re), eq(x.im, y.im)),
  ne: (x, y) => logicalOr(ne(x.re, y.re), ne(x.im, y.im)),
  isnan: ({ re, im }) => logicalOr(isnan(re), isnan(im)),
  isinf: ({ re, im }) => logicalOr(isinf(re), isinf(im)),
  isfinite: ({ re, im }) => logicalAnd(isfinite(re), isfinite(im)),
  logicalNot: (z) => logicalNot(isNotZero(z)),
  logicalAnd: (x, y) => logicalAnd(isNotZero(x), isNotZero(y)),
  logicalOr: (x, y) => logicalOr(isNotZero(x), isNotZero(y)),
  logicalXor: (x, y) => logicalXor(isNotZero(x), isNotZero(y)),
};

function define(primitive: string, formula: Formula): void {
  defineLowering(primitive, {
    compute: ({ operation, inputs }) =>
      noGrad(() =>
        tidy(() => {
          const [x, y, z] = inputs.map(partsOf);
          const result = formula(x, y, z);
          return ["re" in result ? joinedParts(result.re, result.im, operation) : result];
        }),
      ),
  });
}

function partsOf(x: Tensor): Parts {
  if (!isComplexTensor(x)) throw new TypeError("expected operands of one complex dtype; promote them first");
  return { re: plane(x, 0), im: plane(x, 1) };
}

Object.entries(formulas).forEach(([primitive, formula]) => {
  define(primitive, formula);
});
