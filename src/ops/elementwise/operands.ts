import type { BackendName } from "../../backend/names.ts";
import { getBackend } from "../../backend/policy.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { type DType, hasGradients, integerRange, isComplex, isFloat, isInteger } from "../../tensor/dtype.ts";
import { plainDType, resultType, type Scalar, scalarDType } from "../../tensor/promotion.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { elementwiseDType } from "../autocast/autocast.ts";
import { toDType } from "../copy/cast.ts";
import { clone } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { expand } from "../view/expand.ts";
import type { Kind } from "./types.ts";

/** Converts operands to their common dtype; plain numbers become scalar tensors. */
export function promoteOperands<const Operands extends readonly (Tensor | Scalar)[]>(
  operation: string,
  operands: Operands,
  kind: Kind = "everything",
): { -readonly [At in keyof Operands]: Tensor } {
  const dtype = operandDType(operation, commonDType(operation, operands), kind);
  const result = new Array<Tensor>(operands.length);
  for (let at = 0; at < operands.length; at++) {
    const operand = operands[at];
    if (operand instanceof Tensor) operand.checkAlive(operation);
    result[at] = operand instanceof Tensor ? toDType(operand, dtype) : scalarTensor(operand, dtype, operation);
  }
  return result as { -readonly [At in keyof Operands]: Tensor };
}

/**
 * Returns the dtype in which an operation of a kind computes. @throws {DTypeError} if the kind does not support the
 * dtype.
 */
export function operandDType(operation: string, given: DType, kind: Kind): DType {
  const dtype = elementwiseDType(operation, given);
  if (kind === "everything") return dtype;
  if (kind === "floats") return hasGradients(dtype) ? dtype : "float32";
  if (
    !(
      (isComplex(dtype) && kind !== "numbers") ||
      (isFloat(dtype) && kind !== "numbers") ||
      (dtype === "bool" && kind !== "bits")
    )
  )
    return dtype;
  const expected = { numbers: "floats or integers", bits: "integers or bools", integers: "integers" }[kind];
  throw new DTypeError(operation, "notDefined", `expected ${expected}, got ${dtype}; convert with toDType()`);
}

/** Checks operands of a difference. @throws {DTypeError} for bools @throws {DisposedError} */
export function checkNoBools(operation: string, operands: Readonly<Record<string, Tensor | Scalar>>): void {
  for (const [name, value] of Object.entries(operands))
    if (isBool(value))
      throw new DTypeError(
        operation,
        "notDefined",
        `expected floats or integers, got ${typeof value === "boolean" ? value : "bool"} for ${name}; ` +
          (typeof value === "boolean" ? "pass 0 or 1" : `convert with toDType(${name}, "float32")`),
      );
}

/** Tests whether an operand is a boolean or a tensor of bools. */
export const isBool = (operand: unknown): boolean =>
  Tensor.isTensor(operand) ? operand.dtype === "bool" : typeof operand === "boolean";

/** Returns the common dtype of operands, like `torch.result_type`. */
export function commonDType(operation: string, operands: readonly (Tensor | Scalar)[]): DType {
  const [first, second] = operands;
  if (operands.length === 2 && first instanceof Tensor) {
    if (
      second instanceof Tensor ? first.dtype === second.dtype : typeof second === "number" && hasGradients(first.dtype)
    )
      return first.dtype;
  }
  if (!operands.some(Tensor.isTensor)) return plainDType(operands.map((operand) => checkScalar(operation, operand)));
  return resultType(
    operands.map((operand) =>
      operand instanceof Tensor
        ? { dtype: operand.dtype, priority: operand.rank > 0 ? 0 : 1 }
        : { dtype: scalarDType(checkScalar(operation, operand)), priority: 2 },
    ),
  );
}

function checkScalar(operation: string, value: unknown): Scalar {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
  throw new ArgumentError(
    operation,
    "invalidOperand",
    `expected a tensor, a number, a bigint or a boolean, got ${typeof value}`,
  );
}

/** Tests whether a value is a tensor or a plain number. */
export const isOperand = (value: unknown): value is Tensor | Scalar =>
  Tensor.isTensor(value) || typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";

const MOST_SCALARS = 512;
const scalars: Record<BackendName, Partial<Record<DType, Map<Scalar, Tensor>>>> = { metal: {}, cpu: {}, reference: {} };

/**
 * Returns a plain number as a scalar tensor. All calls with the same number share one tensor, so results must never
 * share its memory.
 *
 * @throws {DTypeError} if an integer dtype can't represent the number.
 */
export function scalarTensor(value: Scalar, dtype: DType, operation = "scalar"): Tensor {
  const kind = typeof value === "boolean" ? Number(value) : value;
  if (Object.is(kind, -0)) return tensor(kind, { dtype }); // a Map does not distinguish -0 from 0
  const byDType = scalars[getBackend()];
  let known = byDType[dtype];
  if (known === undefined || known.size >= MOST_SCALARS) {
    known = new Map();
    byDType[dtype] = known;
  }
  let result = known.get(kind);
  if (result === undefined || result.storage.isClosed) {
    result = keep(tensor(fitting(kind, dtype, operation), { dtype }));
    known.set(kind, result);
  }
  return result;
}

/** Like {@link scalarTensor}, but truncates a fraction for an integer dtype. */
export const truncatedScalar = (value: Scalar, dtype: DType, operation: string): Tensor =>
  scalarTensor(typeof value === "number" && isInteger(dtype) ? Math.trunc(value) : value, dtype, operation);

function fitting(value: number | bigint, dtype: DType, operation: string): number | bigint {
  if (hasGradients(dtype)) return Number(value);
  if (dtype === "bool") return value ? 1 : 0;
  const [least, most] = integerRange(dtype);
  if ((typeof value === "bigint" || Number.isInteger(value)) && value >= least && value <= most) return value;
  throw new DTypeError(
    operation,
    "doesNotFit",
    `the number ${value} does not fit a tensor of ${dtype}, which holds whole numbers from ${least} to ${most}; ` +
      "convert the tensor first",
  );
}

/** Returns zeros of a tensor's shape and dtype: the gradient of step functions. */
export const zerosLike = (x: Tensor): Tensor => clone(expand(scalarTensor(0, x.dtype), x.shape));
