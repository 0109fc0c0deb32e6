/** Scaled products added to an input: the relatives of `addmm`. */
import { needsGradient } from "../../autograd/record.ts";
import { capturing } from "../../backend/capture.ts";
import { underName } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { permute } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { type AddmmOptions, checkInput, checkScale, scale } from "./addmm.ts";
import { checkFactors, checkRanks, checkSameDType, factors } from "./checks.ts";
import type { ProductScale } from "./primitive.ts";
import { broadcastTo, product, productWithInput } from "./product.ts";

const addition = { input: operand(aTensor), ...factors, ...scale } as const;

/**
 * Computes `beta · input + alpha · (a · b)` for a matrix and a vector in one operation: floats are rounded once.
 *
 * @param input broadcasts to [m]
 * @param a [m, k]
 * @param b [k]
 * @returns [m]
 *
 * @example
 * addmv(tensor([1, 2]), tensor([[1, 0], [0, 1]]), tensor([5, 6])); // float32 [6, 8]
 *
 * @throws {ShapeError} for other ranks, or if shapes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 * @throws {ArgumentError} for a fractional factor with an integer dtype.
 */
export function addmv<D extends DType>(input: Tensor<D>, a: Tensor<D>, b: Tensor<D>, options?: AddmmOptions): Tensor<D>;
export function addmv(...values: unknown[]): Tensor {
  const { input, a, b, ...factor } = addmvParameters(values);
  checkSameDType("addmv", [input, a, b]);
  checkRanks("addmv", 2, "a matrix as the first factor", [a]);
  checkRanks("addmv", 1, "a vector as the second factor", [b]);
  checkFactors("addmv", a, b);
  const [rows, columns] = tupleOf(a.shape, 2);
  checkInput("addmv", input, [rows]);
  checkScale("addmv", factor, a.dtype);
  if (!needsGradient(input, a, b)) return addedVector(input, a, b, factor);
  return underName("addmv", () =>
    tidy(() => {
      const column = input.rank === 0 ? input : reshape(input, [input.size, 1]);
      return reshape(productWithInput(column, a, reshape(b, [columns, 1]), factor), [rows]);
    }),
  );
}
addmv.method = "same" as const;
const addmvParameters = parameters("addmv", addition);

/**
 * Computes `beta · input + alpha · (a ⊗ b)` with the outer product of two vectors in one operation: floats are rounded
 * once.
 *
 * @param input broadcasts to [m, n]
 * @param a [m]
 * @param b [n]
 * @returns [m, n]
 *
 * @example
 * addr(tensor([[1, 1], [1, 1]]), tensor([1, 2]), tensor([3, 4])); // float32 [[4, 5], [7, 9]]
 *
 * @throws {ShapeError} for other ranks, or if shapes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 * @throws {ArgumentError} for a fractional factor with an integer dtype.
 */
export function addr<D extends DType>(input: Tensor<D>, a: Tensor<D>, b: Tensor<D>, options?: AddmmOptions): Tensor<D>;
export function addr(...values: unknown[]): Tensor {
  const { input, a, b, ...factor } = addrParameters(values);
  checkSameDType("addr", [input, a, b]);
  checkRanks("addr", 1, "vectors", [a, b]);
  checkInput("addr", input, [a.size, b.size]);
  checkScale("addr", factor, a.dtype);
  if (!needsGradient(input, a, b)) return addedOuter(input, a, b, factor);
  return underName("addr", () =>
    tidy(() => productWithInput(input, reshape(a, [a.size, 1]), reshape(b, [1, b.size]), factor)),
  );
}
addr.method = "same" as const;
const addrParameters = parameters("addr", addition);

/**
 * Computes `beta · input + alpha · Σᵢ aᵢ · bᵢ`, summed over a batch of matrices, in one operation: floats are rounded
 * once.
 *
 * @param input broadcasts to [m, n]
 * @param a [batch, m, k]
 * @param b [batch, k, n]
 * @returns [m, n]
 *
 * @example
 * addbmm(tensor([[1]]), tensor([[[2]], [[3]]]), tensor([[[10]], [[100]]])); // float32 [[321]]
 *
 * @throws {ShapeError} for other ranks, or if shapes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 * @throws {ArgumentError} for a fractional factor with an integer dtype.
 */
export function addbmm<D extends DType>(
  input: Tensor<D>,
  a: Tensor<D>,
  b: Tensor<D>,
  options?: AddmmOptions,
): Tensor<D>;
export function addbmm(...values: unknown[]): Tensor {
  const { input, a, b, ...factor } = addbmmParameters(values);
  const [batch, m, k, n] = checkBatches("addbmm", input, a, b);
  checkInput("addbmm", input, [m, n]);
  checkScale("addbmm", factor, a.dtype);
  return underName("addbmm", () =>
    tidy(() => {
      // the sum over the batch is merged into the sum over k
      if (fusesOnCpu(input, a, b)) {
        const strides = [a.strides[1], a.strides[0], a.strides[2]];
        const rows = contiguous(new Tensor(a.storage, a.dtype, [m, batch, k], strides, a.offset));
        const columns = contiguous(b);
        const left = new Tensor(rows.storage, a.dtype, [m, batch * k], undefined, rows.offset);
        const right = new Tensor(columns.storage, b.dtype, [batch * k, n], undefined, columns.offset);
        return productWithInput(input, left, right, factor);
      }
      const left = reshape(permute(a, [1, 0, 2]), [m, batch * k]);
      return productWithInput(input, left, reshape(b, [batch * k, n]), factor);
    }),
  );
}
addbmm.method = "same" as const;
const addbmmParameters = parameters("addbmm", addition);

/**
 * Computes `beta · input + alpha · (aᵢ · bᵢ)` for each pair of matrices of a batch.
 *
 * @param input broadcasts to [batch, m, n]
 * @param a [batch, m, k]
 * @param b [batch, k, n]
 * @returns [batch, m, n]
 *
 * @example
 * baddbmm(tensor([[[1]]]), tensor([[[2]], [[3]]]), tensor([[[10]], [[100]]])); // float32 [[[21]], [[301]]]
 *
 * @throws {ShapeError} for other ranks, or if shapes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 * @throws {ArgumentError} for a fractional factor with an integer dtype.
 */
export function baddbmm<D extends DType>(
  input: Tensor<D>,
  a: Tensor<D>,
  b: Tensor<D>,
  options?: AddmmOptions,
): Tensor<D>;
export function baddbmm(...values: unknown[]): Tensor {
  const { input, a, b, beta, alpha } = baddbmmParameters(values);
  const [batch, m, , n] = checkBatches("baddbmm", input, a, b);
  checkInput("baddbmm", input, [batch, m, n]);
  checkScale("baddbmm", { beta, alpha }, a.dtype);
  return underName("baddbmm", () => {
    // ONNX has a node for a product plus an input only for two matrices, so that a captured call computes both
    // separately
    if (!isComplex(a.dtype) && !liftingOf([input, a, b], undefined) && capturing() === undefined)
      return productWithInput(input, a, b, { alpha, beta });
    return tidy(() => {
      const products = product(a, b, alpha);
      if (beta === 0) return products; // the input is ignored, even if it is NaN
      return add(products, beta === 1 ? input : mul(input, beta));
    });
  });
}
baddbmm.method = "same" as const;
const baddbmmParameters = parameters("baddbmm", addition);

/** Computes {@link addmv} without recording it, which saves the graph's reshapes. */
function addedVector(input: Tensor, a: Tensor, b: Tensor, factor: ProductScale): Tensor {
  using added = input.rank === 0 ? broadcastTo(input, [1, 1]) : column(input);
  using vector = column(b);
  using product = underName("addmv", () => productWithInput(added, a, vector, factor));
  return new Tensor(product.storage, product.dtype, [a.shape[0]], [1], product.offset);
}

/** Computes {@link addr} without recording it. */
function addedOuter(input: Tensor, a: Tensor, b: Tensor, factor: ProductScale): Tensor {
  using left = column(a);
  using right = row(b);
  return underName("addr", () => productWithInput(input, left, right, factor));
}

/** Returns a vector as a matrix of one row. */
const row = (x: Tensor): Tensor => new Tensor(x.storage, x.dtype, [1, x.size], [0, x.strides[0]], x.offset);

/** Returns a vector as a matrix of one column. */
const column = (x: Tensor): Tensor => new Tensor(x.storage, x.dtype, [x.size, 1], [x.strides[0], 0], x.offset);

/** Checks two batches of matrices. @returns batch, m, k and n */
function checkBatches(operation: string, input: Tensor, a: Tensor, b: Tensor): [number, number, number, number] {
  checkSameDType(operation, [input, a, b]);
  checkRanks(operation, 3, "batches of matrices", [a, b]);
  checkFactors(operation, a, b);
  const [batch, m, k] = tupleOf(a.shape, 3);
  if (b.shape[0] !== batch)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected batches of equal size, got ${a.describe()} and ${b.describe()}`,
    );
  return [batch, m, k, b.shape[2]];
}
