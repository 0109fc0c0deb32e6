/** Replaces chains of elementwise dispatches by dispatches of generated kernels. */
import { Access, GridKind } from "../../backend/metal/abi.ts";
import { writeBlock } from "../../backend/metal/block.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { extents, threadCount } from "../../backend/metal/encode.ts";
import { pipelineOfText } from "../../backend/metal/launch.ts";
import { layouts } from "../../backend/metal/layouts.ts";
import { elementGrid } from "../../backend/metal/loop.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import type { Entry } from "../recording.ts";
import { type Chain, chainsOf } from "./chains.ts";
import type { Nest, Place } from "./instructions.ts";
import { type DeviceCall, inlineOf, placesOf } from "./recording.ts";
import { CHAIN, sourceOf } from "./source.ts";

/** The dispatches of a program after fusion. */
export interface Fused {
  readonly calls: readonly DeviceCall[];
  /** The index in {@link calls} of the dispatch that replaces each recorded one. */
  readonly places: readonly number[];
  readonly fusions: readonly { readonly calls: readonly number[] }[];
}

/** Returns the dispatches with chains fused. @param isLasting whether an entry outlives the function */
export function fuse(recorded: readonly DeviceCall[], isLasting: (entry: Entry) => boolean): Fused {
  const chains = new Map(chainsOf(recorded, isLasting).map((chain) => [chain.first, chain]));
  const calls: DeviceCall[] = [];
  const places: number[] = [];
  const fusions: { readonly calls: readonly number[] }[] = [];
  while (places.length < recorded.length) {
    const first = places.length;
    const chain = chains.get(first);
    const call = chain && dispatchOf(chain, recorded[first]!);
    const length = call ? chain.instructions.length : 1;
    places.push(...new Array<number>(length).fill(calls.length));
    calls.push(call ?? recorded[first]!);
    if (call) fusions.push({ calls: Array.from({ length }, (_, at) => first + at) });
  }
  return { calls, places, fusions };
}

/** Returns the dispatch of a chain; undefined if a threadgroup is too large for the kernel's pipeline. */
function dispatchOf(chain: Chain, { place, name }: DeviceCall): DeviceCall | undefined {
  const { instructions, loads, stores } = chain;
  const pipeline = pipelineOfText(metalContext(), CHAIN, sourceOf(chain));
  const { grid, threadgroup } = elementGrid(instructions[0]!.count);
  if (threadCount(threadgroup) > pipeline.info.maxTotalThreads) return undefined;
  const outputs = stores.map((at) => instructions[at]!.output);
  const operands = [...loads, ...outputs];
  const bindingOf = ({ offset, length }: Place, index: number) => ({
    ...{ buffer: 0, offset, length, index },
    access: index < loads.length ? Access.read : Access.write,
  });
  const written = writeBlock(layouts.dispatch, {
    pipeline: pipeline.handle,
    ...{ grid: extents(grid), gridKind: GridKind.threads, threadgroup: extents(threadgroup) },
    bindings: { layout: layouts.binding, items: operands.map(bindingOf) },
    inlineBytes: { layout: layouts.inline, items: [{ index: operands.length, bytes: parametersOf(chain) }] },
    threadgroupMemory: { layout: layouts.threadgroupMemory, items: [] },
    label: CHAIN,
    work: 0,
  });
  const block = written.slice();
  return {
    ...{ name, place, block, kernel: undefined },
    operands: operands.map(({ entry }) => entry),
    writes: operands.map((_, at) => at >= loads.length),
    bindings: placesOf(block, "bindings", layouts.binding),
    inline: inlineOf(block),
  };
}

/** Returns the bytes of the kernel's struct `Chain`: the count, a zero, and a `Nest<1>` for each strided operand. */
function parametersOf({ instructions, loads }: Chain): Uint8Array {
  const nests = loads.flatMap(({ nest }) => nest ?? []);
  const count = BigInt(instructions[0]!.count);
  const longs = [count, 0n, ...nests.flatMap((nest) => longsOf(nest, count))];
  return new Uint8Array(new BigInt64Array(longs).buffer);
}

const longsOf = ({ shape, strides, start }: Nest, count: bigint): bigint[] => {
  const padded = (values: readonly bigint[]) => Array.from({ length: MAX_RANK }, (_, at) => values[at] ?? 0n);
  return [...padded(shape), ...padded(strides), start, count, BigInt(shape.length)];
};
