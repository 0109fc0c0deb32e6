/**
 * Finds chains of elementwise calls over the same contiguous elements. They run by pieces that stay in the L1 cache:
 * one piece passes through all calls before the next one. The calls stay the same, so the results have the same bits.
 */
import type { Entry, RecordedCall, Recording } from "./recording.ts";

/** A chain of elementwise calls that runs by pieces. */
export interface Fusion {
  /** The indices of successive calls. */
  readonly calls: readonly number[];
  /** Elements of the results. */
  readonly count: number;
  /** Elements of a piece. */
  readonly piece: number;
  /** For each call, the kind of each operand; see {@link OperandKind}. */
  readonly operands: readonly (readonly number[])[];
  /** Results that only the chain needs, with the number of their buffer. */
  readonly locals: ReadonlyMap<Entry, number>;
  /** The number of buffers. */
  readonly buffers: number;
}

/** Whether an operand's offset moves with the piece, stays, or is a buffer of a piece; see `orchard_cpu_program.h`. */
export const OperandKind = { moving: 0, fixed: 1, local: 2 } as const;

/** A chain of 8 pieces of float32 with their operands fits the L1 cache of 32 KB. */
const PIECE = 2048;

/** Smaller results fit the L1 cache as a whole; then pieces would only add calls. */
const LEAST_ELEMENTS = 2 * PIECE;

const MAX_RANK = 8;

/** The functions with a `LoopBlock` at the end of their blocks. */
const elementwise: ReadonlySet<string> = new Set(["unary", "binary", "ternary"]);

/** An elementwise call over contiguous elements, with the kinds of its operands. */
interface Link {
  readonly count: number;
  readonly kinds: readonly number[];
}

/** Returns the chains of at least two calls. @param results the entries that outlive the function */
export function fuse({ calls }: Recording, results: ReadonlySet<Entry>): Fusion[] {
  const fusions: Fusion[] = [];
  for (let at = 0; at < calls.length; at++) {
    const first = linkOf(calls[at]!);
    if (!first) continue;
    const links = [first];
    for (let next = at + 1; next < calls.length; next++) {
      const link = linkOf(calls[next]!);
      if (link?.count !== first.count || !isFree(calls, at, next, link)) break;
      links.push(link);
    }
    if (links.length > 1) fusions.push(chain(calls, at, links, results));
    at += links.length - 1;
  }
  return fusions;
}

/** Returns the loop of a call if it can run by pieces: each operand contiguous, or one element. */
function linkOf({ call, block, operands }: RecordedCall): Link | undefined {
  const { name } = call.description;
  const result = operands.at(-1);
  if (!elementwise.has(name) || result?.source !== "computed" || operands.indexOf(result) < operands.length - 1)
    return undefined;
  const nest = nestOf({ call, operands });
  const shape = [...block.subarray(nest + 1, nest + 1 + block[nest]!)];
  const count = shape.reduce((product, size) => product * size, 1);
  if (count < LEAST_ELEMENTS) return undefined;
  const kinds = operands.map((_, operand) => {
    const start = nest + 1 + MAX_RANK * (operand + 1);
    return kindOf(shape, [...block.subarray(start, start + shape.length)]);
  });
  if (kinds.includes(undefined) || kinds.at(-1) !== OperandKind.moving) return undefined;
  return { count, kinds: kinds as number[] };
}

/** The index of a block's loop nest, which its offsets follow (`LoopBlock` in `native/cpu/elementwise/loop.h`). */
const nestOf = ({ call, operands }: Pick<RecordedCall, "call" | "operands">): number =>
  call.description.length - operands.length - MAX_RANK * (operands.length + 1) - 1;

/** Makes a block's loop nest one axis, as fused calls have it. */
export function flatten(call: RecordedCall, block: Float64Array, kinds: readonly number[]): void {
  const nest = nestOf(call);
  block[nest] = 1;
  for (const [operand, kind] of kinds.entries())
    block[nest + 1 + MAX_RANK * (operand + 1)] = kind === OperandKind.fixed ? 0 : 1;
}

function kindOf(shape: readonly number[], strides: readonly number[]): number | undefined {
  if (strides.every((stride, axis) => stride === 0 || shape[axis] === 1)) return OperandKind.fixed;
  let dense = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && strides[axis] !== dense) return undefined;
    dense *= shape[axis]!;
  }
  return OperandKind.moving;
}

/**
 * Whether a call may join the calls from `first` on: an operand that they write must be read at the same elements, and
 * its result must not be one of their operands.
 */
function isFree(calls: readonly RecordedCall[], first: number, next: number, { kinds }: Link): boolean {
  const { operands, block, call } = calls[next]!;
  const result = operands.at(-1)!;
  for (let at = first; at < next; at++) {
    const before = calls[at]!;
    if (before.operands.includes(result)) return false;
    const written = before.operands.at(-1)!;
    const offset = offsetsOf(before).at(-1)!;
    const offsets = offsetsOf({ block, call, operands });
    for (const [index, entry] of operands.entries())
      if (entry === written && (kinds[index] !== OperandKind.moving || offsets[index] !== offset)) return false;
  }
  return true;
}

const offsetsOf = ({ block, call, operands }: Pick<RecordedCall, "block" | "call" | "operands">): number[] => {
  const end = call.description.length;
  return [...block.subarray(end - operands.length, end)];
};

function chain(
  calls: readonly RecordedCall[],
  first: number,
  links: readonly Link[],
  results: ReadonlySet<Entry>,
): Fusion {
  const last = first + links.length - 1;
  const locals = new Map<Entry, number>();
  const users: Entry[] = []; // of each buffer, the last one
  for (let at = first; at < last; at++) {
    const entry = calls[at]!.operands.at(-1)!;
    if (entry.first !== at || entry.last > last || results.has(entry)) continue;
    const free = users.findIndex((user) => user.last < at);
    const buffer = free < 0 ? users.length : free;
    users[buffer] = entry;
    locals.set(entry, buffer);
  }
  return {
    ...{ count: links[0]!.count, piece: PIECE, locals, buffers: users.length },
    calls: links.map((_, at) => first + at),
    operands: links.map(({ kinds }, at) =>
      kinds.map((kind, operand) => (locals.has(calls[first + at]!.operands[operand]!) ? OperandKind.local : kind)),
    ),
  };
}
