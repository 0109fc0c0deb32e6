import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { type DType, integerRange, isFloat } from "../../tensor/dtype.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { sumTo } from "../view/expand.ts";
import { add, mul, type Operand, type ResultOf, sub } from "./binary.ts";
import { eq, ge, gt, le, logicalAnd, logicalOr, lt } from "./comparison.ts";
import { operandDType, promoteOperands, scalarTensor } from "./operands.ts";
import { byName, type TernaryName, ternaryOperations } from "./primitive.ts";
import { ternaryCpu } from "./ternary.cpu.ts";
import { ternaryMetal } from "./ternary.metal.ts";
import { ternaryReference } from "./ternary.reference.ts";
import { type FloatOf, sigmoid } from "./unary.ts";

/** The gradients of the operands before they are summed to their shapes, from the output's g. */
type Rule = (g: Tensor, operands: readonly [Tensor, Tensor, Tensor], needs: readonly boolean[]) => (Tensor | null)[];

const rules: Readonly<Record<TernaryName, Rule>> = {
  where: (g, [condition], needs) => [
    null,
    needs[1] ? where(condition, g, 0) : null,
    needs[2] ? where(condition, 0, g) : null,
  ],
  clamp: clampRule([0.5, 0.5]), // of tensors; clamp() has others
  lerp: (g, [a, b, weight], needs) => [
    needs[0] ? mul(g, sub(1, weight)) : null,
    needs[1] ? mul(g, weight) : null,
    needs[2] ? mul(g, sub(b, a)) : null,
  ],
  softplus: (g, [x, beta, threshold]) => {
    const scaled = mul(x, beta);
    return [where(gt(scaled, threshold), g, mul(g, sigmoid(scaled))), null, null];
  },
};

/**
 * Inside its bounds x takes the gradient, outside the bound that is met. What x takes where it equals a bound: half where that is a
 * tensor, as in `maximum`, nothing where it is a number, as in `relu`, all where there is none.
 */
function clampRule([ofLeast, ofMost]: readonly [number, number]): Rule {
  return (g, [x, least, most], needs) => [
    needs[0]
      ? taken(g, [
          [1, () => logicalAnd(gt(x, least), lt(x, most))],
          [ofLeast, () => logicalAnd(eq(x, least), le(x, most))],
          [ofMost, () => logicalAnd(eq(x, most), ge(x, least))],
        ])
      : null,
    needs[1]
      ? taken(g, [
          [1, () => logicalAnd(lt(x, least), lt(least, most))],
          [1 - ofLeast, () => logicalAnd(eq(x, least), lt(least, most))],
        ])
      : null,
    needs[2]
      ? taken(g, [
          [1, () => logicalOr(gt(x, most), gt(least, most))],
          [1 - ofMost, () => logicalAnd(eq(x, most), lt(least, most))],
        ])
      : null,
  ];
}

/** The sum of the shares of a gradient, each where its condition holds. */
function taken(g: Tensor, parts: readonly (readonly [share: number, condition: () => Tensor<"bool">])[]): Tensor {
  return parts
    .filter(([share]) => share > 0)
    .map(([share, condition]) => where(condition(), share === 1 ? g : mul(g, share), 0) as Tensor)
    .reduce((sum, part) => add(sum, part));
}

const primitives = byName(
  ternaryOperations.names,
  (name): Primitive => ({
    name,
    implementations: { metal: ternaryMetal(name), cpu: ternaryCpu(name), reference: ternaryReference(name) },
  }),
);

function ternary(name: TernaryName, operands: readonly [Tensor, Tensor, Tensor], rule = rules[name]): Tensor {
  const shapes = operands.map(({ shape }) => shape);
  const output = execute(primitives[name], operands, broadcastShapes(name, ...shapes), operands[1].dtype, undefined);
  record(name, operands, [output], operands, ([incoming], saved, needs) =>
    rule(incoming!, saved as unknown as readonly [Tensor, Tensor, Tensor], needs).map((result, operand) =>
      result && needs[operand] ? sumTo(result, shapes[operand]!) : null,
    ),
  );
  return output;
}

/**
 * a where the condition is true, b elsewhere, all three broadcast; a and b are promoted to a common dtype.
 *
 * @param condition of dtype bool
 *
 * @example
 * where(gt(x, 0), x, mul(x, 0.1)); // a leaky relu
 *
 * @throws {DTypeError} where the condition is not bool. @throws {ShapeError} where the shapes can't be broadcast together.
 */
export function where<A extends Operand, B extends Operand>(condition: Tensor, a: A, b: B): Tensor<ResultOf<A, B>> {
  if (condition.dtype !== "bool")
    throw new DTypeError(
      "where",
      "notBool",
      `the condition is ${condition.describe()}, bool is wanted; ne(x, 0) makes one`,
    );
  const [yes, no] = promoteOperands("where", [a, b]) as [Tensor, Tensor];
  return ternary("where", [condition, yes, no]) as Tensor<ResultOf<A, B>>;
}

/** The bounds of {@link clamp}. */
export interface ClampOptions {
  /** The least value: a number, or a tensor that is broadcast. Default: no bound. */
  min?: Tensor | Scalar | null;
  /** The largest value; it wins where it is below `min`. Default: no bound. */
  max?: Tensor | Scalar | null;
}

/**
 * min(max(x, least), most) for each element, promoted to a common dtype with the bounds. NaN stays, and a bound that is NaN gives NaN.
 * Where x equals a bound, a tensor takes half of the gradient, and a number lets nothing pass.
 *
 * @example
 * clamp(tensor([-2, 0.5, 2]), { min: -1, max: 1 }); // float32 [-1, 0.5, 1]
 *
 * @throws {ArgumentError} `noBound` where neither bound is given. @throws {DTypeError} for bools.
 * @throws {ShapeError} where the shapes can't be broadcast together.
 */
export function clamp<D extends DType>(x: Tensor<D>, { min, max }: ClampOptions = {}): Tensor {
  const bounds = [min ?? null, max ?? null] as const;
  const given = bounds.filter((bound) => bound !== null);
  if (given.length === 0)
    throw new ArgumentError("clamp", "noBound", "neither min nor max came; at least one of them is wanted");
  const [input, ...others] = promoteOperands("clamp", [x, ...given], "numbers") as [Tensor, ...Tensor[]];
  const [least, most] = rangeOf(input.dtype).map((bound, at) =>
    bounds[at] === null ? scalarTensor(bound, input.dtype) : others.shift()!,
  ) as [Tensor, Tensor];
  const rule = clampRule([shareOf(bounds[0]), shareOf(bounds[1])]);
  return ternary("clamp", [input, least, most], rule);
}

/** What x takes of the gradient where it equals a bound. */
const shareOf = (bound: Tensor | Scalar | null): number => (bound === null ? 1 : bound instanceof Tensor ? 0.5 : 0);

const rangeOf = (dtype: DType): readonly [Scalar, Scalar] =>
  isFloat(dtype) ? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] : integerRange(dtype);

/**
 * a + weight·(b − a) for each element, all three broadcast; exactly a at weight 0 and b at 1. Weights beyond extrapolate.
 *
 * @param weight a number or a tensor
 *
 * @example
 * lerp(tensor([0, 10]), tensor([10, 20]), 0.25); // float32 [2.5, 12.5]
 *
 * @throws {DTypeError} for integers. @throws {ShapeError} where the shapes can't be broadcast together.
 */
export function lerp<A extends Operand, B extends Operand>(a: A, b: B, weight: Operand): Tensor<ResultOf<A, B>> {
  const operands = promoteOperands("lerp", [a, b, weight]);
  for (const operand of [a, b])
    if (operand instanceof Tensor && !isFloat(operand.dtype))
      throw new DTypeError("lerp", "notAFloat", `${operand.describe()} came, floats are wanted; toDType() converts`);
  return ternary("lerp", operands as unknown as [Tensor, Tensor, Tensor]) as Tensor<ResultOf<A, B>>;
}

/** Options of {@link softplus}: log(1 + e^(beta·x)) / beta. */
export interface SoftplusOptions {
  /** How sharp the bend is. Default 1. */
  beta?: number;
  /** Where beta·x is larger, x itself is the result. Default 20. */
  threshold?: number;
}

/**
 * ln(1 + exp(beta·x))/beta for each element, a smooth relu; integers become float32.
 *
 * @example
 * softplus(tensor([-1, 0, 1])); // float32 [0.31326, 0.69315, 1.3133]
 */
export function softplus<D extends DType>(
  x: Tensor<D>,
  { beta = 1, threshold = 20 }: SoftplusOptions = {},
): Tensor<FloatOf<D>> {
  x.checkAlive("softplus");
  const dtype = operandDType("softplus", x.dtype, "floats");
  // Beta keeps the precision of float32 where x has less.
  const wide = dtype === "float64" ? dtype : "float32";
  const parameters = [scalarTensor(beta, wide), scalarTensor(threshold, wide)] as const;
  return toDType(ternary("softplus", [toDType(x, wide), ...parameters]), dtype) as Tensor<FloatOf<D>>;
}
