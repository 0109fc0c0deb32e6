/** Encodes dispatches of user kernels and built-in kernels. */
import { type CapturedDispatch, capture } from "../../observe/capture.ts";
import { GridKind } from "./abi.ts";
import { type Fields, temporaryBlock } from "./block.ts";
import type { MetalContext } from "./context.ts";
import { layouts } from "./layouts.ts";

/** Width, height and depth; omitted ones are 1. */
export type Size = number | readonly [number, number?, number?];

/** A dispatch, ready to be encoded. */
export interface Dispatch {
  /** The pipeline's handle. */
  readonly pipeline: number;
  readonly grid: Size;
  /** Whether the grid counts threads or threadgroups. */
  readonly gridKind: keyof typeof GridKind;
  readonly threadgroup: Size;
  /** Buffers in the layout `layouts.binding`. */
  readonly buffers: readonly Fields[];
  /** Inline bytes in the layout `layouts.inline`. */
  readonly inline: readonly Fields[];
  /** Lengths of threadgroup arguments in the layout `layouts.threadgroupMemory`. */
  readonly threadgroupMemory: readonly Fields[];
  readonly label: string;
  /** The tensors at `buffers`, for a recording; undefined if a buffer does not belong to a tensor. */
  readonly operands?: CapturedDispatch["operands"];
  /** The built-in kernel, for a recording; undefined for other kernels. */
  readonly kernel?: CapturedDispatch["kernel"];
  /** Approximate operations of all threads. Default: estimated from the threads and bound bytes. */
  readonly work?: number | undefined;
}

const ticketScratch = new BigUint64Array(1);

/**
 * Encodes a dispatch without waiting. Returns the ticket of its command buffer.
 *
 * @param operation the caller's operation, for errors
 * @throws {OrchardError} the error of the dylib's status.
 */
export function encode(context: MetalContext, operation: string, dispatch: Dispatch): number {
  const { bytes, length } = temporaryBlock(layouts.dispatch, {
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
  const { label: name, operands, kernel } = dispatch;
  capture?.dispatched({ name, block: bytes.slice(0, length), operands, kernel });
  context.call(operation, context.native.orchard_dispatch_encode(bytes, length, ticketScratch));
  return Number(ticketScratch[0]);
}

/** Returns a size in three dimensions. */
export function extents(size: Size): [number, number, number] {
  const [width, height = 1, depth = 1] = typeof size === "number" ? [size] : size;
  return [width, height, depth];
}

/** Returns the number of threads of a size. */
export const threadCount = (size: Size): number => extents(size).reduce((product, extent) => product * extent, 1);
