/** Types of elementwise operations: their operands, their results, and the functions that compute them. */
import type { DType } from "../../tensor/dtype.ts";
import type { Promote, PromoteScalar, Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** A tensor, or a plain number in its place. */
export type Operand<D extends DType = DType> = Tensor<D> | Scalar;

/** The dtype of a binary operation's result. */
export type ResultOf<A extends Operand, B extends Operand> =
  A extends Tensor<infer D>
    ? B extends Tensor<infer E>
      ? Promote<D, E>
      : PromoteScalar<D>
    : B extends Tensor<infer E>
      ? PromoteScalar<E>
      : DType;

/** What `exp` and its like make of a dtype: floats stay, integers and bools become float32. */
export type FloatOf<D extends DType> = D extends "float64" | "float32" | "float16" | "bfloat16" ? D : "float32";

/**
 * What an operation is defined for. `floats`: integers and bools become float32 first. `numbers`: bools are refused;
 * `bits`: floats are; `integers`: both are.
 */
export type Kind = "floats" | "numbers" | "bits" | "integers" | "everything";

// `method` says how a function becomes a method of Tensor: see src/ops/methods.ts.

/** A function of each element. The dtype stays. */
export interface UnaryOperation {
  <D extends DType>(x: Tensor<D>): Tensor<D>;
  readonly method: "same";
}

/** A function of real numbers of each element: integers and bools become float32. */
export interface FloatOperation {
  <D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>>;
  readonly method: "float";
}

/** Whether something holds for each element. */
export interface UnaryPredicate {
  (x: Tensor): Tensor<"bool">;
  readonly method: "bool";
}

/** A function of each pair of elements, broadcast and promoted to a common dtype. */
export interface BinaryOperation {
  <A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>>;
  readonly method: "promoted";
}

/** Whether something holds for each pair of elements. */
export interface BinaryPredicate {
  (a: Operand, b: Operand): Tensor<"bool">;
  readonly method: "bool";
}
