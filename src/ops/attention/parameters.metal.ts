/** Parameters and function constants of attention's Metal kernels. */
import { startOf } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type AttentionOption, attentionOptions, attentionParameters, dropoutValues } from "./primitive.ts";
import {
  type AttentionProblem,
  type InputName,
  inputNames,
  type Operand,
  type OutputName,
  outputNames,
} from "./problem.ts";

/** The operands in the parameter struct: all but the list of sequences. */
export type OperandName = Exclude<InputName | OutputName, "sequences">;
const operandNames = [...new Set([...inputNames, ...outputNames])].filter((name) => name !== "sequences");

/** A call with its inputs and outputs in one record. */
export interface Call extends AttentionProblem {
  readonly operands: Partial<Readonly<Record<OperandName, Operand>>>;
  /** The numbers of packed sequences. */
  readonly sequences: Tensor | undefined;
  /**
   * Bound in place of an absent operand, which the kernel does not access. It is float32: a buffer must start at a
   * multiple of its element size, and no element is larger.
   */
  readonly standIn: Tensor;
}

export function callOf(problem: AttentionProblem, standIn: Tensor): Call {
  const { sequences, ...inputs } = problem.inputs;
  const operands = { ...inputs, ...problem.outputs } as Call["operands"];
  return { ...problem, operands, sequences: sequences?.tensor, standIn };
}

/** How the vector path splits keys. */
export interface Parts {
  readonly parts: number;
  readonly partKeys: number;
}

const LARGEST_DISTANCE = 2 ** 31 - 1;

export function parametersOf(call: Call, cut: Parts = { parts: 1, partKeys: call.keys }): Uint8Array {
  const { batch, heads, group, queries, keys, scale, softcap = 0, band, alignment, dropout, packed } = call;
  const distance = (bound = Infinity) => Math.min(bound, LARGEST_DISTANCE);
  const layouts: Partial<Record<OperandName, ReturnType<typeof layoutOf>>> = {};
  for (const name of operandNames) layouts[name] = layoutOf(call.operands[name]);
  return attentionParameters.bytes({
    ...(layouts as Required<typeof layouts>),
    batch,
    heads,
    group,
    queries,
    keys,
    scale,
    softcap,
    isBottomRight: alignment === "bottom-right",
    ...dropoutValues(dropout),
    left: distance(band?.left),
    right: distance(band?.right),
    sequences: packed?.length ?? 0,
    ...cut,
    biasSizes: biasSizes(call),
  });
}

const absent = { start: 0, batch: 0, head: 0, row: 0, column: 0 };
const layoutOf = (operand: Operand | undefined) => {
  if (!operand) return absent;
  const { tensor, batch, head, row, column } = operand;
  return { start: startOf(tensor), batch, head, row, column };
};

/** Returns the bias's sizes on the axes [B, H, M, N]: 1 on broadcast axes. */
function biasSizes({ operands: { bias } }: Call): number[] {
  const shape = bias?.tensor.shape ?? [];
  return [...new Array<number>(4 - shape.length).fill(1), ...shape];
}

/** Tests whether a call has each option. */
const options: Readonly<Record<Exclude<AttentionOption, "quads">, (call: Call) => boolean>> = {
  mask: ({ operands }) => operands.mask !== undefined,
  bias: ({ operands }) => operands.bias !== undefined,
  sinks: ({ operands }) => operands.sinks !== undefined,
  slopes: ({ operands }) => operands.slopes !== undefined,
  softcap: ({ softcap }) => softcap !== undefined,
  band: ({ band }) => band !== undefined,
  dropout: ({ dropout }) => dropout !== undefined,
  packed: ({ packed }) => packed !== undefined,
  gradLogSumExp: ({ operands }) => operands.gradLogSumExp !== undefined,
  logSumExp: ({ operands }) => operands.logSumExp !== undefined,
};

/**
 * Returns the function constants OPTIONS, VALUE_DIM and DIM. `streamed` names the operands whose tiles the kernel
 * iterates over.
 */
export function constantsOf(call: Call, streamed: readonly OperandName[] = []): number[] {
  const readsQuads = streamed.every((name) => canReadByFours(call.operands[name]!));
  const has = (name: AttentionOption) => (name === "quads" ? readsQuads : options[name](call));
  const bits = attentionOptions.names.filter(has).map((name) => 1 << attentionOptions.ordinal(name));
  return [bits.reduce((sum, bit) => sum + bit, 0), call.valueDim, call.dim];
}

/** Tests whether rows are contiguous and each starts at a multiple of 4 elements, as aligned vector loads require. */
const canReadByFours = ({ tensor, batch, head, row, column }: Operand): boolean =>
  column === 1 && [tensor.offset, batch, head, row].every((elements) => elements % 4 === 0);
