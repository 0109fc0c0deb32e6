import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { ArgumentError } from "../../core/errors.ts";
import type { DType, FloatDType } from "../../tensor/dtype.ts";
import type { Promote, PromoteScalar, Scalar } from "../../tensor/promotion.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { geluCurvature, geluTanhCurvature, gradientOfGradient, siluCurvature } from "../activation/gradients.ts";
import { swigluGradient } from "../activation/swiglu_gradient.ts";
import { toDType } from "../copy/cast.ts";
import { sumTo } from "../view/expand.ts";
import { binaryCpu } from "./binary.cpu.ts";
import { binaryMetal } from "./binary.metal.ts";
import { binaryReference } from "./binary.reference.ts";
import { eq, ge, logicalAnd, lt } from "./comparison.ts";
import { type Kind, promoteOperands, zerosLike } from "./operands.ts";
import { type BinaryName, binaryOperations, byName } from "./primitive.ts";
import { where } from "./ternary.ts";
import { log, neg, square } from "./unary.ts";

/** An operation on pairs of elements. */
interface BinaryRow {
  readonly takes: Kind;
  /** Whether the gradient needs the operands; `"bool"` where the result is one and has none. */
  readonly saves: "nothing" | "operands" | "bool";
  /** The gradients of a and b before they are summed to their shapes, from the output's g. A rule may leave out what is not needed. */
  readonly gradient: (g: Tensor, a: Tensor, b: Tensor, needs: readonly boolean[]) => readonly (Tensor | null)[];
}

const noGradient = () => [null, null];
const bits = { takes: "bits", saves: "nothing", gradient: noGradient } as const;
const question = { takes: "everything", saves: "bool", gradient: noGradient } as const;
const steps = { takes: "numbers", saves: "nothing", gradient: (g: Tensor) => [zerosLike(g), zerosLike(g)] } as const;

const rows: Readonly<Record<BinaryName, BinaryRow>> = {
  add: { takes: "everything", saves: "nothing", gradient: (g) => [g, g] },
  sub: { takes: "numbers", saves: "nothing", gradient: (g, _a, _b, needs) => [g, needs[1] ? neg(g) : null] },
  mul: {
    takes: "everything",
    saves: "operands",
    gradient: (g, a, b, needs) => [needs[0] ? mul(g, b) : null, needs[1] ? mul(g, a) : null],
  },
  div: {
    takes: "floats",
    saves: "operands",
    gradient: (g, a, b, needs) => [needs[0] ? div(g, b) : null, needs[1] ? neg(mul(div(g, b), div(a, b))) : null],
  },
  floorDivide: steps,
  truncDivide: steps,
  remainder: {
    takes: "numbers",
    saves: "operands",
    gradient: (g, a, b, needs) => [g, needs[1] ? neg(mul(g, floorDivide(a, b))) : null],
  },
  fmod: {
    takes: "numbers",
    saves: "operands",
    gradient: (g, a, b, needs) => [g, needs[1] ? neg(mul(g, binary("truncDivide", a, b))) : null],
  },
  pow: {
    takes: "numbers",
    saves: "operands",
    gradient: (g, a, b, needs) => [needs[0] ? powerOfBase(g, a, b) : null, needs[1] ? powerOfExponent(g, a, b) : null],
  },
  maximum: { takes: "everything", saves: "operands", gradient: (g, a, b) => [chosen(g, b, a), chosen(g, a, b)] },
  minimum: { takes: "everything", saves: "operands", gradient: (g, a, b) => [chosen(g, a, b), chosen(g, b, a)] },
  atan2: {
    takes: "floats",
    saves: "operands",
    gradient: (g, a, b, needs) => gradientOfAngle(g, a, b, needs),
  },
  swiglu: { takes: "floats", saves: "operands", gradient: (g, gate, up) => swigluGradient(g, gate, up) },
  geluGradient: {
    takes: "floats",
    saves: "operands",
    gradient: (h, g, x, needs) => gradientOfGradient("geluGradient", geluCurvature, [h, g, x], needs),
  },
  geluTanhGradient: {
    takes: "floats",
    saves: "operands",
    gradient: (h, g, x, needs) => gradientOfGradient("geluTanhGradient", geluTanhCurvature, [h, g, x], needs),
  },
  siluGradient: {
    takes: "floats",
    saves: "operands",
    gradient: (h, g, x, needs) => gradientOfGradient("siluGradient", siluCurvature, [h, g, x], needs),
  },
  bitwiseAnd: bits,
  bitwiseOr: bits,
  bitwiseXor: bits,
  eq: question,
  ne: question,
  lt: question,
  le: question,
  gt: question,
  ge: question,
  logicalAnd: question,
  logicalOr: question,
  logicalXor: question,
};

/** b·aᵇ⁻¹; 0 where b is 0, whatever a is. */
const powerOfBase = (g: Tensor, a: Tensor, b: Tensor): Tensor =>
  where(eq(b, 0), 0, mul(g, mul(b, pow(a, sub(b, 1))))) as Tensor;

/** aᵇ·ln a; 0 where 0 is raised to something that is not negative. */
const powerOfExponent = (g: Tensor, a: Tensor, b: Tensor): Tensor =>
  where(logicalAnd(eq(a, 0), ge(b, 0)), 0, mul(g, mul(pow(a, b), log(a)))) as Tensor;

/** b/(a² + b²) and −a/(a² + b²), 0 at the origin; in float32 for halves, in which squares of 256 are infinite. */
function gradientOfAngle(g: Tensor, a: Tensor, b: Tensor, needs: readonly boolean[]): readonly (Tensor | null)[] {
  const wide = g.dtype === "float64" ? g.dtype : "float32";
  const squares = add(square(toDType(a, wide)), square(toDType(b, wide)));
  const scaled = div(g, where(eq(squares, 0), 1, squares));
  const part = (side: Tensor) => toDType(mul(scaled, side), g.dtype);
  return [needs[0] ? part(b) : null, needs[1] ? part(neg(a)) : null];
}

/** The share of the operand that is chosen where `smaller` < `larger`: all, half of it where both are equal. */
const chosen = (g: Tensor, smaller: Tensor, larger: Tensor): Tensor =>
  where(lt(larger, smaller), 0, where(eq(smaller, larger), mul(g, 0.5), g)) as Tensor;

const primitives = byName(
  binaryOperations.names,
  (name): Primitive => ({
    name,
    implementations: { metal: binaryMetal(name), cpu: binaryCpu(name), reference: binaryReference(name) },
  }),
);

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

/**
 * @internal One of the operations of the table.
 * @param operation what the caller called, for errors
 */
export function binary(name: BinaryName, a: Operand, b: Operand, operation: string = name): Tensor {
  const { takes, saves, gradient } = rows[name];
  const operands = promoteOperands(operation, [a, b], takes);
  const [left, right] = operands as [Tensor, Tensor];
  const shape = broadcastShapes(operation, left.shape, right.shape);
  const output = execute(
    primitives[name],
    operands,
    shape,
    saves === "bool" ? "bool" : left.dtype,
    undefined,
    operation,
  );
  if (saves === "bool" || !(left.requiresGrad || right.requiresGrad)) return output;
  const shapes = [left.shape, right.shape] as const;
  record(name, operands, [output], saves === "operands" ? operands : [], ([incoming], [x, y], needs) =>
    gradient(incoming!, x!, y!, needs).map((result, operand) =>
      result && needs[operand] ? sumTo(result, shapes[operand]!) : null,
    ),
  );
  return output;
}

type Binary = <A extends Operand, B extends Operand>(a: A, b: B) => Tensor<ResultOf<A, B>>;

const pair = (name: BinaryName): Binary => ((a, b) => binary(name, a, b)) as Binary;

/**
 * a + b for each pair of elements, broadcast; integers wrap around, bools are joined by or.
 *
 * @example
 * add(tensor([1, 2]), 0.5); // float32 [1.5, 2.5]
 *
 * @throws {ShapeError} where the shapes can't be broadcast together.
 * @throws {DTypeError} where a number does not fit the integer tensor that it meets.
 */
export const add = pair("add");
/**
 * a − b for each pair of elements, broadcast; integers wrap around.
 *
 * @example
 * sub(tensor([3, 5]), 1); // float32 [2, 4]
 *
 * @throws {DTypeError} for bools. @see {@link add}
 */
export const sub = pair("sub");
/**
 * a · b for each pair of elements, broadcast; integers wrap around, bools are joined by and. @see {@link add}
 *
 * @example
 * mul(tensor([3, 5]), tensor([2, 10])); // float32 [6, 50]
 */
export const mul = pair("mul");
/**
 * The larger of each pair of elements, broadcast; NaN where either is. Equal ones share the gradient. @see {@link add}
 *
 * @example
 * maximum(tensor([1, 5]), 3); // float32 [3, 5]
 */
export const maximum = pair("maximum");
/**
 * The smaller of each pair of elements, broadcast; NaN where either is. Equal ones share the gradient. @see {@link add}
 *
 * @example
 * minimum(tensor([1, 5]), 3); // float32 [1, 3]
 */
export const minimum = pair("minimum");
/**
 * a − b·⌊a/b⌋ for each pair of elements, broadcast: the remainder with the sign of the divisor, as in Python.
 *
 * @example
 * remainder(tensor([-3, 3]), 2); // float32 [1, 1]
 *
 * @throws {ArgumentError} `divisionByZero` for integers; on metal the result is 0 instead, since looking would wait for the device.
 */
export const remainder = pair("remainder");
/**
 * The remainder with the sign of the dividend, as in C.
 *
 * @example
 * fmod(tensor([-7, 7]), 3); // float32 [-1, 1]
 *
 * @throws {ArgumentError} as {@link remainder}.
 */
export const fmod = pair("fmod");
/**
 * ⌊a/b⌋ for each pair of elements, broadcast; the dtype stays. The gradient is 0.
 *
 * @example
 * floorDivide(tensor([-7, 7]), 2); // float32 [-4, 3]
 *
 * @throws {ArgumentError} as {@link remainder}.
 */
export const floorDivide = pair("floorDivide");
/**
 * The angle from −π to π of each point (b, a), in radians, broadcast; integers become float32. @see {@link add}
 *
 * @example
 * atan2(tensor([0, 1]), tensor([-1, 0])); // float32 [3.14159, 1.5708]
 */
export const atan2 = pair("atan2");
/**
 * a ∧ b for each pair of bits of integers, or bools, broadcast.
 *
 * @example
 * bitwiseAnd(tensor([6], { dtype: "int32" }), 3); // int32 [2]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseAnd = pair("bitwiseAnd");
/**
 * a ∨ b for each pair of bits of integers, or bools, broadcast.
 *
 * @example
 * bitwiseOr(tensor([6], { dtype: "int32" }), 3); // int32 [7]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseOr = pair("bitwiseOr");
/**
 * a ⊻ b for each pair of bits of integers, or bools, broadcast.
 *
 * @example
 * bitwiseXor(tensor([6], { dtype: "int32" }), 3); // int32 [5]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseXor = pair("bitwiseXor");

/**
 * aᵇ for each pair of elements, broadcast; integers stay integers and wrap around.
 *
 * @example
 * pow(tensor([1, 2, 3]), 2); // float32 [1, 4, 9]
 *
 * @throws {ArgumentError} where integers are raised to a negative number; a tensor of exponents gives 0 there, or ±1 for ±1.
 */
export function pow<A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>> {
  if (a instanceof Tensor && b === 2 && a.dtype !== "bool") return square(a as Tensor) as Tensor<ResultOf<A, B>>;
  if (a instanceof Tensor && typeof b !== "object" && Number(b) < 0 && isWhole(a.dtype, b))
    throw new ArgumentError(
      "pow",
      "negativeExponent",
      `integers can't be raised to ${b}; convert them to a float first`,
    );
  return binary("pow", a, b) as Tensor<ResultOf<A, B>>;
}

const isWhole = (dtype: DType, exponent: unknown): boolean =>
  !floats.has(dtype) && (typeof exponent === "bigint" || Number.isInteger(exponent));
const floats: ReadonlySet<DType> = new Set<FloatDType>(["float64", "float32", "float16", "bfloat16"]);

/** Options of {@link div}. */
export interface DivOptions {
  /** `"floor"` rounds the quotient down, `"trunc"` towards 0, and integers stay integers then. Default null: true division. */
  rounding?: "floor" | "trunc" | null;
}

/**
 * a / b for each pair of elements, broadcast; integers become float32 first, unless the quotient is rounded.
 *
 * @example
 * div(tensor([7, -7]), 2); // float32 [3.5, -3.5]
 * div(tensor([7, -7]), 2, { rounding: "floor" }); // float32 [3, -4]
 *
 * @throws {ShapeError} where the shapes can't be broadcast together. @throws {ArgumentError} as {@link remainder}, where it is rounded.
 */
export function div<A extends Operand, B extends Operand>(
  a: A,
  b: B,
  { rounding = null }: DivOptions = {},
): Tensor<ResultOf<A, B>> {
  const name = divisions.get(rounding);
  if (name === undefined)
    throw new ArgumentError("div", "unknownRounding", `rounding is "floor", "trunc" or null, ${String(rounding)} came`);
  return binary(name, a, b) as Tensor<ResultOf<A, B>>;
}

const divisions = new Map<unknown, BinaryName>([
  [null, "div"],
  ["floor", "floorDivide"],
  ["trunc", "truncDivide"],
]);
