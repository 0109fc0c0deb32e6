/** Which tensors' elements a kernel's arguments may be. */
import { DTypeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ScalarTypeName } from "./abi.ts";
import type { PipelineBinding } from "./pipeline.ts";
import { dataTypeName, dataTypeOf } from "./scalars.ts";

/** The dtypes that a kernel may have under a type of Metal's. */
const dtypesOf: Readonly<Record<ScalarTypeName, readonly DType[]>> = {
  float: ["float32"],
  half: ["float16"],
  bfloat: ["bfloat16"],
  bool: ["bool"],
  char: ["int8"],
  uchar: ["uint8", "bool"],
  short: [],
  ushort: ["float16", "bfloat16"], // their bits
  int: ["int32"],
  uint: ["uint32"],
  long: ["int64"],
  ulong: [],
};

/** @throws {DTypeError} where the kernel's argument has elements of another type; a struct may be anything. */
export function checkElements(operation: string, argument: PipelineBinding, tensor: Tensor): void {
  const type = dataTypeOf(argument.dataType);
  if (type === undefined || dtypesOf[type.scalar].includes(tensor.dtype)) return;
  const expected = dtypesOf[type.scalar].join(" or ") || "a typed array";
  throw new DTypeError(
    operation,
    "dtypeMismatch",
    `argument ${argument.name}: expected ${expected} (the kernel has ${dataTypeName(type)}), got ${tensor.describe()}`,
  );
}
