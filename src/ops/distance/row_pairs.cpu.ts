/**
 * Functions of pairs of vectors along an axis, as one call of the cpu backend, without a gradient.
 *
 * - `distance`: √Σ (a − b + eps)²
 * - `similarity`: Σ a·b / (max(|a|, eps) · max(|b|, eps))
 * - `embedding`: the loss of `cosineEmbeddingLoss`, with eps added to both squared norms
 */
import { needsGradient } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf, real } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { accumulationDType, isFloat } from "../../tensor/dtype.ts";
import { broadcastStrides, type Shape, sameShape } from "../../tensor/shape.ts";
import { slicesOf } from "../../tensor/slices.ts";
import { Tensor } from "../../tensor/tensor.ts";

export const functions = enumeration("RowPair", ["distance", "similarity", "embedding"]);

interface RowPairsAttributes {
  readonly function: NameOf<typeof functions>;
  readonly axis: number;
  readonly eps: number;
  readonly margin: number;
}

const rowPairsCall = cpuCall(
  "rowPairs",
  { dtype, function: oneOf(functions), eps: real, margin: real, slices: slices(4) },
  ["a", "b", "target", "result"],
);

const rowPairsCpu: Implementation<RowPairsAttributes, readonly [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [a, b, target], outputs: [result], attributes: { axis, ...values } }) {
    const along = ({ storage, dtype: type, strides, offset }: Tensor): Tensor =>
      new Tensor(storage, type, a.shape, strides.toSpliced(axis, 0, 0), offset);
    using results = along(result);
    using targets = target ? along(target) : null;
    const operands = [a, b, targets ?? results, results];
    rowPairsCall(operation, { dtype: a.dtype, ...values, slices: slicesOf(operands, axis) }, [a, b, target, result]);
  },
};

const rowPairsPrimitive = definePrimitive<RowPairsAttributes>({
  name: "rowPairs",
  family: "distance",
  implementations: { metal: onlyCpuFuses, cpu: rowPairsCpu, reference: onlyCpuFuses },
});

/** Longer vectors are divided among threads, which only the composed operations do. */
const LONGEST = 1 << 16;

/** Whether {@link rowPairs} applies: to floats of one dtype on cpu, if nothing is recorded. */
export function fusesRowPairs(shape: Shape, axis: number, ...[first, ...others]: readonly Tensor[]): boolean {
  if (firstBackend() !== "cpu" || capturing() !== undefined || !isFloat(first.dtype)) return false;
  if (shape.includes(0) || shape[axis] > LONGEST || others.some((other) => other.dtype !== first.dtype)) return false;
  return !needsGradient(first, ...others) && liftingOf([first, ...others], undefined) === undefined;
}

/** The vectors, which are broadcast to a shape, and the axis along which they lie. */
interface Pairs {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly shape: Shape;
  readonly axis: number;
}

/** @returns of the shape without the axis, in the accumulation dtype. @param target of the result's shape and dtype */
export function rowPairs(
  operation: string,
  name: RowPairsAttributes["function"],
  { a, b, shape, axis }: Pairs,
  { eps, margin = 0, target }: { readonly eps: number; readonly margin?: number; readonly target?: Tensor },
): Tensor {
  using first = broadcastTo(a, shape);
  using second = broadcastTo(b, shape);
  const attributes: RowPairsAttributes = { function: name, axis, eps, margin };
  const inputs = target ? [first, second, target] : [first, second];
  return execute(
    rowPairsPrimitive,
    inputs,
    shape.toSpliced(axis, 1),
    accumulationDType(a.dtype),
    attributes,
    operation,
  );
}

/** A view that is not recorded in the graph. */
const broadcastTo = ({ storage, dtype: type, shape, strides, offset }: Tensor, to: Shape): Tensor =>
  new Tensor(storage, type, to, sameShape(shape, to) ? strides : broadcastStrides(shape, strides, to), offset);
