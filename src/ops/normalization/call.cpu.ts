/** What both calls of the cpu backend have in common: the beginning of their blocks. */
import { bytesOf, dtypeFacts } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type NormalizationProblem, rowsOf } from "./problem.ts";

/** Operands of the shape of x that a native function takes. */
const ROW_OPERANDS = 3;

type Optional = Tensor | undefined;

/** @param operands of the shape of x, as the native function takes them */
export function headOf(
  { inputs: { x }, isCentred, eps, length, vectorDType }: NormalizationProblem,
  operands: readonly Optional[],
): number[] {
  const slots = Array.from({ length: ROW_OPERANDS }, (_, at) => operands[at]);
  const { shape, strides, along, offsets } = rowsOf(slots.map((operand) => operand ?? x));
  return [
    ...[dtypeFacts[x.dtype].code, dtypeFacts[vectorDType].code, isCentred ? 1 : 0, eps, length],
    ...[shape.length, ...shape, ...strides.flat()],
    ...slots.flatMap((operand, at) => [operand ? 1 : 0, offsets[at]!, along[at]!]),
  ];
}

/** Of weight or bias. */
export const vectorOf = (vector: Optional): number[] => (vector ? [1, vector.offset, vector.strides[0]!] : [0, 0, 0]);

export const presence = (tensors: readonly Optional[]): number[] => tensors.map((tensor) => (tensor ? 1 : 0));

const unused = new Uint8Array(bytesOf("float64"));

/** The memory of an operand, or any where there is none. */
export const bytesFor = (tensor: Optional): Uint8Array => tensor?.storage.hostBytes() ?? unused;
