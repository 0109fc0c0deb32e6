import { empty } from "../../backend/allocation.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute, executeInto } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { choice, flag, text } from "../../core/kinds.ts";
import { named } from "../../core/parameters.ts";
import {
  complexDTypes,
  type DType,
  dtypes,
  hasGradients,
  isComplex,
  isDType,
  isFloat,
  type RealDType,
} from "../../tensor/dtype.ts";
import { aDType } from "../../tensor/kinds.ts";
import type { AllocationHint } from "../../tensor/memory.ts";
import { checkShape, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Options of all functions that create tensors. */
export interface CreationOptions<D extends DType = DType> extends AllocationHint {
  dtype?: D | undefined;
  /** Whether the tensor requires a gradient: `backward()` then accumulates it in `grad`. */
  requiresGrad?: boolean | undefined;
}

/** @internal Kinds of {@link CreationOptions}. */
export const creationOptions = {
  dtype: named(aDType),
  requiresGrad: named(flag),
  storage: named(choice("shared", "private")),
  label: named(text),
} as const;

/** @internal Runs an operation without operands into a new, contiguous tensor. */
export function create<Attributes, D extends DType>(
  operation: string,
  primitive: Primitive<Attributes>,
  shape: Shape,
  dtype: D,
  attributes: Attributes,
  options: CreationOptions = {},
): Tensor<D> {
  const size = [...shape];
  const { storage, label } = options;
  let result: Tensor<D>;
  if (storage === undefined && label === undefined) {
    result = execute(primitive, [], size, dtype, attributes, operation);
  } else {
    result = empty(size, dtype, { storage, label }, operation);
    executeInto(primitive, [], [result], attributes);
  }
  if (options.requiresGrad) result.requiresGrad = true;
  return result;
}

/**
 * @internal Checks the shape and dtype of a new tensor before anything is allocated.
 * @throws {ShapeError}
 * @throws {DTypeError}
 */
export function checkCreation(operation: string, shape: Shape, dtype: DType, options: CreationOptions = {}): void {
  checkShape(operation, shape);
  checkDType(operation, dtype);
  if (options.requiresGrad && !hasGradients(dtype))
    throw new DTypeError(operation, "notAFloat", `expected a float dtype with { requiresGrad }, got ${dtype}`);
}

/** @internal Checks a dtype. @throws {DTypeError} for an unknown dtype */
export function checkDType(operation: string, dtype: DType): void {
  if (!isDType(dtype))
    throw new DTypeError(
      operation,
      "unknownDType",
      `expected dtype to be one of ${[...dtypes, ...complexDTypes].join(", ")}, got "${String(dtype)}"`,
    );
}

/** @internal Checks that a dtype is real. @throws {DTypeError} `complex` */
export function checkReal(operation: string, dtype: DType): asserts dtype is RealDType {
  if (isComplex(dtype)) throw new DTypeError(operation, "complex", `expected a real dtype, got ${dtype}`);
}

/** @internal Checks that a dtype is a float. @throws {DTypeError} */
export function checkFloat(operation: string, dtype: DType): void {
  checkDType(operation, dtype);
  if (isFloat(dtype)) return;
  throw new DTypeError(operation, "notAFloat", `expected a float dtype, got ${dtype}`);
}
