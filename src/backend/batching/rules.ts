/** How a primitive runs once for all examples of `vmap`: a rule for each family, by the primitive's name. */
import { broadcastStrides, MAX_RANK, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { LiftedCall } from "../lifted.ts";

/** An operand of a call. If it is batched, its first axis has the examples. */
export interface Operand {
  readonly tensor: Tensor;
  readonly isBatched: boolean;
}

/** The operands and attributes of the call for all examples. */
export interface Prepared {
  readonly inputs: readonly Tensor[];
  readonly attributes: unknown;
}

/**
 * Prepares the call for all examples; null if that is not possible.
 *
 * @param shapes those of one example's results
 */
type Rule = (
  operands: readonly Operand[],
  shapes: readonly Shape[],
  attributes: Readonly<Record<string, unknown>>,
) => Prepared | null;

/** Aligns operands that broadcast: the example's axes stay the last ones. */
const broadcasting: Rule = (operands, [shape], attributes) => ({
  inputs: operands.map(({ tensor, isBatched }) => (isBatched ? aligned(tensor, shape!.length) : tensor)),
  attributes,
});

/** Inserts axes of size 1 after the first one, up to a rank of the example. */
function aligned(x: Tensor, rank: number): Tensor {
  const missing = rank - (x.rank - 1);
  if (missing <= 0) return x;
  const ones = new Array<number>(missing).fill(1);
  return viewOf(x, x.shape.toSpliced(1, 0, ...ones), x.strides.toSpliced(1, 0, ...ones.map(() => 0)));
}

const viewOf = (x: Tensor, shape: Shape, strides: readonly number[]): Tensor =>
  new Tensor(x.storage, x.dtype, shape, strides, x.offset);

/** Repeats the operands that are not batched, so that every operand has the first axis. */
const repeated = (operands: readonly Operand[]): readonly Tensor[] => {
  const size = operands.find(({ isBatched }) => isBatched)!.tensor.shape[0]!;
  return operands.map(({ tensor, isBatched }) =>
    isBatched ? tensor : viewOf(tensor, [size, ...tensor.shape], [0, ...tensor.strides]),
  );
};

/** Operations on the last axes of any number of leading ones. */
const leading: Rule = (operands, _, attributes) => ({ inputs: repeated(operands), attributes });

/** Operations along axes: each is one further on. */
const alongAxes =
  (...names: readonly string[]): Rule =>
  (operands, _, attributes) => ({ inputs: repeated(operands), attributes: shifted(attributes, names) });

function shifted(attributes: Readonly<Record<string, unknown>>, names: readonly string[]): unknown {
  const next: Record<string, unknown> = { ...attributes };
  for (const name of names) {
    const axes = attributes[name];
    if (typeof axes === "number") next[name] = axes + 1;
    else if (Array.isArray(axes)) next[name] = axes.map((axis: number) => axis + 1);
  }
  return next;
}

/** Products of matrices: batch axes broadcast, so the axis of the examples is one more. */
const product: Rule = (operands, [shape], attributes) => {
  const rank = Math.max(shape!.length, ...operands.map(({ tensor, isBatched }) => tensor.rank - (isBatched ? 1 : 0)));
  return {
    inputs: operands.map(({ tensor, isBatched }, at) => {
      if (at < 2) return isBatched ? aligned(tensor, rank) : tensor;
      // the added operand has the shape of the result
      const sizes = [operands.find((each) => each.isBatched)!.tensor.shape[0]!, ...shape!];
      return isBatched ? tensor : viewOf(tensor, sizes, broadcastStrides(tensor.shape, tensor.strides, sizes));
    }),
    attributes,
  };
};

const table = new Map<string, Rule>();

function rules(rule: Rule, ...names: readonly string[]): void {
  for (const name of names) table.set(name, rule);
}

rules(broadcasting, "copy", "swigluGradient");
rules(alongAxes("axes"), "sum", "mean", "prod", "amax", "amin", "all", "any", "max", "min", "norm0", "norm1", "norm2");
rules(alongAxes("axes"), "normInf", "normNegInf", "normP", "var", "std", "logsumexp");
rules(alongAxes("axis"), "softmax", "logSoftmax", "softmaxGradient", "logSoftmaxGradient", "selectAt");
rules(alongAxes("axis"), "cumsum", "cumprod", "exclusiveCumprod", "shift", "recurrence", "logcumsumexp");
rules(alongAxes("axis"), "runningExtremum");
rules(alongAxes("dim"), "sort");
rules(product, "matmul", "addmm", "linear");

/** Returns the call for all examples, or null if it must run once for each. */
export function ruleOf(
  { primitive: { name, family }, attributes }: Pick<LiftedCall, "primitive" | "attributes">,
  operands: readonly Operand[],
  shapes: readonly Shape[],
): Prepared | null {
  if (!operands.some(({ isBatched }) => isBatched)) return null;
  if (shapes.some(({ length }) => length >= MAX_RANK)) return null;
  if (operands.some(({ tensor, isBatched }) => tensor.rank - (isBatched ? 1 : 0) >= MAX_RANK)) return null;
  const rule = family === "elementwise" ? broadcasting : table.get(name);
  return rule ? rule(operands, shapes, (attributes ?? {}) as Readonly<Record<string, unknown>>) : null;
}
void leading;
