/** Second-order gradients of normalizations, for any layout of rows. */
import { record } from "../../autograd/record.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, neg, square, sub } from "../elementwise/arithmetic.ts";
import { rsqrt } from "../elementwise/power.ts";
import { expand, sumTo } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { type Named, namedTensors, type present } from "./problem.ts";

/** Operands with a gradient; the gradient of x is also the residual's. */
export type GradientSource = "x" | "weight" | "bias";
export type Gradients = { readonly [Source in GradientSource]?: Tensor | null | undefined };

/** The groups of elements that are normalized together: rows, or the elements of channels. */
export interface NormalizedRows {
  readonly isCentered: boolean;
  readonly eps: number;
  /** 1 / √(variance + eps) of each group, broadcastable to x. */
  readonly scale: Tensor;
  /** Returns the mean of each group, broadcastable to x. */
  mean(x: Tensor): Tensor;
  /** Reshapes a weight so that it broadcasts to x. */
  spread(vector: Tensor): Tensor;
  /** Computes the gradient of x from v, without a weight: N(v) below. */
  gradient(x: Tensor, v: Tensor): Tensor;
}

interface Operands extends Named<"weight" | "gradSum"> {
  readonly x: Tensor;
  readonly gradOut: Tensor;
}

export type SecondGradients = { readonly [Name in "x" | "weight" | "gradOut" | "gradSum"]?: Tensor | null | undefined };

type Present = ReturnType<typeof present>;

/** A call that computed gradients. */
interface GradientCall {
  readonly operation: string;
  readonly inputs: Present;
  /** The inputs that have gradients. */
  readonly variables: Present;
  readonly sources: readonly GradientSource[];
  readonly results: readonly Tensor[];
}

/**
 * Records a call that computed gradients, so that they are differentiable, and returns them by name.
 *
 * @param layout returns the groups of elements, from the saved operands
 */
export function recordGradients<Saved extends Operands>(
  { operation, inputs, variables, sources, results }: GradientCall,
  layout: (saved: Saved) => NormalizedRows,
): Gradients {
  record(`${operation}Gradient`, variables.tensors, results, inputs.tensors, (incoming, tensors) => {
    const saved = namedTensors<Saved>(inputs.names as (keyof Saved)[], tensors);
    const given = namedTensors<Named<GradientSource>>(sources, incoming as readonly Tensor[]);
    const gradients: { readonly [name: string]: Tensor | null | undefined } = secondGradients(
      layout(saved),
      saved,
      given,
    );
    return variables.names.map((name) => gradients[name] ?? null);
  });
  return namedTensors<Named<GradientSource>>(sources, results);
}

/**
 * Computes second-order gradients. Let u, a and b be the gradients with respect to gradX, gradWeight and gradBias, v =
 * gradOut · weight, r = scale, ⟨·⟩ the mean of a row, and N(v) the gradient of x from v (linear in v, and symmetric):
 *
 *     of gradOut:  weight · N(u) + a · n + b
 *     of weight:   Σ gradOut · N(u)                                        summed over the elements it scales
 *     of x:        N(a · gradOut) − r · (n · ⟨u · N(v)⟩ + N(u · ⟨v · n⟩ + v · ⟨u · n⟩))
 *     of gradSum:  u
 *
 * The formula for x follows from ∂n = N and ∂r / ∂x = −r² n / N. Everything is computed in the dtype of the statistics,
 * with differentiable operations.
 */
export function secondGradients(layout: NormalizedRows, operands: Operands, incoming: Gradients): SecondGradients {
  const { x: input, gradOut: given, weight: factor, gradSum } = operands;
  const dtype = accumulationDType(input.dtype);
  const cast = (tensor: Tensor): Tensor => toDType(tensor, dtype);
  const rows = rowsOf(layout, cast(input));
  const gradOut = cast(given);
  const weight = factor && layout.spread(cast(factor));
  const u = incoming.x && cast(incoming.x);
  const [a, b] = [incoming.weight, incoming.bias].map((vector) => vector && layout.spread(cast(vector)));
  const v = times(gradOut, weight);
  const projected = u && rows.gradient(u);
  const ofX = [u && rows.ofRow(u, v), a && rows.gradient(times(gradOut, a))];
  const ofGradOut = [projected && times(projected, weight), a && times(rows.normalized, a), b];
  const ofWeight = weight && projected && sumTo(times(gradOut, projected), weight.shape);
  return {
    x: total(ofX, input),
    gradOut: total(ofGradOut, given),
    weight: ofWeight && toDType(reshape(ofWeight, factor.shape), factor.dtype),
    gradSum: gradSum && incoming.x,
  };
}

/** Returns n, a function for N(v), and one for the term of x's gradient that depends on u. */
function rowsOf({ isCentered, eps, scale, mean, gradient: gradientOf }: NormalizedRows, x: Tensor) {
  const centered = isCentered ? sub(x, mean(x)) : x;
  // `scale` is r as a constant: it keeps the squared values near 1.
  const spread = mean(square(mul(centered, scale)));
  const r = mul(scale, rsqrt(add(spread, square(mul(scale, Math.sqrt(eps))))));
  const normalized = mul(centered, r);
  const gradient = (v: Tensor): Tensor => gradientOf(x, v);
  const ofRow = (u: Tensor, v: Tensor): Tensor => {
    const ofScale = mul(normalized, mean(mul(u, gradient(v))));
    const ofNormalized = add(mul(u, mean(times(v, normalized))), mul(v, mean(times(u, normalized))));
    return neg(mul(r, add(ofScale, gradient(ofNormalized))));
  };
  return { normalized, gradient, ofRow };
}

const times = (a: Tensor, b: Tensor | null | undefined): Tensor => (b ? mul(a, b) : a);

/** Sums the parts that are present, in the dtype and shape of `like`; null if there are none. */
function total(parts: readonly (Tensor | null | undefined)[], like: Tensor): Tensor | null {
  const [first, ...others] = parts.filter((part) => part != null);
  if (!first) return null;
  const sum = others.reduce<Tensor>((sum, part) => add(sum, part), first);
  return toDType(expand(sum, like.shape), like.dtype);
}
