/**
 * Replaces dispatches by fewer ones of generated kernels, in two passes: independent dispatches become groups
 * (`groups.ts`); then chains of elementwise operations, possibly after a product (`chains.ts`), and products whose rows
 * are normalized (`rows.ts`), become one dispatch.
 */
import { elementGrid } from "../../backend/metal/loop.ts";
import { placeInArena } from "../arena.ts";
import type { Entry } from "../recording.ts";
import { type Chain, chainsOf, type Needed } from "./chains.ts";
import { Buffers, dispatchOf, gridOf, type Planned, parametersOf } from "./dispatches.ts";
import { besideProducts, conflicts, groupDispatch, groupsOf, type Memory } from "./groups.ts";
import type { DeviceCall } from "./recording.ts";
import { rowsDispatch, secondProductDispatch } from "./rows.ts";
import { CHAIN, chainParameters, placesIn, sourceOf } from "./source.ts";
import { usesOf } from "./uses.ts";

/** The dispatches of a program after fusion. */
export interface Fused {
  readonly calls: readonly Planned[];
  /** Entries with constant contents that fusion has added. */
  readonly tables: readonly Entry[];
}

/**
 * Limit of the memory that delayed dispatches may take, relative to the arena of the recorded order. Plain calls need
 * even more, because they keep results until their tensors are released, not only until the last use.
 */
const MOST_MEMORY = 1.125;

/** The limits of live bytes to try, relative to the recorded order. The first one with a small enough arena is used. */
const LIMITS = [MOST_MEMORY, 1.06, 1, 0.96, 0.92, 0.88, 0.8] as const;

/** Returns dispatches without fusion. */
export const unfused = (recorded: readonly DeviceCall[]): Planned[] =>
  recorded.map((call, at) => ({ ...call, from: [at] }));

/**
 * Returns the dispatches with fusion.
 *
 * @param isLasting whether an entry outlives the function
 * @param options `entries`: the number of entries. `isFast`: whether the last bits of results may change
 */
export function fuse(
  calls: readonly Planned[],
  isLasting: (entry: Entry) => boolean,
  { entries, isFast }: { readonly entries: number; readonly isFast: boolean },
): Fused {
  const tables: Entry[] = [];
  const makeTable = (contents: Uint8Array): Entry => {
    const table = constantEntry(entries + tables.length, contents);
    tables.push(table);
    return table;
  };
  const memory = memoryOf(calls, isLasting);
  const most = MOST_MEMORY * arenaBytes(calls, isLasting);
  const peak = Math.max(0, ...memory.live);
  const lists = LIMITS.values().map((limit) => groupsOf(calls, memory, limit * peak));
  const groups = lists.find((list) => arenaBytes(list.flat(), isLasting, list) <= most) ?? calls.map((call) => [call]);
  const grouped = groups.flatMap((group) => (group.length > 1 && groupDispatch(group, makeTable)) || group);
  return {
    calls: withSecondProducts(withChains(withRows(besideProducts(grouped), isLasting), isLasting, isFast)),
    tables,
  };
}

function memoryOf(calls: readonly DeviceCall[], isLasting: (entry: Entry) => boolean): Memory {
  const isIntermediate = (entry: Entry) => !isLasting(entry) && entry.contents === null;
  const uses = new Map(
    usesOf(calls)
      .entries()
      .filter(([entry]) => isIntermediate(entry)),
  );
  const live = new Array<number>(calls.length).fill(0);
  for (const [{ bytes }, { first, last }] of uses) for (let at = first; at <= last; at++) live[at] += bytes;
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
    bytes,
    first: steps.get(calls[first])!,
    last: steps.get(calls[last])!,
  }));
  return placeInArena([...lifetimes]).bytes;
}

const constantEntry = (id: number, contents: Uint8Array): Entry => ({
  source: "host",
  id,
  index: 0,
  bytes: contents.length,
  storage: null,
  version: 0,
  contents,
  after: null,
  first: 0,
  last: 0,
  changes: 0,
});

function withRows(calls: readonly Planned[], isLasting: (entry: Entry) => boolean): Planned[] {
  const result: Planned[] = [];
  const isNeeded = neededIn(calls, isLasting);
  for (const [at, call] of calls.entries()) {
    const before = result.at(-1);
    const written = before?.operands[3];
    const both = before && rowsDispatch(before, call, written !== undefined && isNeeded(written, at - 1, at + 1));
    if (both) result[result.length - 1] = both;
    else result.push(call);
  }
  return result;
}

/** Returns a function that says whether an entry outlives a range of dispatches, or is accessed outside of it. */
function neededIn(calls: readonly Planned[], isLasting: (entry: Entry) => boolean): Needed {
  const uses = usesOf(calls);
  return (entry, first, end) => {
    const use = uses.get(entry)!;
    return isLasting(entry) || use.last >= end || use.first < first;
  };
}

/** A product is moved next to the dispatch whose rows it reads, if it follows at most this many dispatches later. */
const NEAR = 6;

function withSecondProducts(calls: readonly Planned[]): Planned[] {
  const result = [...calls];
  for (let at = 0; at < result.length; at++) {
    for (let next = at + 1; next <= at + NEAR && next < result.length; next++) {
      const both = result[at].rows && secondProductDispatch(result[at], result[next]);
      if (!both || result.slice(at + 1, next).some((between) => conflicts(between, result[next]))) continue;
      result[at] = both;
      result.splice(next, 1);
      break;
    }
  }
  return result;
}

function withChains(calls: readonly Planned[], isLasting: (entry: Entry) => boolean, isFast: boolean): Planned[] {
  const chains = new Map(
    chainsOf(calls, neededIn(calls, isLasting)).map((chain) => [chain.first, { ...chain, isFast }]),
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
  const source = sourceOf(chain, placesIn(buffers, chain));
  const parameters = chainParameters(chain);
  const common = { kernel: CHAIN, source, buffers, replaces };
  if (!head)
    return dispatchOf({ ...common, inline: [parameters], ...elementGrid(instructions[0].count), gridKind: "threads" });
  const { threadgroups, threads } = gridOf(head.call);
  const call = dispatchOf({
    ...common,
    inline: [parameters, parametersOf(head.call)],
    grid: threadgroups!,
    gridKind: "threadgroups",
    threadgroup: threads,
  });
  return call && { ...call, chain };
}
