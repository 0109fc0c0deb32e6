/** The dtypes of safetensors files: https://github.com/huggingface/safetensors, `Dtype` in `tensor.rs`. */
import type { DType } from "../../tensor/dtype.ts";

interface FileDType {
  /** The size of an element; below 8, several elements share a byte. */
  readonly bits: number;
  /** The tensor dtype; null if tensors do not support it. */
  readonly dtype: DType | null;
}

/** The dtypes, in the order in which the reference implementation writes tensors: widest first, so each is aligned. */
export const fileDTypes = {
  U64: { bits: 64, dtype: null },
  I64: { bits: 64, dtype: "int64" },
  F64: { bits: 64, dtype: "float64" },
  C64: { bits: 64, dtype: "complex64" },
  F32: { bits: 32, dtype: "float32" },
  U32: { bits: 32, dtype: "uint32" },
  I32: { bits: 32, dtype: "int32" },
  BF16: { bits: 16, dtype: "bfloat16" },
  F16: { bits: 16, dtype: "float16" },
  U16: { bits: 16, dtype: null },
  I16: { bits: 16, dtype: null },
  F8_E5M2FNUZ: { bits: 8, dtype: null },
  F8_E4M3FNUZ: { bits: 8, dtype: null },
  F8_E8M0: { bits: 8, dtype: null },
  F8_E4M3: { bits: 8, dtype: null },
  F8_E5M2: { bits: 8, dtype: null },
  I8: { bits: 8, dtype: "int8" },
  U8: { bits: 8, dtype: "uint8" },
  F6_E3M2: { bits: 6, dtype: null },
  F6_E2M3: { bits: 6, dtype: null },
  F4: { bits: 4, dtype: null },
  BOOL: { bits: 8, dtype: "bool" },
} as const satisfies Record<string, FileDType>;

/** The name of a dtype in the format. */
export type FileDTypeName = keyof typeof fileDTypes;

const entries = Object.entries(fileDTypes) as [FileDTypeName, FileDType][];

const namesByDType = new Map(entries.map(([name, { dtype }], order) => [dtype, { name, order }]));

/** Returns the name of a tensor dtype in files, and its rank in the order of writing; undefined for complex128. */
export function fileDTypeOf(dtype: DType): { readonly name: FileDTypeName; readonly order: number } | undefined {
  return namesByDType.get(dtype);
}

/** Returns the dtype of a name; undefined if the format has no such name. */
export const fileDType = (name: string): FileDType | undefined =>
  Object.hasOwn(fileDTypes, name) ? fileDTypes[name as FileDTypeName] : undefined;

/** The names of the dtypes that tensors support, for error messages. */
export const supportedNames: string = entries
  .filter(([, { dtype }]) => dtype !== null)
  .map(([name]) => name)
  .join(", ");
