/** Code shared by attention's two passes on the cpu backend. */
import type { OperationCall } from "../../backend/backend.ts";
import type { CpuCall, CpuOperand } from "../../backend/cpu/call.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { dropoutValues, type forwardCall } from "./primitive.ts";
import {
  type AttentionAttributes,
  type AttentionProblem,
  type InputName,
  type Operand,
  type OutputName,
  problemOf,
  type Sequence,
} from "./problem.ts";

type OperandName = InputName | OutputName;
type Values = typeof forwardCall extends CpuCall<infer V> ? V : never;

/** Calls a native pass with the operands in `names`. */
export function callNative(
  native: CpuCall<Values>,
  call: OperationCall<AttentionAttributes>,
  names: readonly OperandName[],
): void {
  const problem = problemOf(call);
  const all: Partial<Record<OperandName, Operand | undefined>> = { ...problem.inputs, ...problem.outputs };
  const operands = names.map((name) => all[name]);
  native(call.operation, { ...valuesOf(problem), ...layoutsOf(operands) }, [
    ...operands.map((operand) => operand?.tensor),
    sequencesOperand(problem.packed),
  ]);
}

function valuesOf(problem: AttentionProblem) {
  const { batch, heads, kvHeads, queries, keys, dim, valueDim, scale, softcap = 0, band, alignment } = problem;
  const { left = Infinity, right = Infinity } = band ?? {};
  return {
    dtype: problem.inputs.q.tensor.dtype,
    batch,
    heads,
    kvHeads,
    queries,
    keys,
    dim,
    valueDim,
    scale,
    softcap,
    left,
    right,
    isBottomRight: alignment === "bottom-right",
    ...dropoutValues(problem.dropout),
    isPacked: problem.packed !== undefined,
    sequences: problem.packed?.length ?? 0,
  };
}

function layoutsOf(operands: readonly (Operand | undefined)[]) {
  const each = (number: (operand: Operand) => number) => operands.map((operand) => (operand ? number(operand) : 0));
  return {
    isPresent: operands.map((operand) => operand !== undefined),
    elementBytes: each(({ tensor }) => bytesOf(tensor.dtype)),
    offsets: each(({ tensor }) => tensor.offset),
    batchStrides: each(({ batch }) => batch),
    headStrides: each(({ head }) => head),
    rowStrides: each(({ row }) => row),
    columnStrides: each(({ column }) => column),
  };
}

/** Returns the numbers of packed sequences; undefined if none are packed. */
export function sequencesOperand(packed: readonly Sequence[] | undefined): CpuOperand {
  if (!packed || packed.length === 0) return undefined;
  const numbers = packed.flatMap(({ queryStart, queries, keyStart, keys }) => [queryStart, queries, keyStart, keys]);
  return Float64Array.from(numbers);
}
