/** Splits a call with rows into single calls, for recording. */
import { toArrayBuffer } from "bun:ffi";

/** A row as a single call: its block, and its operands, undefined if omitted. */
export interface SingleRow {
  readonly block: Float64Array;
  readonly operands: readonly (Uint8Array | undefined)[];
}

/** Returns the rows of a call of `orchard_cpu_run_rows`. Operands at the same address become one array. */
export function singleRows(
  blocks: Float64Array,
  addresses: Float64Array,
  { count, operands }: { readonly count: number; readonly operands: number },
): SingleRow[] {
  const known = new Map<string, Uint8Array>();
  const viewOf = (address: number, bytes: number): Uint8Array | undefined => {
    if (bytes < 0) return undefined;
    const key = `${address} ${bytes}`;
    const found = known.get(key) ?? (bytes === 0 ? new Uint8Array() : new Uint8Array(memoryAt(address, bytes)));
    known.set(key, found);
    return found;
  };
  return Array.from({ length: count }, (_, row) => {
    const stride = blocks.length / count;
    const block = blocks.subarray(row * stride, (row + 1) * stride);
    const rowAddresses = addresses.subarray(row * operands, (row + 1) * operands);
    return {
      block,
      operands: Array.from(rowAddresses, (address, at) => viewOf(address, block[stride - operands + at])),
    };
  });
}

const memoryAt = (address: number, bytes: number): ArrayBuffer => toArrayBuffer(address, 0, bytes);
