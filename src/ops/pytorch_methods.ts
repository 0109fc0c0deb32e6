/** PyTorch's methods that are other names or short forms of methods here. */
import { ShapeError } from "../core/errors.ts";
import { flag } from "../core/kinds.ts";
import { operand, optional, type Parameters, type Parsed, required, unlisted } from "../core/parameters.ts";
import { tupleOf } from "../core/tuples.ts";
import { bytesOf, type DType, isFloat } from "../tensor/dtype.ts";
import {
  aScalar,
  aShape,
  aTensor,
  type ShapeArguments,
  type SizedArguments,
  shapeList,
  tensorOrGone,
} from "../tensor/kinds.ts";
import type { Scalar } from "../tensor/promotion.ts";
import { formatShape, type Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { toDType } from "./copy/cast.ts";
import { checkTarget, fill_ } from "./copy/inplace.ts";
import { type CreationOptions, creationOptions } from "./creation/create.ts";
import { empty, full, ones, zeros } from "./creation/full.ts";
import { type ClampArguments, clamp } from "./elementwise/clamp.ts";
import { inPlace } from "./inplace/in_place.ts";
import { asStrided } from "./view/as_strided.ts";
import { diagonal } from "./view/diagonal.ts";
import { expand } from "./view/expand.ts";
import { unflatten } from "./view/flatten.ts";
import { transpose } from "./view/permute.ts";
import { reshape } from "./view/reshape.ts";
import { narrow } from "./view/slice.ts";

/** The methods that {@link pytorchMethods} implements. */
export interface PyTorchMethods<D extends DType> {
  /** Converts to bfloat16. PyTorch's `bfloat16`. */
  bfloat16(): Tensor<"bfloat16">;
  /** Converts to bool: x ≠ 0. */
  bool(): Tensor<"bool">;
  /** Converts to uint8. */
  byte(): Tensor<"uint8">;
  /** Converts to int8. */
  char(): Tensor<"int8">;
  /** Clamps each element to the bounds; another name of `clamp`. */
  clip(...bounds: ClampArguments): Tensor;
  /** Clamps each element to the bounds in place; another name of `clamp_`. */
  clip_(...bounds: ClampArguments): Tensor<D>;
  /** Removes the tensor from the graph in place: it becomes a leaf that requires no gradient. Returns it. */
  detach_(): Tensor<D>;
  /** Returns the number of axes; another name of `rank`. */
  dim(): number;
  /** Converts to float64. */
  double(): Tensor<"float64">;
  /** Returns the number of bytes of an element. */
  elementSize(): number;
  /** Returns a view of another tensor's shape that repeats axes of size 1. @throws {ShapeError} as `expand` */
  expandAs(other: Tensor): Tensor<D>;
  /**
   * Fills the main diagonal in place: the elements whose indices are equal.
   *
   * @param wrap whether the diagonal starts again below the last column of a tall matrix, after a row without it
   *
   * @throws {ShapeError} for fewer than two axes, or more than two of different sizes.
   */
  fillDiagonal_(value: Scalar, wrap?: boolean): Tensor<D>;
  /** Converts to float32. */
  float(): Tensor<"float32">;
  /** Converts to float16. */
  half(): Tensor<"float16">;
  /** Converts to int32. */
  int(): Tensor<"int32">;
  /** Tests whether the dtype is a float. */
  isFloatingPoint(): boolean;
  /** Converts to int64. */
  long(): Tensor<"int64">;
  /** Returns the number of axes; another name of `rank`. */
  ndimension(): number;
  /** Returns the number of elements; another name of `size`. */
  nelement(): number;
  /** Returns an uninitialized tensor of this dtype, or of the option's. */
  newEmpty<E extends DType = D>(...shape: SizedArguments<CreationOptions<E>>): Tensor<E>;
  /** Returns a tensor of this dtype, or of the option's, filled with a value. */
  newFull<E extends DType = D>(shape: Shape, value: Scalar, options?: CreationOptions<E>): Tensor<E>;
  /** Returns a tensor of ones of this dtype, or of the option's. */
  newOnes<E extends DType = D>(...shape: SizedArguments<CreationOptions<E>>): Tensor<E>;
  /** Returns a tensor of zeros of this dtype, or of the option's. */
  newZeros<E extends DType = D>(...shape: SizedArguments<CreationOptions<E>>): Tensor<E>;
  /** Returns the number of elements; another name of `size`. */
  numel(): number;
  /** Sets `requiresGrad` (default true) and returns the tensor. @throws {ArgumentError} as the assignment does */
  requiresGrad_(requiresGrad?: boolean): Tensor<D>;
  /** Returns the elements in another tensor's shape. @throws {ShapeError} if the number of elements differs. */
  reshapeAs(other: Tensor): Tensor<D>;
  /** Returns the transpose of a matrix; a vector or scalar itself. @throws {ShapeError} for more than two axes. */
  t(): Tensor<D>;
  /** Returns the elements as nested arrays, or the element itself for rank 0; another name of `toArray`. */
  // biome-ignore lint/suspicious/noExplicitAny: as toArray
  tolist(): any;
  /** Converts to another tensor's dtype. */
  typeAs<E extends DType>(other: Tensor<E>): Tensor<E>;
  /**
   * Returns a view with another shape; one size may be −1. The view shares the elements.
   *
   * @throws {ShapeError} if the strides allow no view (use `reshape`), or the number of elements differs.
   */
  view(...shape: ShapeArguments): Tensor<D>;
  /** Returns a view with another tensor's shape. @throws {ShapeError} as {@link PyTorchMethods.view} */
  viewAs(other: Tensor): Tensor<D>;
}

type Method = (x: Tensor, ...rest: readonly unknown[]) => unknown;

/** Creates a method from a declaration of its parameters. */
function method<P extends Parameters>(
  operation: string,
  declared: P,
  run: (x: Tensor, options: Parsed<P>) => unknown,
): Method {
  const read = unlisted(operation, { x: operand(aTensor), ...declared });
  return (...values) => {
    const { x, ...options } = read(values) as { x: Tensor } & Parsed<P>;
    return run(x, options as unknown as Parsed<P>);
  };
}

const converting = (operation: string, dtype: DType): Method => method(operation, {}, (x) => toDType(x, dtype));
const fact = (operation: string, of: (x: Tensor) => unknown): Method => method(operation, {}, of);
const like = { other: operand(tensorOrGone) } as const;

function viewed(operation: string, x: Tensor, shape: Shape): Tensor {
  const result = reshape(x, shape);
  if (result.storage === x.storage) return result;
  result.dispose();
  throw new ShapeError(
    operation,
    "notAView",
    `the strides [${x.strides.join(", ")}] of ${x.describe()} allow no view of shape ${formatShape(shape)}; ` +
      "use reshape, which copies",
  );
}

function transposed(x: Tensor): Tensor {
  if (x.rank <= 1) return x;
  if (x.rank === 2) return transpose(x, 0, 1);
  throw new ShapeError("t", "wrongRank", `expected at most two axes, got ${x.describe()}; use mT or permute`);
}

/** With `wrap`, the rows of a tall matrix form blocks of columns + 1 rows, each with a diagonal. */
function fillDiagonal(x: Tensor, value: Scalar, wrap: boolean): void {
  if (x.rank < 2) throw new ShapeError("fillDiagonal_", "wrongRank", `expected at least two axes, got ${x.describe()}`);
  if (x.rank > 2 && x.shape.some((size) => size !== x.shape[0])) {
    const problem = `expected more than two axes to have one size, got ${x.describe()}`;
    throw new ShapeError("fillDiagonal_", "shapesDiffer", problem);
  }
  checkTarget("fillDiagonal_", x, []);
  const [rows, columns] = tupleOf(x.shape, 2);
  if (x.rank > 2) {
    const step = x.strides.reduce((sum, stride) => sum + stride, 0);
    fill_(asStrided(x, [rows], [step], { storageOffset: x.offset }), value);
    return;
  }
  const [height, count] = [columns + 1, wrap ? Math.floor(rows / (columns + 1)) : 0];
  const blocks = unflatten(narrow(x, 0, 0, count * height), 0, [count, height]);
  fill_(diagonal(blocks, { dim1: 1, dim2: 2 }), value);
  fill_(diagonal(narrow(x, 0, count * height, rows - count * height)), value);
}

const creating = (operation: string, create: (shape: Shape, options: CreationOptions) => Tensor): Method =>
  method(operation, { shape: required(aShape), ...creationOptions }, (x, { shape, ...options }) =>
    create(shape, { ...options, dtype: options.dtype ?? x.dtype }),
  );

/** The implementations. */
export const pytorchMethods: { readonly [Name in keyof PyTorchMethods<DType>]: Method } = {
  bfloat16: converting("bfloat16", "bfloat16"),
  bool: converting("bool", "bool"),
  byte: converting("byte", "uint8"),
  char: converting("char", "int8"),
  clip: clamp as unknown as Method,
  clip_: inPlace("clip_", clamp, "clamp"),
  detach_: fact("detach_", (x) => {
    x.edge = null;
    x.requiresGrad = false;
    return x;
  }),
  dim: fact("dim", ({ rank }) => rank),
  double: converting("double", "float64"),
  elementSize: fact("elementSize", ({ dtype }) => bytesOf(dtype)),
  expandAs: method("expandAs", like, (x, { other }) => expand(x, other.shape)),
  fillDiagonal_: method(
    "fillDiagonal_",
    { value: operand(aScalar), wrap: optional(flag, false) },
    (x, { value, wrap }) => {
      fillDiagonal(x, value, wrap);
      return x;
    },
  ),
  float: converting("float", "float32"),
  half: converting("half", "float16"),
  int: converting("int", "int32"),
  isFloatingPoint: fact("isFloatingPoint", ({ dtype }) => isFloat(dtype)),
  long: converting("long", "int64"),
  ndimension: fact("ndimension", ({ rank }) => rank),
  nelement: fact("nelement", ({ size }) => size),
  newEmpty: creating("newEmpty", empty),
  newFull: method(
    "newFull",
    { shape: required(shapeList), value: required(aScalar), ...creationOptions },
    (x, { shape, value, ...options }) => full(shape, value, { ...options, dtype: options.dtype ?? x.dtype }),
  ),
  newOnes: creating("newOnes", ones),
  newZeros: creating("newZeros", zeros),
  numel: fact("numel", ({ size }) => size),
  requiresGrad_: method("requiresGrad_", { requiresGrad: optional(flag, true) }, (x, { requiresGrad }) => {
    if (x.isLeaf || !requiresGrad) x.requiresGrad = requiresGrad;
    return x;
  }),
  reshapeAs: method("reshapeAs", like, (x, { other }) => reshape(x, other.shape)),
  t: fact("t", transposed),
  tolist: fact("tolist", (x) => x.toArray()),
  typeAs: method("typeAs", like, (x, { other }) => toDType(x, other.dtype)),
  view: method("view", { shape: required(aShape) }, (x, { shape }) => viewed("view", x, shape)),
  viewAs: method("viewAs", like, (x, { other }) => viewed("viewAs", x, other.shape)),
};
