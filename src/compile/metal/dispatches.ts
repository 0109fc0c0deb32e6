/** Reads recorded dispatches, and makes dispatches of generated kernels. */
import { Access, GridKind } from "../../backend/metal/abi.ts";
import { writeBlock } from "../../backend/metal/block.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { extents, type Size, threadCount } from "../../backend/metal/encode.ts";
import { pipelineOfText } from "../../backend/metal/launch.ts";
import { layouts } from "../../backend/metal/layouts.ts";
import type { Entry } from "../recording.ts";
import type { Chain } from "./chains.ts";
import { type DeviceCall, inlineOf, placesOf } from "./recording.ts";
import type { RowsPlan } from "./rows.ts";

/** A dispatch of a program. */
export interface Planned extends DeviceCall {
  /** The indices of the recorded dispatches that this one replaces. */
  readonly from: readonly number[];
  /** The computation of a generated kernel, if another product may follow it. */
  readonly rows?: RowsPlan;
  /** The computation of a generated kernel, if it begins with a product. */
  readonly chain?: Chain;
}

/** Bytes that a dispatch binds. For an argument, the offset is relative to its first byte. */
export interface Range {
  readonly entry: Entry;
  readonly offset: number;
  readonly length: number;
}

const viewOf = ({ block }: DeviceCall): DataView => new DataView(block.buffer, block.byteOffset, block.byteLength);

/** Returns the ranges that a dispatch binds, in order. */
export function rangesOf(call: DeviceCall): Range[] {
  const view = viewOf(call);
  const { offset, length } = layouts.binding.offsets as { readonly offset: number; readonly length: number };
  return call.operands.map((entry, at) => {
    const place = call.bindings[at];
    const number = (from: number) => Number(view.getBigInt64(place + from, true));
    return { entry, offset: number(offset), length: number(length) };
  });
}

/** Returns a copy of the first inline parameters of a dispatch. */
export function parametersOf({ block, inline }: DeviceCall): Uint8Array {
  const { at, length } = inline[0];
  return block.slice(at, at + length);
}

/** The grid of a dispatch. */
export interface Grid {
  /** Threadgroups; undefined if the grid counts threads. */
  readonly threadgroups: readonly [number, number, number] | undefined;
  /** Threads of a threadgroup. */
  readonly threads: number;
  /** Estimated operations; 0 if there is no estimate. */
  readonly work: number;
}

export function gridOf(call: DeviceCall): Grid {
  const view = viewOf(call);
  const { grid, gridKind, threadgroup, work } = layouts.dispatch.offsets;
  const triple = (at: number) => [0, 4, 8].map((step) => view.getUint32(at + step, true)) as [number, number, number];
  const isCounted = view.getUint32(gridKind, true) === GridKind.threadgroups;
  return {
    threadgroups: isCounted ? triple(grid) : undefined,
    threads: threadCount(triple(threadgroup)),
    work: Number(view.getBigUint64(work, true)),
  };
}

/** Whether two ranges are the same bytes. */
export const isSameRange = (a: Range, b: Range): boolean =>
  a.entry === b.entry && a.offset === b.offset && a.length === b.length;

/** The buffers of a generated kernel: each range is bound once. */
export class Buffers {
  readonly ranges: Range[] = [];
  private readonly written: boolean[] = [];
  private readonly read: boolean[] = [];

  /** Returns the index of the buffer for a range. */
  add(range: Range, isWritten: boolean): number {
    const { ranges, written, read } = this;
    const known = ranges.findIndex((each) => isSameRange(each, range));
    const at = known < 0 ? ranges.push(range) - 1 : known;
    written[at] ||= isWritten;
    read[at] ||= !isWritten;
    return at;
  }

  get writes(): boolean[] {
    return this.written.map(Boolean);
  }

  accessOf(at: number): number {
    return (this.read[at] ? Access.read : 0) | (this.written[at] ? Access.write : 0);
  }

  /** Returns the declarations of the buffers, as bytes. */
  declarations(): string[] {
    return this.ranges.map(
      (_, at) => `device ${this.written[at] ? "" : "const "}uchar *buffer_${at} ${attribute(`buffer(${at})`)}`,
    );
  }

  /** Returns a buffer as a pointer of a type. */
  pointer = (at: number, type: string): string => `reinterpret_cast<${type}>(buffer_${at})`;
}

export const attribute = (text: string): string => `[[${text}]]`;

/** A dispatch of a generated kernel. */
export interface Generated {
  readonly kernel: string;
  readonly source: string;
  readonly constants?: readonly number[];
  readonly buffers: Buffers;
  /** Structs that are bound after the buffers. */
  readonly inline: readonly Uint8Array[];
  readonly grid: Size;
  readonly gridKind: keyof typeof GridKind;
  readonly threadgroup: Size;
  /** The dispatches that the generated kernel replaces. */
  readonly replaces: readonly Planned[];
}

/** Returns a dispatch of a generated kernel; undefined if its pipeline supports fewer threads. */
export function dispatchOf(what: Generated): Planned | undefined {
  const { kernel, source, constants, buffers, inline, grid, gridKind, threadgroup, replaces } = what;
  const pipeline = pipelineOfText(metalContext(), kernel, source, constants);
  if (threadCount(threadgroup) > pipeline.info.maxTotalThreads) return undefined;
  const { ranges } = buffers;
  const bindingOf = ({ offset, length }: Range, index: number) => ({
    buffer: 0,
    offset,
    length,
    index,
    access: buffers.accessOf(index),
  });
  const block = writeBlock(layouts.dispatch, {
    pipeline: pipeline.handle,
    grid: extents(grid),
    gridKind: GridKind[gridKind],
    threadgroup: extents(threadgroup),
    bindings: { layout: layouts.binding, items: ranges.map(bindingOf) },
    inlineBytes: {
      layout: layouts.inline,
      items: inline.map((bytes, at) => ({ index: ranges.length + at, bytes })),
    },
    threadgroupMemory: { layout: layouts.threadgroupMemory, items: [] },
    label: kernel,
    work: replaces.reduce((sum, call) => sum + gridOf(call).work, 0),
  }).slice();
  const { name, place } = replaces[0];
  return {
    name,
    place,
    block,
    kernel: undefined,
    generated: { kernel, text: source },
    operands: ranges.map(({ entry }) => entry),
    writes: buffers.writes,
    bindings: placesOf(block, "bindings", layouts.binding),
    inline: inlineOf(block),
    from: replaces.flatMap(({ from }) => from),
  };
}

/** Returns the bytes that dispatches read and write. Bytes that a dispatch binds several times count once. */
export function bytesMoved(calls: readonly DeviceCall[]): number {
  let total = 0;
  for (const call of calls)
    for (const ranges of Map.groupBy(rangesOf(call), ({ entry }) => entry).values()) {
      let end = 0;
      for (const { offset, length } of ranges.toSorted((a, b) => a.offset - b.offset)) {
        total += Math.max(0, offset + length - Math.max(end, offset));
        end = Math.max(end, offset + length);
      }
    }
  return total;
}
