/**
 * The elementwise primitives `unary`, `binary` and `ternary`, with the names of their operations in arbitrary order.
 * Each operation is defined elsewhere with `defineUnary`, `defineBinary` or `defineTernary` (define.ts).
 */
import { cpuCall, loop } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf } from "../../backend/fields.ts";

// Groups are the kinds of dtypes in which operations compute. Operations in `tests` return bools.

const unaryNumbers = ["abs", "neg", "sign", "square", "floor", "ceil", "round", "trunc", "frac", "relu"] as const;

/** Operations on each element. */
export const unaryOperations = enumeration("Unary", {
  floats: [
    ...unaryNumbers,
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
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "digamma",
    "sinc",
    "sphericalBesselJ0",
    "ndtr",
    "entr",
    "i0",
    "i1",
    "i0e",
    "i1e",
    "erfcx",
    "logNdtr",
    "ndtri",
    "besselJ0",
    "besselJ1",
    "besselY0",
    "besselY1",
    "modifiedBesselK0",
    "modifiedBesselK1",
    "scaledModifiedBesselK0",
    "scaledModifiedBesselK1",
    "frexpMantissa",
    "frexpExponent",
    "logit",
    "sigmoid",
    "gelu",
    "geluTanh",
    "silu",
    "hardswish",
    "hardsigmoid",
    "softsign",
    "mish",
    "logSigmoid",
    "tanhshrink",
  ],
  integers: [...unaryNumbers, "bitwiseNot"],
  bools: ["sign", "bitwiseNot"],
  tests: ["logicalNot", "isnan", "isinf", "isfinite", "signbit"],
});
export type UnaryName = NameOf<typeof unaryOperations>;

const sums = ["add", "mul", "maximum", "minimum", "fmax", "fmin", "heaviside"] as const;
const divisions = ["sub", "floorDivide", "truncDivide", "remainder", "fmod", "pow"] as const;
const bitOperations = ["bitwiseAnd", "bitwiseOr", "bitwiseXor"] as const;

/** Operations on pairs of elements. */
export const binaryOperations = enumeration("Binary", {
  floats: [
    ...sums,
    ...divisions,
    "div",
    "atan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "xlogy",
    "xlog1py",
    "polygamma",
    "nextafter",
    "copysign",
    "timesPowerOfTwo",
    "swiglu",
    "geluGradient",
    "geluTanhGradient",
    "siluGradient",
    "hardswishGradient",
    "leaky",
  ],
  integers: [...sums, ...divisions, ...bitOperations, "bitwiseLeftShift", "bitwiseRightShift", "gcd", "lcm"],
  bools: [...sums, ...bitOperations],
  tests: ["logicalAnd", "logicalOr", "logicalXor", "eq", "ne", "lt", "le", "gt", "ge"],
});
export type BinaryName = NameOf<typeof binaryOperations>;

/** Operations on three elements. The first operand of `choices` is a bool. */
export const ternaryOperations = enumeration("Ternary", {
  choices: ["where"],
  floats: ["clamp", "lerp", "addcmul", "addcdiv", "threshold", "softplus", "elu", "shrink", "nanToNum"],
  integers: ["clamp"],
});
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
