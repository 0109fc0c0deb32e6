import { record } from "../../autograd/record.ts";
import { execute, underName } from "../../backend/dispatch.ts";
import { byName } from "../../backend/enumeration.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { type AxisArguments, axis as axisKind } from "../../core/kinds.ts";
import { named, operand, optional, type Parsed, parameters } from "../../core/parameters.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aDType, aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg, sub } from "../elementwise/arithmetic.ts";
import { exp } from "../elementwise/exponential.ts";
import { logsumexp } from "../reduction/logsumexp.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { sum } from "../reduction/sum.ts";
import { type SoftmaxAttributes, type SoftmaxName, softmaxes } from "./primitive.ts";
import { softmaxCpu } from "./softmax.cpu.ts";
import { softmaxMetal } from "./softmax.metal.ts";
import { softmaxReference } from "./softmax.reference.ts";

const primitives = byName(softmaxes.names, (name) =>
  definePrimitive<SoftmaxAttributes>({
    name,
    family: "softmax",
    implementations: { metal: softmaxMetal(name), cpu: softmaxCpu(name), reference: softmaxReference(name) },
  }),
);

/** Options of {@link softmax} and {@link logSoftmax}. */
export interface SoftmaxOptions<D extends DType = DType> {
  /** The axis; negative counts from the end. Default: the last. */
  dim?: number | undefined;
  /** A float dtype to convert elements to first. */
  dtype?: D | undefined;
}

/**
 * Computes exp(x) / Σ exp(x) along an axis, without overflow. NaN for a slice that contains NaN or +∞, or only −∞.
 *
 * @returns a tensor of x's shape, in `dtype` or x's dtype
 *
 * @example
 * softmax(tensor([[0, 0], [0, Math.log(3)]]), 1); // float32 [[0.5, 0.5], [0.25, 0.75]]
 *
 * @throws {DTypeError} for integers and bools, unless `dtype` is a float dtype. @throws {ShapeError} for an axis out of
 * range.
 */
export function softmax<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  ...options: AxisArguments<SoftmaxOptions<E>>
): Tensor<E>;
export function softmax(...values: unknown[]): Tensor {
  const { input, axis } = operands("softmax", softmaxParameters(values));
  if (isComplex(input.dtype)) return exp(complexLogSoftmax("softmax", input, axis));
  const output = run("softmax", [input], axis);
  record("softmax", [input], [output], [output], ([gradient], [y]) => [softmaxGradient(gradient, y, axis)]);
  return output;
}
softmax.method = "averaged" as const;

/**
 * Computes log softmax(x) along an axis, without overflow or loss of precision. NaN as for {@link softmax}.
 *
 * @returns a tensor of x's shape, in `dtype` or x's dtype
 *
 * @example
 * logSoftmax(tensor([0, 0])); // float32 [-0.69314718, -0.69314718]
 *
 * @throws {DTypeError} for integers and bools, unless `dtype` is a float dtype. @throws {ShapeError} for an axis out of
 * range.
 */
export function logSoftmax<D extends DType, E extends DType = D>(
  x: Tensor<D>,
  ...options: AxisArguments<SoftmaxOptions<E>>
): Tensor<E>;
export function logSoftmax(...values: unknown[]): Tensor {
  const { input, axis } = operands("logSoftmax", logSoftmaxParameters(values));
  if (isComplex(input.dtype)) return complexLogSoftmax("logSoftmax", input, axis);
  const output = run("logSoftmax", [input], axis);
  record("logSoftmax", [input], [output], [output], ([gradient], [y]) => [logSoftmaxGradient(gradient, y, axis)]);
  return output;
}
logSoftmax.method = "averaged" as const;

const declared = { x: operand(aTensor), dim: optional(axisKind, -1), dtype: named(aDType) } as const;
const softmaxParameters = parameters("softmax", declared);
const logSoftmaxParameters = parameters("logSoftmax", declared);

function operands(operation: string, { x, dim, dtype }: Parsed<typeof declared>) {
  const axis = normalizeAxis(operation, dim, x.rank);
  return { input: floatOperand(operation, x, dtype, true), axis };
}

/** z − ln Σ eᶻ. */
const complexLogSoftmax = (operation: string, x: Tensor, axis: number): Tensor =>
  underName(operation, () => sub(x, x.rank === 0 ? x : logsumexp(x, { dim: axis, keepdim: true })));

const run = (name: SoftmaxName, inputs: readonly Tensor[], axis: number): Tensor =>
  execute(primitives[name], inputs, inputs[0].shape, inputs[0].dtype, { axis });

const total = (x: Tensor, axis: number): Tensor => (x.rank === 0 ? x : sum(x, { dim: axis, keepdim: true }));

/** Computes y (g − Σ g y), in one kernel. */
function softmaxGradient(g: Tensor, y: Tensor, axis: number): Tensor {
  const output = run("softmaxGradient", [g, y], axis);
  record("softmaxGradient", [g, y], [output], [g, y], ([h], [incoming, result], needs) => {
    if (!needs[1]) return [softmaxGradient(h, result, axis), null]; // as a linear map of g, the gradient is symmetric
    const inner = total(mul(h, result), axis);
    const outer = total(mul(incoming, result), axis);
    return [mul(result, sub(h, inner)), sub(mul(h, sub(incoming, outer)), mul(incoming, inner))];
  });
  return output;
}

/** Computes g − exp(y) Σ g, in one kernel. */
function logSoftmaxGradient(g: Tensor, y: Tensor, axis: number): Tensor {
  const output = run("logSoftmaxGradient", [g, y], axis);
  record("logSoftmaxGradient", [g, y], [output], [g, y], ([h], [incoming, result]) => {
    const weighted = mul(h, exp(result));
    return [sub(h, total(weighted, axis)), neg(mul(weighted, total(incoming, axis)))];
  });
  return output;
}
