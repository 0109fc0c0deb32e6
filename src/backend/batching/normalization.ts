/**
 * Rules of normalizations: one call normalizes the rows of all examples. Vectors such as weights are shared by all
 * examples, or differ.
 */
import { lastElement } from "../../core/collections.ts";
import type { DType } from "../../tensor/dtype.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { executeMany } from "../dispatch.ts";
import { primitiveOf } from "../primitive.ts";
import {
  behind,
  countOf,
  dense,
  folded,
  type Operand,
  type Rule,
  repeatedFor,
  split,
  toFront,
  unfolded,
  viewOf,
} from "./rule.ts";

type NamedOperand = Operand & { readonly name: string };

const isVector = (name: string): boolean => name === "weight" || name === "bias";

const namedOperands = (operands: readonly Operand[], attributes: Readonly<Record<string, unknown>>): NamedOperand[] =>
  operands.map((operand, at) => ({ ...operand, name: (attributes["inputs"] as readonly string[])[at] }));

const found = (operands: readonly NamedOperand[], name: string): NamedOperand | undefined =>
  operands.find((operand) => operand.name === name);

/** Computes an elementwise function of tensors of one dtype that broadcast. */
const elementwise = (name: "add" | "sub" | "mul", a: Tensor, b: Tensor): Tensor =>
  executeMany(
    primitiveOf(name),
    [a, b],
    [{ shape: broadcastShapes(name, a.shape, b.shape), dtype: a.dtype }],
    undefined as never,
  )[0];

/**
 * Inserts axes of size 1 into a vector for each example, [examples, n], so that it broadcasts with x, [examples, …, n].
 */
function vectors({ tensor, isBatched }: Operand, rank: number): Tensor {
  const [first, last] = [isBatched ? tensor.shape.slice(0, 1) : [1], tensor.shape.slice(-1)];
  const ones = new Array<number>(rank - 2).fill(1);
  const strides = [isBatched ? tensor.strides[0] : 0, ...ones.map(() => 0), lastElement(tensor.strides)];
  return viewOf(tensor, [...first, ...ones, ...last], strides);
}

/** Adds an axis of size 1 at the end. */
const asColumn = (x: Tensor): Tensor => viewOf(x, [...x.shape, 1], [...x.strides, 0]);

const computes = (dtype: DType): boolean => dtype === "float32" || dtype === "float64";

/** Vectors that all examples share are operands of the call; others are applied to its result. */
export const normalizationForward: Rule = (operands, results, attributes) => {
  const count = countOf(operands);
  const all = namedOperands(operands, attributes);
  const differ = all.filter(({ name, isBatched }) => isVector(name) && isBatched);
  if (differ.length > 0 && !computes(results[0].dtype)) return null; // 16-bit floats would be rounded twice
  const kept = differ.length > 0 ? all.filter(({ name }) => !isVector(name)) : all;
  const inputs = kept.map((operand) => (isVector(operand.name) ? operand.tensor : dense(repeatedFor(operand, count))));
  if (differ.length === 0) return { inputs, attributes };
  return {
    inputs,
    attributes: { ...attributes, inputs: kept.map(({ name }) => name) },
    finish([out, ...others]) {
      const [weight, bias] = [found(all, "weight"), found(all, "bias")];
      const weighted = weight ? elementwise("mul", out, vectors(weight, out.shape.length)) : out;
      return [bias ? elementwise("add", weighted, vectors(bias, out.shape.length)) : weighted, ...others];
    },
  };
};

/** Computes the gradient of x in one call, and the gradients of vectors as sums over the rows of each example. */
export const normalizationBackward: Rule = (operands, results, attributes) => {
  const count = countOf(operands);
  const all = namedOperands(operands, attributes);
  const outputs = attributes["outputs"] as readonly string[];
  const rowsOf = (operand: NamedOperand | undefined): Tensor | undefined =>
    operand && dense(repeatedFor(operand, count));
  const [x, gradOut] = [rowsOf(found(all, "x"))!, rowsOf(found(all, "gradOut"))!];
  const weight = found(all, "weight");
  const isSimple = !weight?.isBatched && outputs.every((name) => name === "gradX");
  if (!isSimple && !(computes(x.dtype) && results.every(({ dtype }) => dtype === x.dtype))) return null;
  const { length: rank } = x.shape;
  const kept = all.filter(({ name }) => name !== "weight" || !weight!.isBatched);
  const inputs = kept.map((operand) => {
    if (isVector(operand.name)) return operand.tensor;
    if (operand.name !== "gradOut" || !weight?.isBatched) return rowsOf(operand)!;
    return dense(elementwise("mul", gradOut, vectors(weight, rank)));
  });
  const call = { ...attributes, inputs: kept.map(({ name }) => name), outputs: ["gradX"] };
  if (isSimple) return { inputs, attributes: call };
  /** Sums over the rows of each example. */
  const summed = (values: Tensor): Tensor =>
    executeMany(primitiveOf("sum"), [values], [{ shape: [count, lastElement(x.shape)], dtype: x.dtype }], {
      axes: Array.from({ length: rank - 2 }, (_, at) => at + 1),
      parameter: 0,
    } as never)[0];
  const gradientOf = (name: string, gradX: Tensor): Tensor => {
    if (name === "gradX") return gradX;
    if (name === "gradBias") return summed(gradOut);
    const [mean, scale] = [rowsOf(found(all, "mean")), rowsOf(found(all, "scale"))!];
    const centered = mean ? elementwise("sub", x, asColumn(mean)) : x;
    return summed(elementwise("mul", gradOut, elementwise("mul", centered, asColumn(scale))));
  };
  return {
    inputs,
    attributes: call,
    specs: [{ shape: x.shape, dtype: x.dtype }],
    finish: ([gradX]) => outputs.map((name) => gradientOf(name, gradX)),
  };
};

/** Channel statistics of x [batch, channels, inner] and vectors [channels]: the axis of examples joins the channels. */
export const channelStatistics: Rule = (operands, results, attributes) => {
  const count = countOf(operands);
  const outputs = attributes["outputs"] as readonly string[];
  const isVector = (rank: number): boolean => rank === 1;
  return {
    inputs: operands.map((operand) => {
      const all = repeatedFor(operand, count);
      if (isVector(all.rank - 1)) return folded(all);
      const [batch, examples, channels, inner] = behind(all, 1).shape;
      const lines = dense(behind(all, 1));
      return viewOf(lines, [batch, examples * channels, inner], [examples * channels * inner, inner, 1]);
    }),
    attributes,
    specs: outputs.map((_, at) => {
      const { shape, dtype } = results[at];
      return {
        shape: shape.with(isVector(shape.length) ? 0 : 1, count * shape.at(isVector(shape.length) ? 0 : 1)!),
        dtype,
      };
    }),
    finish: (found) =>
      found.map((result) => (isVector(result.rank) ? unfolded(result, count) : toFront(split(result, 1, count), 1))),
  };
};
