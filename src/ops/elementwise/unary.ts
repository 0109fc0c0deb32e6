import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { binary, div, mul, sub } from "./binary.ts";
import { gt } from "./comparison.ts";
import { type Kind, operandDType, zerosLike } from "./operands.ts";
import { byName, type UnaryName, unaryOperations } from "./primitive.ts";
import { where } from "./ternary.ts";
import { unaryCpu } from "./unary.cpu.ts";
import { unaryMetal } from "./unary.metal.ts";
import { unaryReference } from "./unary.reference.ts";

/** An operation on each element. */
interface UnaryRow {
  readonly takes: Kind;
  /** What the gradient needs of the forward; `"bool"` where the result is one and has none. */
  readonly saves: "nothing" | "input" | "output" | "bool";
  /** The gradient of the input, from the output's gradient g and what was saved. */
  readonly gradient: (g: Tensor, saved: Tensor) => Tensor;
}

const bits = { takes: "bits", saves: "nothing", gradient: (g: Tensor) => zerosLike(g) } as const;
const question = { takes: "everything", saves: "bool", gradient: (g: Tensor) => zerosLike(g) } as const;
const steps = { takes: "numbers", saves: "nothing", gradient: (g: Tensor) => zerosLike(g) } as const;

const rows: Readonly<Record<UnaryName, UnaryRow>> = {
  neg: { takes: "numbers", saves: "nothing", gradient: (g) => neg(g) },
  abs: { takes: "numbers", saves: "input", gradient: (g, x) => mul(g, sign(x)) },
  sign: { ...steps, takes: "everything" },
  square: { takes: "numbers", saves: "input", gradient: (g, x) => mul(g, mul(x, 2)) },
  relu: { takes: "numbers", saves: "output", gradient: (g, y) => where(gt(y, 0), g, 0) },
  floor: steps,
  ceil: steps,
  round: steps,
  reciprocal: { takes: "floats", saves: "output", gradient: (g, y) => mul(neg(g), square(y)) },
  sqrt: { takes: "floats", saves: "output", gradient: (g, y) => div(g, mul(y, 2)) },
  rsqrt: { takes: "floats", saves: "output", gradient: (g, y) => mul(mul(g, -0.5), mul(y, square(y))) },
  exp: { takes: "floats", saves: "output", gradient: (g, y) => mul(g, y) },
  exp2: { takes: "floats", saves: "output", gradient: (g, y) => mul(g, mul(y, Math.LN2)) },
  expm1: { takes: "floats", saves: "input", gradient: (g, x) => mul(g, exp(x)) },
  log: { takes: "floats", saves: "input", gradient: (g, x) => div(g, x) },
  log2: { takes: "floats", saves: "input", gradient: (g, x) => div(g, mul(x, Math.LN2)) },
  log10: { takes: "floats", saves: "input", gradient: (g, x) => div(g, mul(x, Math.LN10)) },
  log1p: { takes: "floats", saves: "input", gradient: (g, x) => div(g, sub(x, -1)) },
  tanh: { takes: "floats", saves: "output", gradient: (g, y) => mul(g, sub(1, square(y))) },
  sigmoid: { takes: "floats", saves: "output", gradient: (g, y) => mul(g, mul(y, sub(1, y))) },
  erf: {
    takes: "floats",
    saves: "input",
    gradient: (g, x) => mul(g, mul(exp(neg(square(x))), 2 / Math.sqrt(Math.PI))),
  },
  sin: { takes: "floats", saves: "input", gradient: (g, x) => mul(g, cos(x)) },
  cos: { takes: "floats", saves: "input", gradient: (g, x) => mul(neg(g), sin(x)) },
  tan: { takes: "floats", saves: "output", gradient: (g, y) => mul(g, sub(square(y), -1)) },
  gelu: { takes: "floats", saves: "input", gradient: (g, x) => binary("geluGradient", g, x) },
  geluTanh: { takes: "floats", saves: "input", gradient: (g, x) => binary("geluTanhGradient", g, x) },
  silu: { takes: "floats", saves: "input", gradient: (g, x) => binary("siluGradient", g, x) },
  bitwiseNot: bits,
  logicalNot: question,
  isnan: question,
  isinf: question,
  isfinite: question,
};

const primitives = byName(
  unaryOperations.names,
  (name): Primitive => ({
    name,
    implementations: { metal: unaryMetal(name), cpu: unaryCpu(name), reference: unaryReference(name) },
  }),
);

/**
 * @internal One of the operations of the table.
 * @param operation what the caller called, for errors
 */
export function unary(name: UnaryName, x: Tensor, operation: string = name): Tensor {
  x.checkAlive(operation);
  const { takes, saves, gradient } = rows[name];
  const input = toDType(x, operandDType(operation, x.dtype, takes));
  const dtype = saves === "bool" ? "bool" : input.dtype;
  const output = execute(primitives[name], [input], input.shape, dtype, undefined, operation);
  if (saves === "bool" || !input.requiresGrad) return output;
  const save = saves === "nothing" ? [] : [saves === "input" ? input : output];
  record(name, [input], [output], save, ([incoming], [saved]) => [gradient(incoming!, saved ?? incoming!)]);
  return output;
}

/** What `exp` and its like make of a dtype: floats stay, integers and bools become float32. */
export type FloatOf<D extends DType> = D extends "float64" | "float32" | "float16" | "bfloat16" ? D : "float32";

type Same = <D extends DType>(x: Tensor<D>) => Tensor<D>;
type Float = <D extends DType>(x: Tensor<D>) => Tensor<FloatOf<D>>;
type Question = (x: Tensor) => Tensor<"bool">;

const same = (name: UnaryName): Same => ((x) => unary(name, x)) as Same;
const float = (name: UnaryName): Float => ((x) => unary(name, x)) as Float;
const ask = (name: UnaryName): Question => ((x) => unary(name, x)) as Question;

/**
 * −x for each element; integers wrap around.
 *
 * @example
 * neg(tensor([1, -2])); // float32 [-1, 2]
 *
 * @throws {DTypeError} for bools.
 */
export const neg = same("neg");
/**
 * |x| for each element; integers wrap around. The gradient at 0 is 0. @see {@link neg}
 *
 * @example
 * abs(tensor([-2, 0, 3])); // float32 [2, 0, 3]
 */
export const abs = same("abs");
/**
 * −1, 0 or 1 for each element; 0 for NaN, and a bool itself. The gradient is 0.
 *
 * @example
 * sign(tensor([-2, 0, 3])); // float32 [-1, 0, 1]
 */
export const sign = same("sign");
/**
 * x² for each element; integers wrap around. @see {@link neg}
 *
 * @example
 * square(tensor([-2, 3])); // float32 [4, 9]
 */
export const square = same("square");
/**
 * max(x, 0) for each element; NaN stays. The gradient at 0 is 0. @see {@link neg}
 *
 * @example
 * relu(tensor([-2, 3])); // float32 [0, 3]
 */
export const relu = same("relu");
/**
 * The largest whole number ≤ x for each element. The gradient is 0. @see {@link neg}
 *
 * @example
 * floor(tensor([-1.5, 1.5])); // float32 [-2, 1]
 */
export const floor = same("floor");
/**
 * The smallest whole number ≥ x for each element. The gradient is 0. @see {@link neg}
 *
 * @example
 * ceil(tensor([-1.5, 1.5])); // float32 [-1, 2]
 */
export const ceil = same("ceil");
/**
 * The nearest whole number for each element, halves to the even one. The gradient is 0. @see {@link neg}
 *
 * @example
 * round(tensor([0.5, 1.5, 2.5])); // float32 [0, 2, 2]
 */
export const round = same("round");
/**
 * ¬x for each bit of integers; not x for bools.
 *
 * @example
 * bitwiseNot(tensor([0, 5], { dtype: "int32" })); // int32 [-1, -6]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseNot = same("bitwiseNot");

/**
 * eˣ for each element; integers and bools become float32, as in all functions of real numbers here.
 *
 * @example
 * exp(tensor([0, 1])); // float32 [1, 2.7183]
 */
export const exp = float("exp");
/**
 * 2ˣ for each element. @see {@link exp}
 *
 * @example
 * exp2(tensor([0, 3])); // float32 [1, 8]
 */
export const exp2 = float("exp2");
/**
 * eˣ − 1 for each element, accurate near 0. @see {@link exp}
 *
 * @example
 * expm1(tensor([0, 1])); // float32 [0, 1.71828]
 */
export const expm1 = float("expm1");
/**
 * ln x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * log(tensor([1, 10])); // float32 [0, 2.30259]
 */
export const log = float("log");
/**
 * log₂ x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * log2(tensor([1, 8])); // float32 [0, 3]
 */
export const log2 = float("log2");
/**
 * log₁₀ x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * log10(tensor([1, 1000])); // float32 [0, 3]
 */
export const log10 = float("log10");
/**
 * ln(1 + x) for each element, accurate near 0; NaN below −1. @see {@link exp}
 *
 * @example
 * log1p(tensor([0, 1])); // float32 [0, 0.69315]
 */
export const log1p = float("log1p");
/**
 * √x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * sqrt(tensor([4, 9])); // float32 [2, 3]
 */
export const sqrt = float("sqrt");
/**
 * 1/√x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * rsqrt(tensor([4, 16])); // float32 [0.5, 0.25]
 */
export const rsqrt = float("rsqrt");
/**
 * 1/x for each element. @see {@link exp}
 *
 * @example
 * reciprocal(tensor([4, -2])); // float32 [0.25, -0.5]
 */
export const reciprocal = float("reciprocal");
/**
 * The hyperbolic tangent of each element. @see {@link exp}
 *
 * @example
 * tanh(tensor([0, 1])); // float32 [0, 0.76159]
 */
export const tanh = float("tanh");
/**
 * 1/(1 + e⁻ˣ) for each element. @see {@link exp}
 *
 * @example
 * sigmoid(tensor([0, 1])); // float32 [0.5, 0.73106]
 */
export const sigmoid = float("sigmoid");
/**
 * The error function 2/√π · ∫₀ˣ exp(−t²) dt of each element. @see {@link exp}
 *
 * @example
 * erf(tensor([0, 1])); // float32 [0, 0.8427]
 */
export const erf = float("erf");
/**
 * The sine of each element, in radians. @see {@link exp}
 *
 * @example
 * sin(tensor([0, 1])); // float32 [0, 0.84147]
 */
export const sin = float("sin");
/**
 * The cosine of each element, in radians. @see {@link exp}
 *
 * @example
 * cos(tensor([0, 1])); // float32 [1, 0.5403]
 */
export const cos = float("cos");
/**
 * The tangent of each element, in radians. @see {@link exp}
 *
 * @example
 * tan(tensor([0, 1])); // float32 [0, 1.55741]
 */
export const tan = float("tan");

/**
 * Whether each element is 0.
 *
 * @example
 * logicalNot(tensor([0, 2])); // bool [true, false]
 */
export const logicalNot = ask("logicalNot");
/**
 * Whether each element is NaN; integers never are.
 *
 * @example
 * isnan(tensor([1, NaN])); // bool [false, true]
 */
export const isnan = ask("isnan");
/**
 * Whether each element is an infinity; integers never are.
 *
 * @example
 * isinf(tensor([1, -Infinity])); // bool [false, true]
 */
export const isinf = ask("isinf");
/**
 * Whether each element is neither an infinity nor NaN; integers always are.
 *
 * @example
 * isfinite(tensor([1, NaN])); // bool [true, false]
 */
export const isfinite = ask("isfinite");
