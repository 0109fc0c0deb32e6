/** Addition of scaled products and quotients. */
import { needsGradient } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType, hasGradients, isComplex, isFloat } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, neg } from "./arithmetic.ts";
import { defineTernary, type Ternary } from "./define.ts";
import { div } from "./division.ts";
import { promoteOperands } from "./operands.ts";
import type { Operand, ResultOf } from "./types.ts";

/** Options of {@link addcmul} and {@link addcdiv}. */
export interface ScaledOptions {
  /** Factor of the product or quotient. Default 1. */
  value?: number | undefined;
}

const three = {
  x: operand(tensorOrScalar),
  a: operand(tensorOrScalar),
  b: operand(tensorOrScalar),
  value: named(someNumber, 1),
} as const;

/**
 * Computes x + value · a · b for each element, with broadcasting.
 *
 * @example
 * addcmul(tensor([1, 1]), tensor([2, 3]), tensor([4, 5]), { value: 10 }); // float32 [81, 151]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together. @throws {DTypeError} for bools, and if operands are
 * integers but `value` is not.
 */
export function addcmul<X extends Operand, A extends Operand>(
  x: X,
  a: A,
  b: Operand,
  options?: ScaledOptions,
): Tensor<ResultOf<X, A>>;
export function addcmul(...values: unknown[]): Tensor {
  const { x, a, b, value } = addcmulParameters(values);
  return scaled("addcmul", [x, a, b], value, { combine: mul, added: addProduct });
}
addcmul.method = "promoted" as const;
const addcmulParameters = parameters("addcmul", three);

/**
 * Computes x + value · a / b for each element, with broadcasting.
 *
 * @example
 * addcdiv(tensor([1, 1]), tensor([2, 3]), tensor([4, 5]), { value: 10 }); // float32 [6, 7]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together. @throws {DTypeError} if no tensor among a and b is a
 * float.
 */
export function addcdiv<X extends Operand, A extends Operand>(
  x: X,
  a: A,
  b: Operand,
  options?: ScaledOptions,
): Tensor<ResultOf<X, A>>;
export function addcdiv(...values: unknown[]): Tensor {
  const { x, a, b, value } = addcdivParameters(values);
  const factors = [a, b].filter((factor) => factor instanceof Tensor);
  if (factors.length > 0 && !factors.some(({ dtype }) => hasGradients(dtype)))
    throw new DTypeError(
      "addcdiv",
      "notAFloat",
      `expected floats, got ${factors[0].describe()}; convert with toDType()`,
    );
  return scaled("addcdiv", [x, a, b], value, { combine: div, added: addQuotient });
}
addcdiv.method = "promoted" as const;
const addcdivParameters = parameters("addcdiv", three);

const addProduct: Ternary = defineTernary("addcmul", {
  reference: { float: (x, a, b) => x + a * b },
  gradient: (g, [, a, b], needs) => [g, needs[1] ? mul(g, b) : null, needs[2] ? mul(g, a) : null],
});

const addQuotient: Ternary = defineTernary("addcdiv", {
  reference: { float: (x, a, b) => x + a / b },
  gradient(g, [, a, b], needs) {
    const part = needs[1] || needs[2] ? div(g, b) : null;
    return [g, part, needs[2] ? neg(mul(part!, div(a, b))) : null];
  },
});

interface Combination {
  readonly combine: (a: Tensor, b: Tensor) => Tensor;
  /** x + combine(a, b) in one pass, for floats. */
  readonly added: Ternary;
}

/** Computes floats in the accumulation dtype and rounds once. */
function scaled(
  operation: string,
  operands: readonly Operand[],
  value: number,
  { combine, added }: Combination,
): Tensor {
  broadcastShapes(operation, ...operands.map((each) => (each instanceof Tensor ? each.shape : [])));
  return underName(operation, () =>
    tidy(() => {
      const promoted = promoteOperands(operation, operands, "numbers");
      const { dtype } = promoted[0];
      if (!hasGradients(dtype) && !Number.isInteger(value))
        throw new DTypeError(operation, "doesNotFit", `expected an integer value for ${dtype}, got ${value}`);
      if (hasOnePass(promoted, value)) {
        const [x, a, b] = tupleOf(promoted, 3);
        return added([x, value === 1 ? a : mul(a, value), b]);
      }
      const wide = isFloat(dtype) ? accumulationDType(dtype) : dtype;
      const [x, a, b] = tupleOf(
        promoted.map((each) => toDType(each, wide)),
        3,
      );
      const combined = combine(a, b);
      return toDType(add(x, value === 1 ? combined : mul(combined, value)), dtype);
    }),
  );
}

/** 16-bit floats with a factor or a gradient need intermediate results in float32. */
function hasOnePass(operands: readonly Tensor[], value: number): boolean {
  const { dtype } = operands[0];
  if (dtype === "float32" || dtype === "float64" || isComplex(dtype)) return true;
  return isFloat(dtype) && value === 1 && !needsGradient(...operands);
}
