/** Checks that a tensor's dtype matches a kernel's argument. */
import { DTypeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ScalarTypeName } from "./abi.ts";
import type { PipelineBinding } from "./pipeline.ts";
import { dataTypeName, dataTypeOf } from "./scalars.ts";

/** The dtypes that match each Metal type. */
const dtypesOf: Readonly<Record<ScalarTypeName, readonly DType[]>> = {
  float: ["float32"],
  half: ["float16"],
  bfloat: ["bfloat16"],
  bool: ["bool"],
  char: ["int8"],
  uchar: ["uint8", "bool"],
  short: [],
  ushort: ["float16", "bfloat16"], // bit patterns
  int: ["int32"],
  uint: ["uint32"],
  long: ["int64"],
  ulong: [],
};

/** Checks an argument; structs accept any dtype. @throws {DTypeError} if the element type differs. */
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
