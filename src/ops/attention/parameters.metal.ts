/** `Attention` of `kernels/attention/problem.h` as bytes, and the function constants that go with it. */
import { startOf } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { AttentionProblem, Operand } from "./problem.ts";

/** The operands of the struct, in its order. */
const operandNames = [
  "q",
  "k",
  "v",
  "mask",
  "bias",
  "sinks",
  "slopes",
  "out",
  "logSumExp",
  "gradOut",
  "gradLogSumExp",
  "gradQ",
  "gradK",
  "gradV",
  "gradBias",
  "gradSinks",
] as const;
export type OperandName = (typeof operandNames)[number];

/** A call with its operands by name, whether they come in or go out. */
export interface Call extends AttentionProblem {
  readonly operands: Partial<Readonly<Record<OperandName, Operand>>>;
  /** The numbers of packed sequences. */
  readonly sequences: Tensor | undefined;
}

export const callOf = (problem: AttentionProblem): Call => {
  const { sequences, ...inputs } = problem.inputs;
  return { ...problem, operands: { ...inputs, ...problem.outputs } as Call["operands"], sequences: sequences?.tensor };
};

/** How the keys of the vector path are cut. */
export interface Parts {
  readonly parts: number;
  readonly partKeys: number;
}

const OPERAND_WORDS = 5;
const SIZE_WORDS = 15;
const NUMBER_WORDS = 3; // of 64 bits: 3 floats and 3 words of 32 bits
const LARGEST_DISTANCE = 2 ** 31 - 1;

export function parametersOf(call: Call, { parts, partKeys }: Parts = { parts: 1, partKeys: call.keys }): Uint8Array {
  const operandWords = operandNames.length * OPERAND_WORDS;
  const words = new BigInt64Array(operandWords + SIZE_WORDS + NUMBER_WORDS);
  for (const [index, name] of operandNames.entries()) {
    const operand = call.operands[name];
    if (operand) words.set(placeOf(operand), index * OPERAND_WORDS);
  }
  const { batch, heads, group, queries, keys, band, alignment } = call;
  const reach = (distance = Infinity) => Math.min(distance, LARGEST_DISTANCE);
  const sizes = [
    batch,
    heads,
    group,
    queries,
    keys,
    reach(band?.left),
    reach(band?.right),
    +(alignment === "bottom-right"),
  ];
  words.set([...sizes, call.packed?.length ?? 0, parts, partKeys, ...biasSizes(call)].map(BigInt), operandWords);
  writeNumbers(words.buffer, (operandWords + SIZE_WORDS) * 8, call);
  return new Uint8Array(words.buffer);
}

const placeOf = ({ tensor, batch, head, row, column }: Operand): bigint[] =>
  [startOf(tensor), batch, head, row, column].map(BigInt);

/** The bias's own sizes on the axes [B, H, M, N]: 1 where it is broadcast. */
function biasSizes({ operands: { bias } }: Call): number[] {
  const shape = bias?.tensor.shape ?? [];
  return [...new Array<number>(4 - shape.length).fill(1), ...shape];
}

function writeNumbers(buffer: ArrayBuffer, at: number, { scale, softcap, dropout }: Call): void {
  new Float32Array(buffer, at, 3).set([scale, softcap ?? 0, dropout?.keepScale ?? 1]);
  new Uint32Array(buffer, at + 12, 3).set([dropout?.threshold ?? 0, ...(dropout?.key ?? [])]);
}

/** The bits of the function constant OPTIONS, in their order: what a call has. */
const options: readonly ((call: Call) => boolean)[] = [
  ({ operands }) => operands.mask !== undefined,
  ({ operands }) => operands.bias !== undefined,
  ({ operands }) => operands.sinks !== undefined,
  ({ operands }) => operands.slopes !== undefined,
  ({ softcap }) => softcap !== undefined,
  ({ band }) => band !== undefined,
  ({ dropout }) => dropout !== undefined,
  ({ packed }) => packed !== undefined,
  ({ operands }) => operands.gradLogSumExp !== undefined,
];

/** The function constants OPTIONS, VALUE_DIM and DIM. `streamed`: the operands whose tiles a kernel goes through. */
export function constantsOf(call: Call, streamed: readonly OperandName[] = []): number[] {
  const bits = [...options.map((has) => has(call)), streamed.every((name) => canReadByFours(call.operands[name]!))];
  return [bits.reduce((sum, bit, index) => sum + (bit ? 1 << index : 0), 0), call.valueDim, call.dim];
}

/** Whether rows are runs in memory, and each starts at a multiple of 4 elements: a vector load needs its own alignment. */
const canReadByFours = ({ tensor, batch, head, row, column }: Operand): boolean =>
  column === 1 && [tensor.offset, batch, head, row].every((elements) => elements % 4 === 0);
