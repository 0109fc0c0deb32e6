/** The backward of normalizations as an operation of its own, so that gradients have gradients. */
import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, neg, square, sub } from "../elementwise/arithmetic.ts";
import { rsqrt } from "../elementwise/power.ts";
import { mean } from "../reduction/mean.ts";
import { expand, sumTo } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { backwardCpu } from "./backward.cpu.ts";
import { backwardMetal } from "./backward.metal.ts";
import { backwardReference } from "./backward.reference.ts";
import type { NormalizationAttributes, OutputName } from "./primitive.ts";
import { type Named, namedTensors, present } from "./problem.ts";

/** What the forward saved and incoming gradients to the gradients that are needed. */
const normalizationBackward = definePrimitive<NormalizationAttributes>({
  name: "normalizationBackward",
  family: "normalization",
  implementations: { metal: backwardMetal, cpu: backwardCpu, reference: backwardReference },
});

/** What a call has beside its tensors. */
interface Attributes {
  readonly operation: string;
  /** Of the gradients of weight and bias. */
  readonly vectorDType: DType;
  readonly isCentred: boolean;
  readonly eps: number;
}

/** What the forward saved. */
export type Saved = Named<"mean" | "weight"> & Readonly<Record<"x" | "scale", Tensor>>;

/** x, `mean` where it is centred, `scale`, `gradOut`, and what there is of `weight` and `gradSum`. */
type Operands = Saved & Named<"gradSum"> & { readonly gradOut: Tensor };

/** What has a gradient; that of x is the residual's too. */
export type GradientSource = "x" | "weight" | "bias";
export type Gradients = { readonly [Source in GradientSource]?: Tensor | null | undefined };

const gradientNames = { x: "gradX", weight: "gradWeight", bias: "gradBias" } as const satisfies Record<
  GradientSource,
  OutputName
>;

/** The gradients that are needed, in one pass over the rows. */
export function normalizationGradient(
  attributes: Attributes,
  operands: Operands,
  needed: ReadonlySet<GradientSource>,
): Gradients {
  const { operation, isCentred, eps, vectorDType } = attributes;
  const { x, weight, gradOut, gradSum } = operands;
  const sources = (Object.keys(gradientNames) as GradientSource[]).filter((source) => needed.has(source));
  const inputs = present(operands);
  const outputs = sources.map((source) => gradientNames[source]);
  const row = { shape: x.shape.slice(-1), dtype: vectorDType };
  const specs = sources.map((source) => (source === "x" ? { shape: x.shape, dtype: x.dtype } : row));
  const call = { inputs: inputs.names, outputs, isCentred, eps };
  const results = executeMany(normalizationBackward, inputs.tensors, specs, call, operation);
  const variables = present({ x, weight, gradOut, gradSum });
  record(`${operation}Gradient`, variables.tensors, results, inputs.tensors, (incoming, saved) => {
    const kept = namedTensors(inputs.names, saved) as Operands;
    const gradients = secondGradients(attributes, kept, namedTensors(sources, incoming as readonly Tensor[]));
    return variables.names.map((name) => gradients[name] ?? null);
  });
  return namedTensors(sources, results);
}

type SecondGradients = { readonly [Name in "x" | "weight" | "gradOut" | "gradSum"]?: Tensor | null | undefined };

/**
 * Gradients of the gradients: with u, a and b the gradients of those of x, weight and bias, v = gradOut · weight, r =
 * scale, ⟨·⟩ the mean of a row and N(v) the gradient of x from v (linear in v, and symmetric):
 *
 *     of gradOut:  weight · N(u) + a · n + b
 *     of weight:   Σ gradOut · N(u)                                        over all rows
 *     of x:        N(a · gradOut) − r · (n · ⟨u · N(v)⟩ + N(u · ⟨v · n⟩ + v · ⟨u · n⟩))
 *     of gradSum:  u
 *
 * The line of x follows from ∂n = N and ∂r / ∂x = −r² n / N. All in the dtype of the statistics, of differentiable
 * operations.
 */
function secondGradients(attributes: Attributes, operands: Operands, incoming: Gradients): SecondGradients {
  const { x: own, gradOut: given, weight: factor, gradSum } = operands;
  const dtype = accumulationDType(own.dtype);
  const cast = (tensor: Tensor): Tensor => toDType(tensor, dtype);
  const rows = rowsFor(attributes, operands, cast(own));
  const gradOut = cast(given);
  const weight = factor && cast(factor);
  const [u, a, b] = [incoming.x, incoming.weight, incoming.bias].map((tensor) => tensor && cast(tensor));
  const v = times(gradOut, weight);
  const projected = u && rows.gradient(u);
  const ofX = [u && rows.ofRow(u, v), a && rows.gradient(times(gradOut, a))];
  const ofGradOut = [projected && times(projected, weight), a && times(rows.normalized, a), b];
  return {
    x: total(ofX, own),
    gradOut: total(ofGradOut, given),
    weight: factor && projected && toDType(sumTo(times(gradOut, projected), factor.shape), factor.dtype),
    gradSum: gradSum && incoming.x,
  };
}

/** n, N(v), and the term of the gradient of x above that comes from u. */
function rowsFor(attributes: Attributes, { mean: average, scale }: Operands, x: Tensor) {
  const { isCentred, eps } = attributes;
  const factor = reshape(scale, [...scale.shape, 1]);
  const centred = isCentred ? (sub(x, rowMean(x)) as Tensor) : x;
  // `factor` is r as a constant: what the squares are taken of is about 1.
  const spread = rowMean(square(mul(centred, factor) as Tensor) as Tensor);
  const r = mul(factor, rsqrt(add(spread, square(mul(factor, Math.sqrt(eps)) as Tensor)) as Tensor)) as Tensor;
  const normalized = mul(centred, r) as Tensor;
  const gradient = (v: Tensor): Tensor =>
    normalizationGradient(attributes, { x, mean: average, scale, gradOut: v }, new Set(["x"])).x!;
  const ofRow = (u: Tensor, v: Tensor): Tensor => {
    const ofScale = mul(normalized, rowMean(mul(u, gradient(v)) as Tensor));
    const ofNormalized = add(mul(u, rowMean(times(v, normalized))), mul(v, rowMean(times(u, normalized)))) as Tensor;
    return neg(mul(r, add(ofScale, gradient(ofNormalized)))) as Tensor;
  };
  return { normalized, gradient, ofRow };
}

const rowMean = (x: Tensor): Tensor => mean(x, { dim: -1, keepdim: true }) as Tensor;

const times = (a: Tensor, b: Tensor | null | undefined): Tensor => (b ? (mul(a, b) as Tensor) : a);

/** The sum of what there is, in the dtype of another; null of nothing. */
function total(parts: readonly (Tensor | null | undefined)[], like: Tensor): Tensor | null {
  const [first, ...others] = parts.filter((part) => part != null);
  if (!first) return null;
  const sum = others.reduce<Tensor>((sum, part) => add(sum, part) as Tensor, first);
  return toDType(sum.rank < like.rank ? expand(sum, like.shape) : sum, like.dtype);
}
