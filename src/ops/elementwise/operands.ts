import { ArgumentError } from "../../errors.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { resultType, type Scalar, scalarDType } from "../../tensor/promotion.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";

/** Brings operands to their common dtype; plain numbers become tensors without dimensions. */
export function promoteOperands(
  operation: string,
  operands: readonly (Tensor | Scalar)[],
  integers: "float" | "same" = "same",
): Tensor[] {
  const dtype = commonDType(operation, operands, integers);
  return operands.map((operand) =>
    operand instanceof Tensor ? toDType(operand, dtype) : scalarTensor(operand, dtype),
  );
}

function commonDType(operation: string, operands: readonly (Tensor | Scalar)[], integers: "float" | "same"): DType {
  const [first, second] = operands;
  const alike =
    operands.length === 2 && first instanceof Tensor && second instanceof Tensor && first.dtype === second.dtype;
  const dtype = alike
    ? first.dtype
    : resultType(
        operands.map((operand) =>
          operand instanceof Tensor
            ? { dtype: operand.dtype, priority: operand.rank > 0 ? 0 : 1 }
            : { dtype: scalarDType(checkScalar(operation, operand)), priority: 2 },
        ),
      );
  return integers === "float" && !isFloat(dtype) ? "float32" : dtype;
}

function checkScalar(operation: string, value: unknown): Scalar {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
  throw new ArgumentError(
    operation,
    "invalidOperand",
    `a tensor, a number, a bigint or a boolean is wanted, ${typeof value} came`,
  );
}

/** A plain number as a tensor without dimensions. */
export const scalarTensor = (value: Scalar, dtype: DType): Tensor => tensor(value, { dtype });
