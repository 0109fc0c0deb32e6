/** Parameters of attention's kernels. `problem.ts` defines what each primitive computes. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, real, whole, wideWord, word } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Dropout, InputName, OutputName } from "./problem.ts";

/** Dropout's key, threshold (0: no dropout) and factor. */
const dropoutFields = { key: array(word, 2), threshold: word, keepScale: real };

const fields = {
  batch: whole,
  heads: whole,
  queries: whole,
  keys: whole,
  scale: real,
  softcap: real,
  isBottomRight: flag,
  ...dropoutFields,
};

const noDropout = { key: [0, 0], threshold: 0, keepScale: 1 };

/** Returns the values of {@link dropoutFields} for a call. */
export function dropoutValues(dropout: Dropout | undefined) {
  if (dropout === undefined) return noDropout;
  const { key, threshold, keepScale } = dropout;
  return { key: [key[0], key[1]], threshold, keepScale };
}

// ---------------------------------------------------------------- metal

/** Options of a call, each a bit of a function constant: kernels are compiled without the code of absent options. */
export const attentionOptions = enumeration("AttentionOption", [
  "mask",
  "bias",
  "sinks",
  "slopes",
  "softcap",
  "band",
  "dropout",
  "packed",
  "gradLogSumExp",
  /** Written by the forward pass if a gradient or the caller needs it. */
  "logSumExp",
  /** Rows of q, k, v and gradOut are contiguous and start at multiples of 4 elements. */
  "quads",
]);
export type AttentionOption = NameOf<typeof attentionOptions>;

const operand = struct("AttentionOperand", {
  start: whole,
  batch: whole,
  head: whole,
  row: whole,
  column: whole,
});

/**
 * `parts` is the number of parts into which the vector path splits keys; `biasSizes` is the bias's shape before
 * broadcasting.
 */
export const attentionParameters = struct("Attention", {
  q: operand,
  k: operand,
  v: operand,
  mask: operand,
  bias: operand,
  sinks: operand,
  slopes: operand,
  out: operand,
  logSumExp: operand,
  logSumExpLow: operand,
  gradOut: operand,
  gradLogSumExp: operand,
  gradQ: operand,
  gradK: operand,
  gradV: operand,
  gradBias: operand,
  gradSinks: operand,
  ...fields,
  group: whole,
  left: whole,
  right: whole,
  sequences: whole,
  parts: whole,
  partKeys: whole,
  biasSizes: array(whole, 4),
});

/** The largest head dimension that the kernels support. */
export const LARGEST_WIDTH = 256;

/** The rotation and the destinations of the new tokens of a decoding step. `row` is the stride of tokens. */
export const stepParameters = struct("AttentionStep", {
  q: operand,
  k: operand,
  v: operand,
  rotated: operand,
  keys: operand,
  values: operand,
  heads: whole,
  kvHeads: whole,
  tokens: whole,
  dim: whole,
  valueDim: whole,
  position: whole,
  pairs: whole,
  step: whole,
  second: whole,
  magnitude: real,
  phases: array(wideWord, LARGEST_WIDTH / 2),
});

export const dropoutMaskParameters = struct("DropoutMask", {
  heads: whole,
  queries: whole,
  keys: whole,
  ...dropoutFields,
  sequences: whole,
  start: whole,
  strides: array(whole, 4),
});

// ---------------------------------------------------------------- cpu

/** The operands of the forward pass, in the order of its call. */
export const forwardOperands = [
  ...(["q", "k", "v", "mask", "bias", "sinks", "slopes", "out", "logSumExp", "logSumExpLow"] as const),
] as const satisfies readonly (InputName | OutputName)[];

export const backwardOperands = [
  ...forwardOperands,
  ...(["gradOut", "gradLogSumExp", "gradQ", "gradK", "gradV", "gradBias", "gradSinks"] as const),
] as const satisfies readonly (InputName | OutputName)[];

/** Returns the fields of a pass with `operands` operands; `left` and `right` are infinite if the band has no bound. */
const passFields = (operands: number) => ({
  dtype,
  ...fields,
  kvHeads: whole,
  dim: whole,
  valueDim: whole,
  left: real,
  right: real,
  isPacked: flag,
  sequences: whole,
  isPresent: array(flag, operands),
  elementBytes: array(whole, operands),
  offsets: array(whole, operands),
  batchStrides: array(whole, operands),
  headStrides: array(whole, operands),
  rowStrides: array(whole, operands),
  columnStrides: array(whole, operands),
});

/** The last operand of each call holds the packed sequences, four numbers each. */
export const forwardCall = cpuCall("attentionForward", () => passFields(forwardOperands.length), [
  ...forwardOperands,
  "sequences",
]);
export const backwardCall = cpuCall("attentionBackward", () => passFields(backwardOperands.length), [
  ...backwardOperands,
  "sequences",
]);

/** The most rooms that the sequences of a step may use. */
export const MOST_ROOMS = 11;

const stepFields = {
  dtype,
  roomDtype: dtype,
  isPacked: flag,
  sequences: whole,
  tokens: whole,
  heads: whole,
  kvHeads: whole,
  dim: whole,
  valueDim: whole,
  scale: real,
  softcap: real,
  left: real,
  interleaved: flag,
  pairs: whole,
  magnitude: real,
  offsets: array(whole, 4),
  sequenceStrides: array(whole, 3),
  tokenStrides: array(whole, 3),
  headStrides: array(whole, 3),
};
const stepOperands = ["q", "k", "v", "cycles", "sequences", "out"];
const roomOperands = Array.from({ length: MOST_ROOMS }, (_, room) => [`keys${room}`, `values${room}`]).flat();

/**
 * A decoding step: see `step.ts`. The operand `sequences` holds ten numbers for each sequence: `StepSequence` in
 * `step.cpp`.
 */
export const stepCall = cpuCall("attentionStep", () => stepFields, [...stepOperands, "keys", "values"]);
export const stepManyCall = cpuCall("attentionStepMany", () => stepFields, [...stepOperands, ...roomOperands]);

export const dropoutMaskCall = cpuCall(
  "attentionDropoutMask",
  {
    batch: whole,
    heads: whole,
    queries: whole,
    keys: whole,
    ...dropoutFields,
    isPacked: flag,
    sequences: whole,
    offset: whole,
  },
  ["mask", "sequences"],
);

export const attentionPasses = enumeration("AttentionPass", ["forward", "backward"]);

/** Returns how many scores the dylib has computed in a pass, as one float64, for tests. */
export const scoresCall = cpuCall("attentionScores", { pass: oneOf(attentionPasses) }, ["scores"]);
