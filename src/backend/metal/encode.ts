/** The one place where a dispatch becomes a call of the dylib: user kernels and the package's own alike. */
import { GridKind } from "./abi.ts";
import { type Fields, writeBlock } from "./block.ts";
import type { MetalContext } from "./context.ts";
import { layouts } from "./layouts.ts";

/** Width, height and depth; what is left out is 1. */
export type Size = number | readonly [number, number?, number?];

/** A dispatch, ready to be encoded. */
export interface Dispatch {
  /** The pipeline's handle. */
  readonly pipeline: number;
  readonly grid: Size;
  /** What the grid counts. */
  readonly gridKind: keyof typeof GridKind;
  readonly threadgroup: Size;
  /** Buffers, as `layouts.binding` has them. */
  readonly buffers: readonly Fields[];
  /** Bytes that are copied into the command, as `layouts.inline` has them. */
  readonly inline: readonly Fields[];
  /** Lengths of threadgroup arguments, as `layouts.threadgroupMemory` has them. */
  readonly threadgroupMemory: readonly Fields[];
  readonly label: string;
  /** Operations of all threads, roughly; default: estimated from the threads and what is bound. */
  readonly work?: number | undefined;
}

const ticketScratch = new BigUint64Array(1);

/**
 * Encodes a dispatch; nothing waits. Returns the ticket of the command buffer that holds it.
 *
 * @param operation what the caller called, for errors
 * @throws {OrchardError} what the dylib's status becomes.
 */
export function encode(context: MetalContext, operation: string, dispatch: Dispatch): number {
  const block = writeBlock(layouts.dispatch, {
    pipeline: dispatch.pipeline,
    grid: extents(dispatch.grid),
    gridKind: GridKind[dispatch.gridKind],
    threadgroup: extents(dispatch.threadgroup),
    bindings: { layout: layouts.binding, items: dispatch.buffers },
    inlineBytes: { layout: layouts.inline, items: dispatch.inline },
    threadgroupMemory: { layout: layouts.threadgroupMemory, items: dispatch.threadgroupMemory },
    label: dispatch.label,
    work: Math.ceil(dispatch.work ?? 0),
  });
  context.call(operation, context.native.orchard_dispatch_encode(block, block.length, ticketScratch));
  return Number(ticketScratch[0]);
}

/** A size in three dimensions. */
export function extents(size: Size): [number, number, number] {
  const [width, height = 1, depth = 1] = typeof size === "number" ? [size] : size;
  return [width, height, depth];
}

/** How many threads a size has. */
export const threadCount = (size: Size): number => extents(size).reduce((product, extent) => product * extent, 1);
