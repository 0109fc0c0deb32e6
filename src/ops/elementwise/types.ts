/** Types of elementwise operations, their operands and their results. */
import type { ComplexDType, DType, FloatDType, RealOf } from "../../tensor/dtype.ts";
import type { Promote, PromoteScalar, Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** A tensor, or a plain number in its place. */
export type Operand<D extends DType = DType> = Tensor<D> | Scalar;

/** The dtype of a binary operation's result. */
export type ResultOf<A extends Operand, B extends Operand> =
  A extends Tensor<infer D>
    ? B extends Tensor<infer E>
      ? Promote<D, E>
      : PromoteScalar<D, B & Scalar>
    : B extends Tensor<infer E>
      ? PromoteScalar<E, A & Scalar>
      : DType;

/**
 * The result dtype of functions such as `exp`: floats and complex numbers are unchanged, integers and bools become
 * float32.
 */
export type FloatOf<D extends DType> = D extends FloatDType | ComplexDType ? D : "float32";

/**
 * The dtypes that an operation supports. `floats`: integers and bools become float32 first. `numbers` rejects bools,
 * `bits` rejects floats, and `integers` rejects both.
 */
export type Kind = "floats" | "numbers" | "bits" | "integers" | "everything";

// `method` is the kind of Tensor method: see src/ops/methods.ts.

/** A function of each element that keeps the dtype. */
export interface UnaryOperation {
  <D extends DType>(x: Tensor<D>): Tensor<D>;
  readonly method: "same";
}

/** A function of real numbers of each element: integers and bools become float32. */
export interface FloatOperation {
  <D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>>;
  readonly method: "float";
}

/** A function of each element that keeps a real dtype; for complex numbers the result is real. */
export interface RealOperation {
  <D extends DType>(x: Tensor<D>): Tensor<RealOf<D>>;
  readonly method: "real";
}

/** A test of each element. */
export interface UnaryPredicate {
  (x: Tensor): Tensor<"bool">;
  readonly method: "bool";
}

/** A function of each pair of elements, broadcast and promoted to a common dtype. */
export interface BinaryOperation {
  <A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>>;
  readonly method: "promoted";
}

/** A test of each pair of elements. */
export interface BinaryPredicate {
  (a: Operand, b: Operand): Tensor<"bool">;
  readonly method: "bool";
}
