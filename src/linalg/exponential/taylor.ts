/**
 * Taylor polynomials of the exponential with few matrix products: 0, 1, 2, 3, 4 and 5 for the degrees 1, 2, 4, 8, 12
 * and 18. Source: P. Bader, S. Blanes and F. Casas, "Computing the Matrix Exponential with an Optimized Taylor
 * Polynomial Approximation", Mathematics 7 (2019). A test expands the polynomials.
 */
import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import { eye } from "../../ops/creation/eye.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { type DType, realDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

export const degrees = [1, 2, 4, 8, 12, 18] as const;
export type Degree = (typeof degrees)[number];

/** The largest ‖A‖₁ for which the backward error of the polynomial of each degree is within the dtype's precision. */
const norms: Readonly<Record<"float32" | "float64", readonly number[]>> = {
  float32: [
    1.192092800768788e-7, 0.0005978858893805233, 0.05116619363445086, 0.5800524627688768, 1.461661507209034,
    3.010066362817634,
  ],
  float64: [
    2.220446049250313e-16, 2.580956802971767e-8, 0.0003397168839976962, 0.04991228871115323, 0.299615891381158,
    1.090863719290036,
  ],
};

/** Returns the largest norm for the polynomial of each degree. */
export const limitsOf = (dtype: DType): readonly number[] =>
  norms[realDType(dtype) === "float64" ? "float64" : "float32"];

/** Chooses the polynomial for a norm, and the number of times to halve the matrix first. */
export function planOf(norm: number, dtype: DType): { degree: Degree; squarings: number } {
  const limits = limitsOf(dtype);
  const at = limits.findIndex((limit) => norm <= limit);
  if (at >= 0) return { degree: degrees[at], squarings: 0 };
  return { degree: 18, squarings: Number.isFinite(norm) ? Math.ceil(Math.log2(norm / lastElement(limits))) : 0 };
}

/** Evaluates the polynomial of a degree at each matrix. */
export function taylor(degree: Degree, a: Tensor): Tensor {
  const one = eye(lastElement(a.shape), { dtype: a.dtype });
  if (degree === 1) return add(one, a);
  const a2 = matmul(a, a);
  if (degree === 2) return combined([1, 1, 1 / 2], [one, a, a2]);
  if (degree === 4) return add(add(one, a), matmul(a2, combined([1 / 2, 1 / 6, 1 / 24], [one, a, a2])));
  if (degree === 8) return degree8(one, a, a2);
  const a3 = matmul(a2, a);
  return degree === 12 ? degree12([one, a, a2, a3]) : degree18([one, a, a2, a3, matmul(a3, a3)]);
}

const root = Math.sqrt(177);
const x3 = 2 / 3;
const x1 = (x3 * (1 + root)) / 88;
const x2 = (x3 * (1 + root)) / 352;
const x4 = (-271 + 29 * root) / (315 * x3);
const x5 = (11 * (-1 + root)) / (1260 * x3);
const x6 = (11 * (-9 + root)) / (5040 * x3);
const x7 = (89 - root) / (5040 * x3 ** 2);
const y2 = (857 - 58 * root) / 630;

/** The coefficients of the polynomial of degree 8; see {@link degree8}. A cpu kernel reads them in this order. */
export const factors8 = [x1, x2, x4, x5, x6, x7, y2] as const;

function degree8(one: Tensor, a: Tensor, a2: Tensor): Tensor {
  const a4 = matmul(a2, combined([x1, x2], [a, a2]));
  const a8 = matmul(combined([x3, 1], [a2, a4]), combined([x4, x5, x6, x7], [one, a, a2, a4]));
  return combined([1, 1, y2, 1], [one, a, a2, a8]);
}

/** The coefficients of 1, A, A² and A³. */
export const factors12 = [
  [9.0198e-16, 0.4693211759541824, -0.20099424927047285, -0.04623946134063072],
  [5.315978957598713, 1.1992679041713223, 0.01179296240992997, 0.01108844528519168],
  [0.18188869982170436, 0.05502798439925399, 0.09351590770535415, 0.006107005288980582],
  [-2.086132e-13, -0.13181061013830184, -0.02027855540589259, -0.006759518468630863],
] as const;

function degree12(powers: readonly Tensor[]): Tensor {
  const [b1, b2, b3, b4] = tupleOf(
    factors12.map((factors) => combined(factors, powers)),
    4,
  );
  const a6 = add(b3, matmul(b4, b4));
  return add(b1, matmul(add(b2, a6), a6));
}

/** The coefficients of 1, A, A², A³ and A⁶. */
export const factors18 = [
  [0, -0.10036558103014462, -0.00802924648241157, -0.00089213849804573, 0],
  [0, 0.3978497494996451, 1.3678377846041172, 0.49828962252538267, -0.0006378981945947233],
  [-10.967639605296206, 1.680158138789062, 0.05717798464788655, -0.0069821012248805206, 0.00003349750170860705],
  [-0.09043168323908106, -0.06764045190713819, 0.06759613017704597, 0.029555257042931552, -0.00001391802575160607],
  [0, 0, -0.09233646193671186, -0.016936493900208172, -0.00001400867981820361],
] as const;

function degree18(powers: readonly Tensor[]): Tensor {
  const [b1, b2, b3, b4, b5] = tupleOf(
    factors18.map((factors) => combined(factors, powers)),
    5,
  );
  const a9 = add(matmul(b1, b5), b4);
  return add(b2, matmul(add(b3, a9), a9));
}

/** Σ factor · matrix, skipping factors of 0. */
function combined(factors: readonly number[], matrices: readonly Tensor[]): Tensor {
  const terms = factors.flatMap((factor, at) => (factor === 0 ? [] : [mul(matrices[at], factor)]));
  return terms.reduce((total, term) => add(total, term));
}
