/** The elementwise primitives: `unary`, `binary` and `ternary`, each with the names of its operations. */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf } from "../../backend/fields.ts";

/** Operations whose result is a bool. */
const unaryPredicates = ["logicalNot", "isnan", "isinf", "isfinite"] as const;
const binaryPredicates = ["eq", "ne", "lt", "le", "gt", "ge", "logicalAnd", "logicalOr", "logicalXor"] as const;
const predicates: ReadonlySet<string> = new Set([...unaryPredicates, ...binaryPredicates]);

/** Whether an operation's result is a bool, whatever its operands are. */
export const isPredicate = (name: UnaryName | BinaryName): boolean => predicates.has(name);

/** Operations on each element. */
export const unaryOperations = enumeration("Unary", [
  "neg",
  "abs",
  "sign",
  "square",
  "relu",
  "floor",
  "ceil",
  "round",
  "reciprocal",
  "sqrt",
  "rsqrt",
  "exp",
  "exp2",
  "expm1",
  "log",
  "log2",
  "log10",
  "log1p",
  "tanh",
  "sigmoid",
  "erf",
  "sin",
  "cos",
  "tan",
  "gelu",
  "geluTanh",
  "silu",
  "bitwiseNot",
  ...unaryPredicates,
]);
export type UnaryName = NameOf<typeof unaryOperations>;

/** Operations on pairs of elements. */
export const binaryOperations = enumeration("Binary", [
  "add",
  "sub",
  "mul",
  "div",
  "floorDivide",
  "truncDivide",
  "remainder",
  "fmod",
  "pow",
  "maximum",
  "minimum",
  "atan2",
  "swiglu",
  "geluGradient",
  "geluTanhGradient",
  "siluGradient",
  "bitwiseAnd",
  "bitwiseOr",
  "bitwiseXor",
  ...binaryPredicates,
]);
export type BinaryName = NameOf<typeof binaryOperations>;

/** Operations on three elements. The first operand of `where` is a bool. */
export const ternaryOperations = enumeration("Ternary", ["where", "clamp", "lerp", "softplus"]);
export type TernaryName = NameOf<typeof ternaryOperations>;

export const unaryCall = cpuCall("unary", { operation: oneOf(unaryOperations), dtype, loop: loop(2) }, ["x", "out"]);
export const binaryCall = cpuCall("binary", { operation: oneOf(binaryOperations), dtype, loop: loop(3) }, [
  "a",
  "b",
  "out",
]);
export const ternaryCall = cpuCall("ternary", { operation: oneOf(ternaryOperations), dtype, loop: loop(4) }, [
  "a",
  "b",
  "c",
  "out",
]);

/** A table of primitives, or of anything else, by name. */
export const byName = <Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): Readonly<Record<Name, Value>> => Object.fromEntries(names.map((name) => [name, make(name)])) as Record<Name, Value>;
