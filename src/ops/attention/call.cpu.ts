/** What attention's calls of the cpu backend have in common: the beginning of their blocks, and their operands. */
import type { OperationCall } from "../../backend/backend.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import {
  type AttentionAttributes,
  type AttentionProblem,
  type Dropout,
  type InputName,
  type Operand,
  type OutputName,
  problemOf,
  type Sequence,
} from "./problem.ts";

type OperandName = InputName | OutputName;

/** The block, and for each operand the memory that it lies in. */
export interface NativeCall {
  readonly block: Float64Array;
  readonly bytes: readonly Uint8Array[];
}

/** @param order the operands as the native function takes them */
export function nativeCall(call: OperationCall<AttentionAttributes>, order: readonly OperandName[]): NativeCall {
  const problem = problemOf(call);
  const operands: Partial<Record<OperandName, Operand | undefined>> = { ...problem.inputs, ...problem.outputs };
  const chosen = order.map((name) => operands[name]);
  const block = Float64Array.from([...headOf(problem), ...chosen.flatMap(numbersOf)]);
  const unused = new Uint8Array(block.buffer);
  return { block, bytes: chosen.map((operand) => operand?.tensor.storage.hostBytes() ?? unused) };
}

function headOf(problem: AttentionProblem): number[] {
  const { batch, heads, kvHeads, queries, keys, dim, valueDim, scale, softcap = 0, band, alignment } = problem;
  const { left = Infinity, right = Infinity } = band ?? {};
  return [
    ...[dtypeFacts[problem.inputs.q.tensor.dtype].code, batch, heads, kvHeads, queries, keys, dim, valueDim],
    ...[scale, softcap, left, right, alignment === "bottom-right" ? 1 : 0],
    ...dropoutNumbers(problem.dropout),
    ...sequenceNumbers(problem.packed),
  ];
}

/** Two words of the key, the threshold, what is kept is multiplied with; zeros without dropout. */
export const dropoutNumbers = (dropout: Dropout | undefined): number[] =>
  dropout ? [...dropout.key, dropout.threshold, dropout.keepScale] : [0, 0, 0, 0];

/** How many are packed, and each; −1 where none are. */
export const sequenceNumbers = (packed: readonly Sequence[] | undefined): number[] =>
  packed
    ? [packed.length, ...packed.flatMap((each) => [each.queryStart, each.queries, each.keyStart, each.keys])]
    : [-1];

const numbersOf = (operand: Operand | undefined): number[] => {
  if (!operand) return [0, 0, 0, 0, 0, 0, 0];
  const { tensor, batch, head, row, column } = operand;
  return [1, dtypeFacts[tensor.dtype].bytes, tensor.offset, batch, head, row, column];
};
