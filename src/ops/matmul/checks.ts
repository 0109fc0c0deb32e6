/** Checks of the operands of matrix products. */

import { DTypeError, ShapeError } from "../../core/errors.ts";
import { operand } from "../../core/parameters.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The parameters of most products: two tensors. */
export const factors = { a: operand(aTensor), b: operand(aTensor) } as const;

/**
 * Checks that inner sizes are equal, and {@link checkSameDType}.
 * @throws {DTypeError}
 * @throws {ShapeError} with a hint how to fix it.
 */
export function checkFactors(operation: string, a: Tensor, b: Tensor): void {
  checkSameDType(operation, [a, b]);
  const inner = plainList(b.shape).at(b.rank === 1 ? -1 : -2);
  if (a.rank > 0 && b.rank > 0 && plainList(a.shape).at(-1) === inner) return;
  const innerAxis = b.rank === 1 ? "the second" : "the axis before the last of the second";
  const why =
    a.rank === 0 || b.rank === 0
      ? "both need at least one axis; mul(a, b) multiplies by a scalar"
      : `the last axis of the first has ${a.shape.at(-1)} elements, ${innerAxis} ${inner}; they must be equal`;
  throw new ShapeError(operation, "shapesDiffer", `${a.describe()} times ${b.describe()}: ${why}`);
}

/** Checks that dtypes are equal. @throws {DTypeError} if dtypes differ or are bool. */
export function checkSameDType(operation: string, operands: readonly Tensor[]): void {
  for (const operand of operands) operand.checkAlive(operation);
  const [first] = operands;
  if (operands.some(({ dtype }) => dtype !== first.dtype))
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected operands of one dtype, got ${namesOf(operands)}: cast with toDType(x, dtype)`,
    );
  if (first?.dtype === "bool")
    throw new DTypeError(
      operation,
      "unsupportedDType",
      `expected numbers, got ${namesOf(operands)}; bool has no product: cast with toDType(x, "int32")`,
    );
}

const namesOf = (operands: readonly Tensor[]): string => operands.map((operand) => operand.describe()).join(" and ");

/** Checks the ranks of operands. @throws {ShapeError} if an operand's rank is not `rank`. */
export function checkRanks(operation: string, rank: number, expected: string, operands: readonly Tensor[]): void {
  for (const operand of operands) operand.checkAlive(operation);
  if (operands.every((operand) => operand.rank === rank)) return;
  throw new ShapeError(operation, "wrongRank", `expected ${expected}, got ${namesOf(operands)}`);
}
