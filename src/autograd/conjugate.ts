import { isComplex } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** How an operation on complex numbers uses its gradients: see {@link conjugated}. */
export type Conjugation = "holomorphic" | "none";

let conj: (x: Tensor) => Tensor = (x) => x;

/** Sets the operation that computes complex conjugates, which this folder can't import. */
export function setConj(compute: (x: Tensor) => Tensor): void {
  conj = compute;
}

const conjugate = <T extends Tensor | null>(x: T): T => (x !== null && isComplex(x.dtype) ? (conj(x) as T) : x);

/**
 * Turns a gradient rule for real numbers into the rule for a holomorphic function f of complex numbers. As in PyTorch,
 * the gradient of a real L is ∂L/∂re + i·∂L/∂im. The gradient of the input is then g · conj(f′(z)) = conj(conj(g) ·
 * f′(z)): the rule for real numbers between two conjugates. (Kreutz-Delgado, "The Complex Gradient Operator and the
 * CR-Calculus", 2009.) The same holds for linear operations with real coefficients, such as views, whose rules commute
 * with conjugation.
 */
export const conjugated =
  <Rule extends (gradients: never, saved: never, needs: never) => readonly (Tensor | null)[]>(rule: Rule) =>
  (gradients: readonly (Tensor | null)[], saved: readonly Tensor[], needs: readonly boolean[]) =>
    rule(gradients.map(conjugate) as never, saved as never, needs as never).map(conjugate);
