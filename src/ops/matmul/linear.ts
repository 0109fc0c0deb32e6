import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { either, nothing } from "../../core/kinds.ts";
import { operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { sum } from "../reduction/sum.ts";
import { reshape } from "../view/reshape.ts";
import { checkRanks, checkSameDType } from "./checks.ts";
import { matmul } from "./matmul.ts";
import { broadcastTo, product as matrixProduct, productPrimitive } from "./product.ts";
import { transposed } from "./views.ts";

const primitive = productPrimitive("linear");

/**
 * Computes `x · weightᵀ + bias` over the last axis, as PyTorch's `linear`, in one operation: floats are rounded once.
 * Strided operands are not copied.
 *
 * @param x [..., in]
 * @param weight [out, in]; or [in], which gives one result per row and no last axis
 * @param bias [out]; a tensor without axes for a weight [in]
 * @returns [..., out], or [...]
 *
 * @example
 * linear(tensor([1, 2]), tensor([[1, 0], [0, 1], [1, 1]]), tensor([10, 20, 30])); // float32 [11, 22, 33]
 *
 * @throws {ShapeError} if sizes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function linear<D extends DType>(x: Tensor<D>, weight: Tensor<D>, bias?: Tensor<D> | null): Tensor<D>;
export function linear(...values: unknown[]): Tensor {
  const { x, weight, bias } = linearParameters(values);
  checkSameDType("linear", bias ? [x, weight, bias] : [x, weight]);
  if (weight.rank === 1) return ofOneRow(x, weight, bias);
  checkRanks("linear", 2, "weights [out, in] or [in]", [weight]);
  checkSizes(x, weight, bias);
  if (x.rank > 1) return product(x, weight, bias ?? undefined);
  return reshape(product(reshape(x, [1, x.shape[0]]), weight, bias ?? undefined), [weight.shape[0]]);
}
linear.method = "same" as const;
const linearParameters = parameters("linear", {
  x: operand(aTensor),
  weight: operand(aTensor),
  bias: optional(either(aTensor, nothing)),
});

function ofOneRow<D extends DType>(x: Tensor<D>, weight: Tensor<D>, bias: Tensor<D> | null | undefined): Tensor<D> {
  if (bias && bias.rank > 0)
    throw new ShapeError(
      "linear",
      "shapesDiffer",
      `expected bias to have no axes, got ${bias.describe()} for weight ${weight.describe()}`,
    );
  const row = linear(x, reshape(weight, [1, weight.size]), bias && reshape(bias, [1]));
  return reshape(row, row.shape.slice(0, -1));
}

/** Computes a product plus the bias in one call: the bias, repeated for each row, is the input of `addmm`. */
function product<D extends DType>(x: Tensor<D>, weight: Tensor<D>, bias: Tensor<D> | undefined): Tensor<D> {
  const shape = [...plainList(x.shape).slice(0, -1), plainList(weight.shape)[0]];
  const operands = [x, withoutHistory(weight), ...(bias ? [broadcastTo(bias, shape)] : [])];
  const output = execute(primitive, operands, shape, x.dtype, { alpha: 1, beta: 1 });
  const inputs = bias ? [x, weight, bias] : [x, weight];
  record("linear", inputs, [output], [x, weight], ([gradient], [input, factor], needs) => {
    if (!needs[1] && !needs[2]) return [matmul(gradient, factor), null, null].slice(0, inputs.length);
    const rows = rowsOf(gradient);
    return [
      needs[0] ? reshape(matrixProduct(rows, factor), input.shape) : null,
      needs[1] ? matrixProduct(transposed(rows), rowsOf(input)) : null,
      needs[2] ? sum(rows, { dim: 0 }) : null,
    ].slice(0, inputs.length);
  });
  return output;
}

/** Merges all leading axes into one, which gives a matrix of all rows. */
function rowsOf(x: Tensor): Tensor {
  const shape = plainList(x.shape);
  return reshape(x, [elementCount(shape.slice(0, -1)), lastElement(shape)]);
}

/** Returns weightᵀ for the backend: a view that is not recorded in the graph. */
function withoutHistory({ storage, dtype, shape, strides, offset }: Tensor): Tensor {
  const [out, size] = plainList(shape);
  const [row, column] = plainList(strides);
  return new Tensor(storage, dtype, [size, out], [column, row], offset);
}

function checkSizes(x: Tensor, weight: Tensor, bias: Tensor | null | undefined): void {
  const [rows, columns] = plainList(weight.shape);
  if (x.rank === 0 || plainList(x.shape).at(-1) !== columns)
    throw new ShapeError(
      "linear",
      "shapesDiffer",
      `expected the last axis of x to have ${columns} elements, got x ${x.describe()} for weight ${weight.describe()}`,
    );
  if (bias && (bias.rank !== 1 || plainList(bias.shape)[0] !== rows))
    throw new ShapeError(
      "linear",
      "shapesDiffer",
      `expected bias to be [${rows}], one element for each row, got ${bias.describe()} for weight ${weight.describe()}`,
    );
}
