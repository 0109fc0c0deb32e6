/**
 * Replaces dispatches by fewer ones of generated kernels, in two passes: independent dispatches become groups
 * (`groups.ts`); then chains of elementwise operations, possibly after a product (`chains.ts`), and products whose rows
 * are normalized (`rows.ts`), become one dispatch.
 */
import { elementGrid } from "../../backend/metal/loop.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import { placeInArena } from "../arena.ts";
import type { Entry } from "../recording.ts";
import { type Chain, chainsOf } from "./chains.ts";
import { Buffers, dispatchOf, gridOf, type Planned, parametersOf, rangesOf } from "./dispatches.ts";
import { besideProducts, groupDispatch, groupsOf, type Memory } from "./groups.ts";
import type { Nest } from "./instructions.ts";
import type { DeviceCall } from "./recording.ts";
import { rowsDispatch } from "./rows.ts";
import { CHAIN, sourceOf } from "./source.ts";
import { usesOf } from "./uses.ts";

/** The dispatches of a program after fusion. */
export interface Fused {
  readonly calls: readonly Planned[];
  /** Entries with constant contents that fusion has added. */
  readonly tables: readonly Entry[];
}

/**
 * The shares of the plain order's memory that an order for groups may need. The first one is used whose arena, with
 * the gaps between results, is not larger than the plain order's.
 */
const SHARES = [1, 0.98, 0.96, 0.94, 0.92, 0.9, 0.85, 0.8] as const;

/** Returns dispatches without fusion. */
export const unfused = (recorded: readonly DeviceCall[]): Planned[] =>
  recorded.map((call, at) => ({ ...call, from: [at] }));

/**
 * Returns the dispatches with fusion.
 *
 * @param isLasting whether an entry outlives the function
 * @param entries the number of entries
 */
export function fuse(recorded: readonly DeviceCall[], isLasting: (entry: Entry) => boolean, entries: number): Fused {
  const tables: Entry[] = [];
  const makeTable = (contents: Uint8Array): Entry => {
    const table = constantEntry(entries + tables.length, contents);
    tables.push(table);
    return table;
  };
  const calls = unfused(recorded);
  const memory = memoryOf(calls, isLasting);
  const most = arenaBytes(calls, isLasting);
  const peak = Math.max(0, ...memory.live);
  const lists = SHARES.values().map((share) => groupsOf(calls, memory, share * peak));
  const groups = lists.find((list) => arenaBytes(list.flat(), isLasting, list) <= most) ?? calls.map((call) => [call]);
  const grouped = groups.flatMap((group) => (group.length > 1 && groupDispatch(group, makeTable)) || group);
  return { calls: withChains(withRows(besideProducts(grouped)), isLasting), tables };
}

function memoryOf(calls: readonly DeviceCall[], isLasting: (entry: Entry) => boolean): Memory {
  const isIntermediate = (entry: Entry) => !isLasting(entry) && entry.contents === null;
  const uses = new Map(
    usesOf(calls)
      .entries()
      .filter(([entry]) => isIntermediate(entry)),
  );
  const live = new Array<number>(calls.length).fill(0);
  for (const [{ bytes }, { first, last }] of uses) for (let at = first; at <= last; at++) live[at]! += bytes;
  return { live, uses };
}

/** Returns the size of the arena. @param groups lists of dispatches that run at the same time */
export function arenaBytes(
  calls: readonly DeviceCall[],
  isLasting: (entry: Entry) => boolean,
  groups: readonly (readonly DeviceCall[])[] = calls.map((call) => [call]),
): number {
  const steps = new Map(groups.flatMap((group, step) => group.map((call) => [call, step] as const)));
  const inArena = usesOf(calls)
    .entries()
    .filter(([entry]) => !isLasting(entry) && entry.contents === null);
  const lifetimes = inArena.map(([{ bytes }, { first, last }]) => ({
    ...{ bytes, first: steps.get(calls[first]!)!, last: steps.get(calls[last]!)! },
  }));
  return placeInArena([...lifetimes]).bytes;
}

const constantEntry = (id: number, contents: Uint8Array): Entry => ({
  ...{ source: "host", id, index: 0, bytes: contents.length, storage: null, version: 0, contents },
  ...{ after: null, first: 0, last: 0, changes: 0 },
});

function withRows(calls: readonly Planned[]): Planned[] {
  const result: Planned[] = [];
  for (const call of calls) {
    const both = result.length > 0 ? rowsDispatch(result.at(-1)!, call) : undefined;
    if (both) result[result.length - 1] = both;
    else result.push(call);
  }
  return result;
}

function withChains(calls: readonly Planned[], isLasting: (entry: Entry) => boolean): Planned[] {
  const uses = usesOf(calls);
  const chains = new Map(
    chainsOf(calls, (entry, first, end) => {
      const use = uses.get(entry)!;
      return isLasting(entry) || use.last >= end || use.first < first;
    }).map((chain) => [chain.first, chain]),
  );
  const result: Planned[] = [];
  for (let at = 0; at < calls.length; ) {
    const chain = chains.get(at);
    const replaced = calls.slice(at, at + (chain?.length ?? 1));
    const call = chain && chainDispatch(chain, replaced);
    result.push(...(call ? [call] : replaced));
    at += replaced.length;
  }
  return result;
}

/** Returns the dispatch of a chain; undefined if a threadgroup is too large for the kernel's pipeline. */
function chainDispatch(chain: Chain, replaces: readonly Planned[]): Planned | undefined {
  const { instructions, head } = chain;
  const buffers = new Buffers();
  const loads = chain.loads.map((place) => buffers.add(place, false));
  const stores = chain.stores.map((at) => buffers.add(instructions[at]!.output, true));
  const operands = head ? rangesOf(head.call).slice(0, head.isStored ? 4 : 3) : [];
  const ofHead = operands.map((range, at) => buffers.add(range, at === 3));
  const source = sourceOf(chain, { buffers, loads, stores, head: ofHead });
  const parameters = chainParameters(chain);
  const common = { kernel: CHAIN, source, buffers, replaces };
  if (!head)
    return dispatchOf({ ...common, inline: [parameters], ...elementGrid(instructions[0]!.count), gridKind: "threads" });
  const { threadgroups, threads } = gridOf(head.call);
  return dispatchOf({
    ...{ ...common, inline: [parameters, parametersOf(head.call)] },
    ...{ grid: threadgroups!, gridKind: "threadgroups", threadgroup: threads },
  });
}

/** Returns the bytes of the kernel's struct `Chain`: the count, a zero, and a `Nest<1>` for each strided operand. */
function chainParameters({ instructions, loads }: Chain): Uint8Array {
  const nests = loads.flatMap(({ nest }) => nest ?? []);
  const count = BigInt(instructions[0]!.count);
  const longs = [count, 0n, ...nests.flatMap((nest) => longsOf(nest, count))];
  return new Uint8Array(new BigInt64Array(longs).buffer);
}

const longsOf = ({ shape, strides, start }: Nest, count: bigint): bigint[] => {
  const padded = (values: readonly bigint[]) => Array.from({ length: MAX_RANK }, (_, at) => values[at] ?? 0n);
  return [...padded(shape), ...padded(strides), start, count, BigInt(shape.length)];
};
