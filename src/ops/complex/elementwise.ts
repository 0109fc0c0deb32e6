/** Lowerings of elementwise functions: the table of their formulas. */
import { noGrad } from "../../autograd/modes.ts";
import { defineLowering } from "../../backend/complex.ts";
import { isComplexTensor, plane } from "../../tensor/planes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { neg, square } from "../elementwise/arithmetic.ts";
import { eq, ne } from "../elementwise/comparison.ts";
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
import { filledLike, minus, type Parts, plus, times } from "./real_operations.ts";
import * as trigonometry from "./trigonometry.ts";

/** Computes a function of complex numbers: its parts, or a real result. */
type Formula = (x: Parts, y: Parts) => Parts | Tensor;

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
          const [x, y] = inputs.map(partsOf);
          const result = formula(x!, y!);
          return ["re" in result ? joinedParts(result.re, result.im, operation) : result];
        }),
      ),
  });
}

function partsOf(x: Tensor): Parts {
  if (!isComplexTensor(x)) throw new TypeError("operands of formulas are promoted to one complex dtype");
  return { re: plane(x, 0), im: plane(x, 1) };
}

Object.entries(formulas).forEach(([primitive, formula]) => {
  define(primitive, formula);
});
