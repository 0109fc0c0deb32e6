import { underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { type ComplexDType, isComplex } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { commonDType, promoteOperands } from "./operands.ts";
import { pow } from "./power.ts";
import type { Operand } from "./types.ts";

/**
 * Computes aᵇ for each pair of elements in float64, with broadcasting. Metal does not support float64, so it runs on
 * the cpu.
 *
 * @example
 * floatPower(tensor([2, 9], { dtype: "int32" }), 0.5); // float64 [1.41421356, 3]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function floatPower(a: Tensor<ComplexDType>, b: Operand): Tensor<"complex128">;
export function floatPower(a: Operand, b: Operand): Tensor<"float64">;
export function floatPower(...values: unknown[]): Tensor {
  const { a, b } = floatPowerParameters(values);
  commonDType("floatPower", [a, b]);
  broadcastShapes("floatPower", ...[a, b].map((each) => (each instanceof Tensor ? each.shape : [])));
  return underName("floatPower", () => tidy(() => pow(wide(a), wide(b))));
}
floatPower.method = "declared" as const;
const floatPowerParameters = parameters("floatPower", { a: operand(tensorOrScalar), b: operand(tensorOrScalar) });

function wide(given: Operand): Tensor {
  const [x] = promoteOperands("floatPower", [given]);
  return toDType(x, isComplex(x.dtype) ? "complex128" : "float64");
}
