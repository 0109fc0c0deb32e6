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
  const operands = names.map((name) => problem.inputs[name as InputName] ?? problem.outputs[name as OutputName]);
  const tensors: CpuOperand[] = operands.map((operand) => operand?.tensor);
  tensors.push(sequencesOperand(problem.packed));
  native(call.operation, valuesOf(problem, operands), tensors);
}

/** Returns the values of a call's block, in one literal: spreading parts of it would take as long as a small call. */
function valuesOf(problem: AttentionProblem, operands: readonly (Operand | undefined)[]): Values {
  const { band, dropout, packed } = problem;
  const { key, threshold, keepScale } = dropoutValues(dropout);
  const zeros = (): number[] => new Array<number>(operands.length).fill(0);
  const values = {
    dtype: problem.inputs.q.tensor.dtype,
    batch: problem.batch,
    heads: problem.heads,
    kvHeads: problem.kvHeads,
    queries: problem.queries,
    keys: problem.keys,
    dim: problem.dim,
    valueDim: problem.valueDim,
    scale: problem.scale,
    softcap: problem.softcap ?? 0,
    left: band?.left ?? Infinity,
    right: band?.right ?? Infinity,
    isBottomRight: problem.alignment === "bottom-right",
    key,
    threshold,
    keepScale,
    isPacked: packed !== undefined,
    sequences: packed?.length ?? 0,
    isPresent: operands.map((operand) => operand !== undefined),
    elementBytes: zeros(),
    offsets: zeros(),
    batchStrides: zeros(),
    headStrides: zeros(),
    rowStrides: zeros(),
    columnStrides: zeros(),
  };
  for (let at = 0; at < operands.length; at++) {
    const operand = operands[at];
    if (operand === undefined) continue;
    const { tensor, batch, head, row, column } = operand;
    values.elementBytes[at] = bytesOf(tensor.dtype);
    values.offsets[at] = tensor.offset;
    values.batchStrides[at] = batch;
    values.headStrides[at] = head;
    values.rowStrides[at] = row;
    values.columnStrides[at] = column;
  }
  return values;
}

/** Returns the numbers of packed sequences; undefined if none are packed. */
export function sequencesOperand(packed: readonly Sequence[] | undefined): CpuOperand {
  if (!packed || packed.length === 0) return undefined;
  const numbers = packed.flatMap(({ queryStart, queries, keyStart, keys }) => [queryStart, queries, keyStart, keys]);
  return Float64Array.from(numbers);
}
