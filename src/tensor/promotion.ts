/**
 * The type promotion table, as PyTorch's `promote_types`. int8 with uint8 gives int32, since Orchard lacks PyTorch's
 * int16. PyTorch rejects uint32 with a signed type; here that gives int64, which can represent both.
 */
import {
  type ComplexDType,
  complexDType,
  type DType,
  type FloatDType,
  isComplex,
  isFloat,
  isInteger,
  type RealDType,
} from "./dtype.ts";

const realPromotion = {
  float64: row(
    "float64",
    "float64",
    "float64",
    "float64",
    "float64",
    "float64",
    "float64",
    "float64",
    "float64",
    "float64",
  ),
  float32: row(
    "float64",
    "float32",
    "float32",
    "float32",
    "float32",
    "float32",
    "float32",
    "float32",
    "float32",
    "float32",
  ),
  float16: row(
    "float64",
    "float32",
    "float16",
    "float32",
    "float16",
    "float16",
    "float16",
    "float16",
    "float16",
    "float16",
  ),
  bfloat16: row(
    "float64",
    "float32",
    "float32",
    "bfloat16",
    "bfloat16",
    "bfloat16",
    "bfloat16",
    "bfloat16",
    "bfloat16",
    "bfloat16",
  ),
  int64: row("float64", "float32", "float16", "bfloat16", "int64", "int64", "int64", "int64", "int64", "int64"),
  int32: row("float64", "float32", "float16", "bfloat16", "int64", "int32", "int64", "int32", "int32", "int32"),
  uint32: row("float64", "float32", "float16", "bfloat16", "int64", "int64", "uint32", "int64", "uint32", "uint32"),
  int8: row("float64", "float32", "float16", "bfloat16", "int64", "int32", "int64", "int8", "int32", "int8"),
  uint8: row("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint32", "int32", "uint8", "uint8"),
  bool: row("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint32", "int8", "uint8", "bool"),
} as const satisfies Record<RealDType, Record<RealDType, RealDType>>;

/** A row of the table, with columns in the order of `dtypes`. */
function row<
  const A extends RealDType,
  const B extends RealDType,
  const C extends RealDType,
  const D extends RealDType,
  const E extends RealDType,
  const F extends RealDType,
  const G extends RealDType,
  const H extends RealDType,
  const I extends RealDType,
  const J extends RealDType,
>(float64: A, float32: B, float16: C, bfloat16: D, int64: E, int32: F, uint32: G, int8: H, uint8: I, bool: J) {
  return { float64, float32, float16, bfloat16, int64, int32, uint32, int8, uint8, bool };
}

/** A plain value. Only its kind takes part in promotion. */
export type Scalar = number | bigint | boolean;

/** The promoted dtype of two dtypes. For `DType` itself it is `DType`, so that `Tensor` stays `Tensor`. */
export type Promote<A extends DType, B extends DType> = DType extends A & B
  ? DType
  : A extends RealDType
    ? B extends RealDType
      ? (typeof realPromotion)[A][B]
      : ComplexOf<A, B>
    : ComplexOf<A, B>;

/** The complex dtype that holds two dtypes. */
type ComplexOf<A extends DType, B extends DType> = A extends "float64" | "complex128"
  ? "complex128"
  : B extends "float64" | "complex128"
    ? "complex128"
    : "complex64";

/**
 * The promoted dtype of a dtype and a plain value. Floats and complex numbers keep their dtype; so does any dtype with
 * a boolean, and an integer with a bigint. With a number, integers and bools become the dtype that the number requires.
 */
export type PromoteScalar<D extends DType, S extends Scalar = Scalar> = DType extends D
  ? DType
  : D extends FloatDType | ComplexDType
    ? D
    : S extends boolean
      ? D
      : S extends bigint
        ? D extends "bool"
          ? "int64"
          : D
        : D | "float32" | "int64";

/** Returns the promoted dtype of two dtypes. A complex one with any other gives the complex dtype that holds both. */
export function promote<A extends DType, B extends DType>(a: A, b: B): Promote<A, B>;
export function promote(a: DType, b: DType): DType {
  if (!isComplex(a) && !isComplex(b)) return realPromotion[a][b];
  return complexDType(a) === "complex128" ? "complex128" : complexDType(b);
}

/**
 * The rank of a dtype's kind: bool, integers, floats, complex numbers. A 0-d tensor or a number changes the result only
 * if its kind is higher.
 */
const kindRank = (dtype: DType): number => (isComplex(dtype) ? 3 : isFloat(dtype) ? 2 : isInteger(dtype) ? 1 : 0);

/**
 * Returns the dtype of a tensor created from plain values: bool for booleans, int64 for bigints, float32 for numbers
 * (PyTorch: int64 for whole numbers).
 */
export function plainDType(values: Iterable<Scalar>): "bool" | "int64" | "float32" {
  let dtype: "bool" | "int64" | undefined;
  for (const value of values) {
    if (typeof value === "number") return "float32";
    if (typeof value === "bigint") dtype = "int64";
    else dtype ??= "bool";
  }
  return dtype ?? "float32";
}

/** Returns the dtype of a plain number in an operation with a tensor, as in PyTorch's `result_type`. */
export function scalarDType(value: Scalar): DType {
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int64";
  return Number.isInteger(value) && !Object.is(value, -0) ? "int64" : "float32";
}

/** An operand of promotion. Tensors with axes have the highest priority, then 0-d tensors, then plain numbers. */
export interface PromotionOperand {
  readonly dtype: DType;
  readonly priority: 0 | 1 | 2;
}

/**
 * Returns the common dtype of operands (`torch.result_type`). The highest priority decides; a lower one changes the
 * result only if its kind is higher (an int32 tensor and the number 0.5 give float32).
 */
export function resultType(operands: readonly PromotionOperand[]): DType {
  const perPriority: (DType | undefined)[] = [undefined, undefined, undefined];
  for (const { dtype, priority } of operands) {
    const known = perPriority[priority];
    perPriority[priority] = known === undefined ? dtype : promote(known, dtype);
  }
  const combine = (higher: DType | undefined, lower: DType | undefined) => {
    if (higher === undefined) return lower;
    if (lower === undefined || kindRank(lower) <= kindRank(higher)) return higher;
    return promote(higher, lower);
  };
  return combine(combine(perPriority[0], perPriority[1]), perPriority[2]) ?? "float32";
}
