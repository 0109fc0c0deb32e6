import type { Entry, Recording } from "./recording.ts";

/** A chain of elementwise calls that runs by pieces. */
export interface Fusion {
  /** The indices of successive calls. */
  readonly calls: readonly number[];
  /** Elements of the results. */
  readonly count: number;
  /** Elements of a piece. */
  readonly piece: number;
  /** For each call, the kind of each operand. */
  readonly operands: readonly (readonly number[])[];
  /** Results that only the chain needs, with the number of their buffer. */
  readonly locals: ReadonlyMap<Entry, number>;
  /** The number of buffers. */
  readonly buffers: number;
}

export function fuse(_recording: Recording, _results: ReadonlySet<Entry>): Fusion[] {
  return [];
}
