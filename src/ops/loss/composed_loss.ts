/** Losses composed of other operations. */
import { checkElements, underName } from "../../backend/dispatch.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { accumulationDType, isFloat } from "../../tensor/dtype.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { checkFloats, type LossReduction } from "./options.ts";
import { reduced } from "./reduced.ts";

/** The name and the reduction of a composed loss. */
export interface ComposedLoss {
  readonly operation: string;
  readonly reduction: LossReduction;
}

/** The operands of a loss that may have factors. */
export type Weighted = readonly [x: Tensor, target: Tensor, ...weight: Tensor[]];

/** A formula with a parameter for each operand. */
export type LossFormula<Operands extends readonly (Tensor | undefined)[]> = (
  ...operands: ParametersOf<Operands>
) => Tensor;
type ParametersOf<Operands extends readonly (Tensor | undefined)[]> = { -readonly [At in keyof Operands]: Tensor };

/**
 * Computes `formula` in the accumulation dtype, reduces its losses, and rounds once to the dtype of the first operand.
 * Operands of other dtypes are passed unchanged.
 */
export function composedLoss<const Operands extends readonly [Tensor, ...Tensor[]]>(
  { operation, reduction }: ComposedLoss,
  operands: Operands,
  formula: LossFormula<Operands>,
): Tensor {
  const { dtype } = operands[0];
  checkElements(operation, operands);
  return underName(operation, () =>
    tidy(() => {
      const wide = operands.map((each) => (each.dtype === dtype ? toDType(each, accumulationDType(dtype)) : each));
      return toDType(reduced(formula(...(wide as ParametersOf<Operands>)), reduction), dtype);
    }),
  );
}

/**
 * Computes `formula` in the dtypes of the operands and reduces its losses, as PyTorch does for
 * integers, which wrap around, and for operands of several dtypes.
 *
 * @throws {DTypeError} for the mean of integers
 */
export function plainLoss<const Operands extends readonly [Tensor, ...Tensor[]]>(
  { operation, reduction }: ComposedLoss,
  operands: Operands,
  formula: LossFormula<Operands>,
): Tensor {
  checkElements(operation, operands);
  return underName(operation, () =>
    tidy(() => {
      const losses = formula(...(operands as ParametersOf<Operands>));
      if (reduction === "mean" && !isFloat(losses.dtype))
        throw new DTypeError(
          operation,
          "notAFloat",
          `expected floats for the mean, got losses of ${losses.dtype}; convert x with toDType(x, "float32")`,
        );
      return reduced(losses, reduction);
    }),
  );
}

/**
 * Checks for floats of one dtype whose shapes broadcast. @throws {ShapeError} @throws {DTypeError}
 * @throws {DisposedError}
 */
export function checkBroadcast(operation: string, operands: Readonly<Record<string, Tensor>>): void {
  const [[firstName, first], ...others] = Object.entries(operands) as [[string, Tensor], ...[string, Tensor][]];
  checkFloats(operation, firstName, first);
  for (const [name, operand] of others) {
    operand.checkAlive(operation);
    if (operand.dtype !== first.dtype)
      throw new DTypeError(
        operation,
        "dtypesDiffer",
        `expected ${name} to have the dtype of ${firstName}, ${first.dtype}, got ${operand.dtype}; ` +
          `convert it with toDType(${name}, "${first.dtype}")`,
      );
  }
  broadcastShapes(operation, ...Object.values(operands).map(({ shape }) => shape));
}

/** Checks that scores are [classes] or [batch, classes]. @throws {ShapeError} @throws {DTypeError} */
export function checkScores(operation: string, x: Tensor): void {
  checkFloats(operation, "x", x);
  if (x.rank < 1 || x.rank > 2)
    throw new ShapeError(operation, "wrongRank", `expected x to be [classes] or [batch, classes], got ${x.describe()}`);
}
