/** Groups: independent dispatches of kernels with bodies, which one dispatch of a generated kernel performs. */
import { metalContext } from "../../backend/metal/context.ts";
import type { Entry } from "../recording.ts";
import { type Body, bodyOf, tiledCall } from "./bodies.ts";
import { attribute, Buffers, dispatchOf, gridOf, type Planned, parametersOf, rangesOf } from "./dispatches.ts";
import type { Use } from "./uses.ts";

const GROUP = "compiled_group";

/** Metal allows 31 buffers, of which a group uses one for its table. */
const MAX_BUFFERS = 28;
const MAX_MEMBERS = 24;
/** Kernels with different code in a group. Each one makes the generated kernel larger. */
const MAX_BODIES = 3;

/** The memory use of a list of dispatches. */
export interface Memory {
  /** The bytes of intermediate results during each dispatch. */
  readonly live: readonly number[];
  /** The first and the last dispatch that access each intermediate result. */
  readonly uses: ReadonlyMap<Entry, Use>;
}

/** Bytes of threadgroup memory. Devices have 32 KiB. */
const MAX_MEMORY = 30_000;

/** A dispatch that may join a group. */
interface Member {
  readonly call: Planned;
  readonly index: number;
}

/** Returns the bodies of a group. */
function bodiesOf(calls: readonly Planned[]): Body[] {
  const hasProduct = calls.some(tiledCall);
  return calls.map((call) => bodyOf(call, hasProduct)!);
}

/** A dispatch is not delayed if one of this many following dispatches needs its result. */
const URGENT = 6;

/**
 * Reorders dispatches so that those that can be merged are adjacent: independent ones whose bodies are in the same
 * header. Each is delayed until another dispatch needs its result. Returns lists of dispatches to merge.
 *
 * @param live the bytes of intermediate results at each dispatch. Delayed dispatches keep their operands alive
 * @param most the limit of the bytes of intermediate results at each dispatch
 */
export function groupsOf(calls: readonly Planned[], { live, uses }: Memory, most: number): Planned[][] {
  const needed = firstConflicts(calls);
  const groups: Planned[][] = [];
  const open = new Map<string, Member[]>();
  const close = (key: string) => {
    groups.push(open.get(key)!.map(({ call }) => call));
    open.delete(key);
  };
  /** The bytes of operands that only delayed dispatches need. */
  const keptAt = (index: number) => {
    const operands = new Set([...open.values()].flatMap((members) => members.flatMap(({ call }) => call.operands)));
    let bytes = 0;
    for (const entry of operands) if (uses.has(entry) && uses.get(entry)!.last < index) bytes += entry.bytes;
    return bytes;
  };
  for (const [index, call] of calls.entries()) {
    for (const [key, members] of open) if (members.some((member) => needed[member.index] === index)) close(key);
    while (open.size > 0 && live[index] + keptAt(index) > most) close([...open.keys()][0]);
    const body = needed[index] - index > URGENT ? bodyOf(call) : undefined;
    if (!body) {
      groups.push([call]);
      continue;
    }
    const member = { call, index };
    const key = withProducts(member, open) ?? [body.header, body.threads, ...body.constants].join(" ");
    if (open.has(key) && !fits([...open.get(key)!, member])) close(key);
    open.set(key, [...(open.get(key) ?? []), member]);
  }
  for (const key of [...open.keys()]) close(key);
  return groups;
}

/**
 * Returns the key of an open group of products that read the same memory as a reduction, and whose kernel can also
 * reduce; undefined if there is none. The gradients of a weight and of a bias read the same gradient.
 */
function withProducts(member: Member, open: ReadonlyMap<string, readonly Member[]>): string | undefined {
  if (tiledCall(member.call)) return undefined;
  const [input] = member.call.operands;
  const readsInput = ({ call }: Member) => tiledCall(call) !== undefined && call.operands.includes(input);
  return [...open].find(([, members]) => members.some(readsInput) && fits([...members, member]))?.[0];
}

/** A dispatch is moved next to the one whose result it uses, if it follows at most this many dispatches later. */
const NEAR = 6;

/**
 * Makes a product and the next dispatch that reads its result adjacent. The dispatches between them are moved before
 * the product, or else behind its reader, if they do not conflict. Before the product is better, since their operands
 * are freed earlier.
 */
export function besideProducts(calls: readonly Planned[]): Planned[] {
  const result = [...calls];
  for (let at = 0; at < result.length; at++) {
    const product = result[at];
    if (!tiledCall(product)) continue;
    const written = product.operands[3];
    const count = result.slice(at + 1, at + 1 + NEAR).findIndex(({ operands }) => operands.includes(written));
    if (count < 1) continue;
    const between = result.slice(at + 1, at + 1 + count);
    const next = result[at + 1 + count];
    const order = between.every((each) => !conflicts(each, product))
      ? [...between, product, next]
      : between.every((each) => !conflicts(each, next)) && [product, next, ...between];
    if (!order) continue;
    result.splice(at, order.length, ...order);
    at = result.indexOf(next);
  }
  return result;
}

/** Whether one of two dispatches writes memory that the other accesses. */
export function conflicts(a: Planned, b: Planned): boolean {
  return a.operands.some((entry, at) =>
    b.operands.some((other, place) => entry === other && (a.writes[at] || b.writes[place])),
  );
}

/** Returns for each dispatch the first later one that must run after it. */
function firstConflicts(calls: readonly Planned[]): number[] {
  const conflicts = new Array<number>(calls.length).fill(Infinity);
  const accesses = new Map<Entry, { readonly index: number; readonly isWritten: boolean }[]>();
  for (const [index, { operands, writes }] of calls.entries())
    for (const [at, entry] of operands.entries()) {
      const isWritten = writes[at];
      const earlier = accesses.get(entry) ?? [];
      for (const before of earlier)
        if (before.index < index && (isWritten || before.isWritten))
          conflicts[before.index] = Math.min(conflicts[before.index], index);
      // all earlier accesses conflict with this write, so later dispatches need not be compared with them
      const kept = isWritten ? earlier.filter((before) => before.index === index) : earlier;
      accesses.set(entry, [...kept, { index, isWritten }]);
    }
  return conflicts;
}

const sumOf = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value, 0);

function fits(members: readonly Member[]): boolean {
  const buffers = new Buffers();
  for (const { call } of members) for (const range of rangesOf(call)) buffers.add(range, false);
  const bodies = bodiesOf(members.map(({ call }) => call));
  const memory = new Map(bodies.map((body) => [body.memory, body.memoryBytes]));
  const numberOf = (values: readonly unknown[]) => new Set(values.map(String)).size;
  return (
    numberOf(bodies.map(({ threads }) => threads)) === 1 &&
    numberOf(bodies.flatMap(({ constants }) => (constants.length > 0 ? [constants] : []))) <= 1 &&
    buffers.ranges.length <= MAX_BUFFERS &&
    members.length <= MAX_MEMBERS &&
    numberOf(bodies.map(({ key }) => key)) <= MAX_BODIES &&
    sumOf(memory.values()) <= MAX_MEMORY &&
    sumOf(members.values().map(({ call }) => gridOf(call).work)) <= metalContext().batchWork
  );
}

/**
 * Returns one dispatch for a group; undefined if its pipeline supports fewer threads.
 *
 * @param makeTable returns an entry for constant contents
 */
export function groupDispatch(
  calls: readonly Planned[],
  makeTable: (contents: Uint8Array) => Entry,
): Planned | undefined {
  const members = bodiesOf(calls).map((body, at) => ({ call: calls[at], body }));
  const bodies = [...Map.groupBy(members, ({ body }) => body.key).values()];
  const ordered = bodies.flat();
  const buffers = new Buffers();
  const places = ordered.map(({ call }) => rangesOf(call).map((range, at) => buffers.add(range, call.writes[at])));
  const groups = ordered.map(({ body: { threadgroups } }) => threadgroups);
  const counts = groups.map(([width, height, depth]) => width * height * depth);
  const firsts = counts.map((_, at) => sumOf(counts.slice(0, at)));
  const contents = tableOf(
    [...firsts, ...groups.map(([width]) => width), ...groups.map(([, height]) => height)],
    ordered.map(({ call }) => parametersOf(call)),
  );
  const table = makeTable(contents);
  const at = buffers.add({ entry: table, offset: 0, length: contents.length }, false);
  const declared = buffers.declarations();
  declared[at] = `constant Group &table ${attribute(`buffer(${at})`)}`;
  const kinds = bodies.map((of) => ({ body: of[0].body, count: of.length }));
  return dispatchOf({
    kernel: GROUP,
    constants: kinds.map(({ body }) => body.constants).find(({ length }) => length > 0) ?? [],
    buffers,
    inline: [],
    gridKind: "threadgroups",
    source: sourceOf(kinds, declared, casesOf(kinds, places, buffers)),
    grid: sumOf(counts),
    threadgroup: kinds[0].body.threads,
    replaces: ordered.map(({ call }) => call),
  });
}

/** A body of a group, with the number of members that have it. */
interface BodyOfGroup {
  readonly body: Body;
  readonly count: number;
}

/** Returns the branches of the kernel: one for each body, whose members are adjacent. */
function casesOf(kinds: readonly BodyOfGroup[], places: readonly (readonly number[])[], buffers: Buffers): string {
  let first = 0;
  const cases = kinds.map(({ body, count }, index) => {
    const end = first + count;
    const text = statementsOf(body, places.slice(first, end), first, buffers).replaceAll(
      "PARAMETERS",
      `table.of_body_${index}`,
    );
    first = end;
    return end === places.length ? `{\n        ${text}\n    }` : `if (member < ${end}) {\n        ${text}\n    } else `;
  });
  return cases.join("");
}

/** Returns the kernel, which finds the member that a threadgroup belongs to. */
function sourceOf(kinds: readonly BodyOfGroup[], declared: readonly string[], cases: string): string {
  const members = sumOf(kinds.map(({ count }) => count));
  const headers = new Set(kinds.map(({ body }) => `#include "${body.header}"`));
  const arrays = new Set(kinds.map(({ body }) => `threadgroup ${body.memory};`));
  return `// ${members} dispatches of a compiled function.

#include "elementwise/chain.h"
${[...headers].join("\n")}

struct Group {
    uint firsts[${members}];  // the first threadgroup of each member
    uint widths[${members}];
    uint heights[${members}];
${kinds.map(({ body, count }, at) => `    ${body.parameters} of_body_${at}[${count}];`).join("\n")}
};

kernel void ${GROUP}(
    ${declared.join(",\n    ")},
    uint position ${attribute("threadgroup_position_in_grid")},
    uint thread_index ${attribute("thread_index_in_threadgroup")},
    uint simdgroup_index ${attribute("simdgroup_index_in_threadgroup")},
    uint lane ${attribute("thread_index_in_simdgroup")}) {
    ${[...arrays].join("\n    ")}
    uint member = 0;
    while (member + 1 < ${members} && position >= table.firsts[member + 1]) member += 1;
    const uint index = position - table.firsts[member];
    const uint width = table.widths[member];
    const uint height = table.heights[member];
    const uint3 place = {index % width, index / width % height, index / width / height};
    ${cases}
}
`;
}

/** Returns the statements of members with one body. @param places the buffers of each member's operands */
function statementsOf(body: Body, places: readonly (readonly number[])[], first: number, buffers: Buffers): string {
  const pointers = body.pointers.map((type, operand) => {
    const chosen = places.map((of) => buffers.pointer(of[operand], type));
    const [last, ...others] = chosen.toReversed();
    return others
      .toReversed()
      .reduceRight((rest, text, at) => (text === rest ? rest : `(member == ${first + at} ? ${text} : ${rest})`), last);
  });
  const named = body.pointers.map((type, at) => `${type}const pointer_${at} = ${pointers[at]};`);
  const parameters = `PARAMETERS[member${first === 0 ? "" : ` - ${first}`}]`;
  const names = named.map((_, at) => `pointer_${at}`);
  return [...named, body.statements(names, parameters, "place")].join("\n        ");
}

/** Returns the bytes of the struct `Group`. */
function tableOf(numbers: readonly number[], parameters: readonly Uint8Array[]): Uint8Array {
  const start = Math.ceil((4 * numbers.length) / 8) * 8;
  const table = new Uint8Array(start + parameters.reduce((sum, { length }) => sum + length, 0));
  table.set(new Uint8Array(new Uint32Array(numbers).buffer));
  let at = start;
  for (const bytes of parameters) {
    table.set(bytes, at);
    at += bytes.length;
  }
  return table;
}
