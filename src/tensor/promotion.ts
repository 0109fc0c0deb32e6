/**
 * Type promotion, as PyTorch's `promote_types`: what two dtypes become together. PyTorch has a 16-bit integer between
 * the 8-bit ones and int32; Orchard has not, so int8 with uint8 is int32. PyTorch refuses to mix uint32 with a signed
 * type; here that is int64, which holds both.
 */
import { type DType, type FloatDType, isFloat, isInteger } from "./dtype.ts";

export const promotion = {
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
} as const satisfies Record<DType, Record<DType, DType>>;

/** One row of the table, its columns in the order of `dtypes`. */
function row<
  const A extends DType,
  const B extends DType,
  const C extends DType,
  const D extends DType,
  const E extends DType,
  const F extends DType,
  const G extends DType,
  const H extends DType,
  const I extends DType,
  const J extends DType,
>(float64: A, float32: B, float16: C, bfloat16: D, int64: E, int32: F, uint32: G, int8: H, uint8: I, bool: J) {
  return { float64, float32, float16, bfloat16, int64, int32, uint32, int8, uint8, bool };
}

/** A plain number, which takes part in promotion with its kind only. */
export type Scalar = number | bigint | boolean;

/** What two dtypes become together. */
export type Promote<A extends DType, B extends DType> = (typeof promotion)[A][B];

/** What a dtype becomes with a plain number: its own where it is a float, else what the number needs. */
export type PromoteScalar<D extends DType> = D extends FloatDType ? D : D | "float32" | "int64";

export const promote = <A extends DType, B extends DType>(a: A, b: B): Promote<A, B> => promotion[a][b];

/**
 * The rank of a dtype's kind: bool, integers, floats. A 0-d tensor or a number changes the result only with a higher
 * one.
 */
const kindRank = (dtype: DType): number => (isFloat(dtype) ? 2 : isInteger(dtype) ? 1 : 0);

/**
 * The dtype of plain values that become a tensor without another one: booleans bool, bigints int64, numbers float32
 * (where PyTorch has int64 for whole ones).
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

/** The dtype of a plain number that meets a tensor, as PyTorch's `result_type` sees it. */
export function scalarDType(value: Scalar): DType {
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int64";
  return Number.isInteger(value) && !Object.is(value, -0) ? "int64" : "float32";
}

/** An operand as promotion sees it: tensors with dimensions come first, then 0-d tensors, then plain numbers. */
export interface PromotionOperand {
  readonly dtype: DType;
  readonly priority: 0 | 1 | 2;
}

/**
 * The common dtype of operands (`torch.result_type`): the highest priority decides, and a lower one changes it only
 * where its kind is higher (an int32 tensor and the number 0.5 are float32).
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
