/**
 * The elementwise primitives: `unary`, `binary` and `ternary`, each with the names of its operations, in no order that
 * means something. An operation is defined in a file of its own, by `defineUnary` and its like (define.ts).
 */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf } from "../../backend/fields.ts";

/** Operations on each element. */
export const unaryOperations = enumeration("Unary", [
  ...["abs", "neg", "sign", "square", "reciprocal"],
  ...["floor", "ceil", "round", "trunc", "frac"],
  ...["sqrt", "rsqrt"],
  ...["exp", "exp2", "expm1", "log", "log2", "log10", "log1p"],
  ...["sin", "cos", "tan", "tanh"],
  ...["erf"],
  ...["asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"],
  ...["erfc", "erfinv", "lgamma", "digamma", "sinc", "i0", "i1"],
  ...["relu", "sigmoid", "gelu", "geluTanh", "silu", "hardswish", "hardsigmoid"],
  ...["softsign", "mish", "logSigmoid", "tanhshrink"],
  ...["bitwiseNot", "logicalNot", "isnan", "isinf", "isfinite", "signbit"],
]);
export type UnaryName = NameOf<typeof unaryOperations>;

/** Operations on pairs of elements. */
export const binaryOperations = enumeration("Binary", [
  ...["add", "sub", "mul", "div", "floorDivide", "truncDivide", "remainder", "fmod", "pow"],
  ...["maximum", "minimum"],
  ...["atan2"],
  ...["hypot", "logaddexp", "logaddexp2", "xlogy", "polygamma", "nextafter", "copysign", "heaviside", "gcd", "lcm"],
  ...["swiglu", "geluGradient", "geluTanhGradient", "siluGradient", "hardswishGradient", "leaky"],
  ...["bitwiseAnd", "bitwiseOr", "bitwiseXor", "bitwiseLeftShift", "bitwiseRightShift"],
  ...["logicalAnd", "logicalOr", "logicalXor"],
  ...["eq", "ne", "lt", "le", "gt", "ge"],
]);
export type BinaryName = NameOf<typeof binaryOperations>;

/** Operations on three elements. The first operand of `where` is a bool. */
export const ternaryOperations = enumeration("Ternary", ["where", "clamp", "lerp", "softplus", "elu"]);
export type TernaryName = NameOf<typeof ternaryOperations>;

export const unaryCall = cpuCall("unary", { operation: oneOf(unaryOperations), dtype, loop: loop(2) }, ["x", "out"]);
export const binaryCall = cpuCall("binary", { operation: oneOf(binaryOperations), dtype, loop: loop(3) }, [
  ...["a", "b"],
  "out",
]);
export const ternaryCall = cpuCall("ternary", { operation: oneOf(ternaryOperations), dtype, loop: loop(4) }, [
  ...["a", "b", "c"],
  "out",
]);
