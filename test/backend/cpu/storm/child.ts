/**
 * Makes hostile calls of the cpu dylib's functions: valid ones with numbers, sizes, addresses and elements altered. It
 * runs as a program, so that a crash is an exit code and not the end of the tests:
 *
 *     bun test/backend/cpu/storm/child.ts <seed> <first> <count> <file>
 *
 * The seed and a call's number determine the call. The file, of 8 bytes, contains the number of the current call. A
 * single call is printed.
 */
import { dlopen } from "bun:ffi";
import { ABI_VERSION, declarations, Status } from "../../../../src/backend/cpu/abi.ts";
import { type BlockField, cpuCalls } from "../../../../src/backend/cpu/call.ts";
import { configure, cpuLibrary } from "../../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../../src/backend/cpu/report.ts";
import { readText } from "../../../../src/backend/cpu/status.ts";
import { nativeTables } from "../../../../src/backend/cpu/tables.ts";
import type { CpuField } from "../../../../src/backend/fields.ts";
import { processorSeconds } from "../../../support/processor_time.ts";
import { Room } from "./memory.ts";
import { rightCalls, type Seed } from "./seeds.ts";

const [seed = 1, first = 0, count = 10_000] = process.argv.slice(2, 5).map(Number);
const progress = new Float64Array(Bun.mmap(process.argv[5]).buffer);

const { native, path } = cpuLibrary();
const ordinals = Object.entries(nativeTables().functions).sort(([, a], [, b]) => a.ordinal - b.ordinal);
const seeds = rightCalls();
const missing = ordinals.filter(([, { ordinal }]) => seeds[ordinal].length === 0).map(([name]) => name);
if (missing.length > 0) throw new Error(`no valid call of ${missing.join(", ")}: add one to seeds.ts`);
native.orchard_cpu_set_memory_limit(64 << 20);

/** The same functions with addresses instead of views, so that any number can be an address. */
const widths = [3, 6, 16, 29] as const;
const addressed = Object.fromEntries(
  [...widths, "_rows" as const].map((width) => {
    const { args, returns } = declarations[`orchard_cpu_run${width}`];
    return [`orchard_cpu_run${width}`, { args: args.map((type) => (type === "buffer" ? "ptr" : type)), returns }];
  }),
) as Record<string, { args: ("ptr" | "i32")[]; returns: "i32" }>;
const runs = dlopen(path, addressed).symbols as unknown as Record<string, (...values: number[]) => number>;

const ROOM = 16_384;
const rooms = Array.from({ length: 29 }, () => new Room(ROOM));
const blocks = new Room(ROOM);
/** The addresses of a call on rows. */
const table = new Room(ROOM);

// ---------------------------------------------------------------- random numbers

let state = 0;
/** mulberry32 */
function random(): number {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const below = (limit: number): number => Math.floor(random() * limit);
const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;

// ---------------------------------------------------------------- alterations

const nonsense = [Number.NaN, Infinity, -Infinity, 0.5, -1.5, 1e300, -1e300, 5e-324, 2 ** 63, -(2 ** 63), 2 ** 64];
const large = [2 ** 53, 2 ** 53 - 1, -(2 ** 53), 2 ** 53 + 2, 2 ** 52, 2 ** 40, 2 ** 33, 2 ** 32, 2 ** 31, 2 ** 31 - 1];
const near = [-8, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33, 64, 100, 255, 1000, 4095, 4097];

const hostile = (own: number): number => {
  const kind = random();
  if (kind < 0.15) return pick(nonsense);
  if (kind < 0.3) return pick(large) * pick([1, 1, -1]);
  if (kind < 0.6) return pick(near);
  return pick([own + 1, own - 1, own * 2, -own, own + 8, own + 4096, 0]);
};

/**
 * The doubles of a block that are strides. A stride of 0 makes sizes valid that no memory could hold, and such calls
 * would take forever.
 */
function stridesOf(fields: readonly BlockField[]): number[] {
  const of = (name: string, field: CpuField<never>, offset: number): number[] =>
    field.members
      ? Object.entries(field.members).flatMap(([own, member]) => of(own, member.field, offset + member.offset))
      : /stride|along/i.test(name)
        ? Array.from({ length: field.length }, (_, at) => offset + at)
        : [];
  return fields.flatMap(({ name, field, offset }) => of(name, field, offset));
}
const strides = ordinals.map(([name]) => stridesOf(cpuCalls.get(name)!.fields));

const MOST_REPEATED = 4096;

function limitRepetition({ block }: Call, own: Seed): void {
  let isLarge = false;
  for (let at = 0; at < own.block.length - own.operands.length; at++)
    isLarge ||= Math.abs(block[at]) > MOST_REPEATED && block[at] !== own.block[at];
  if (isLarge) for (const at of strides[own.ordinal]) if (block[at] === 0) block[at] = 1;
}

// ---------------------------------------------------------------- a call

interface Call {
  ordinal: number;
  width: number;
  /** The number of rows that the block states; the call has one row. */
  rows: number | undefined;
  blockBytes: number;
  block: Float64Array;
  readonly addresses: number[];
  /** The number of bytes of each operand, regardless of what the block states. */
  readonly sizes: number[];
}

function place(room: Room, bytes: Uint8Array): void {
  room.bytes.set(bytes, room.place(bytes.byteLength, random() < 0.7));
}

/** Places the block and the operands in guarded memory. */
function rightCall({ ordinal, block, operands }: Seed): Call {
  const at = blocks.place(block.byteLength, true);
  const own = new Float64Array(blocks.bytes.buffer, at, block.length);
  own.set(block);
  const sizes = operands.map((operand) => operand?.byteLength ?? 0);
  const addresses = operands.map((operand, index) => {
    if (!operand) return blocks.pointer;
    place(rooms[index], operand);
    return rooms[index].pointer;
  });
  const width = widths.find((most) => operands.length <= most)!;
  const rows = ordinals[ordinal][1].takesRows && random() < 0.5 ? 1 : undefined;
  return { ordinal, width, rows, blockBytes: block.byteLength, block: own, addresses, sizes };
}

const elements = new Float64Array(1);
const wholes = new BigInt64Array(elements.buffer);
const elementBytes = new Uint8Array(elements.buffer);

/** Replaces a few elements: indices, weights, positions. */
function alterElements({ operands }: Seed): void {
  const index = below(operands.length);
  const { bytes, first: start, end } = rooms[index];
  if (!operands[index] || end - start < 8) return;
  for (let times = below(4); times >= 0; times--) {
    const kind = random();
    if (kind < 0.5) wholes[0] = BigInt(pick([-1, 3, 4, 33, 2 ** 31, 2 ** 40, -(2 ** 53)]));
    else elements[0] = hostile(1);
    bytes.set(elementBytes, start + below((end - start) >> 3) * 8);
  }
}

/** Removes bytes, or replaces the address by null or another one; the call states the true size. */
function alterOperand(call: Call, { operands, block }: Seed): void {
  const index = below(operands.length);
  const own = operands[index];
  const said = block.length - operands.length + index;
  const kind = random();
  if (!own || kind < 0.1) call.block[said] = pick([-1, -1, Number.NaN, -(2 ** 53), 0.5]);
  else if (kind < 0.2) call.addresses[index] = 0;
  else if (kind < 0.3 && call.addresses[index] !== 0) {
    const over = Math.min(call.sizes[index], pick([1, 2, 4]));
    call.addresses[index] += over;
    call.sizes[index] -= over;
    call.block[said] = call.sizes[index];
  } else {
    const left = Math.max(
      0,
      pick([own.byteLength - 1, own.byteLength - 4, own.byteLength - 8, below(own.byteLength), 0]),
    );
    place(rooms[index], own.subarray(0, left));
    call.addresses[index] = rooms[index].pointer;
    call.sizes[index] = left;
    call.block[said] = left;
  }
}

/**
 * Ordinals of functions by their number of operands. A function with the same number of operands accepts the call's
 * layout.
 */
const alike = Array.from({ length: 30 }, (_, count) =>
  ordinals.filter(([, { operands }]) => operands === count).map(([, { ordinal }]) => ordinal),
);

function alter(call: Call, own: Seed): void {
  const length = own.block.length - own.operands.length;
  const kind = random();
  if (kind < 0.62) {
    const at = below(length);
    call.block[at] = random() < 0.85 ? hostile(call.block[at]) : call.block[below(length)];
  } else if (kind < 0.8) alterOperand(call, own);
  else if (kind < 0.96) alterElements(own);
  else if (kind < 0.965) call.width = pick(widths);
  else if (kind < 0.97) call.rows = pick([-1, 0, 1, 2, 2 ** 31 - 1]);
  else if (kind < 0.98)
    call.blockBytes = pick([0, -1, 8, own.block.byteLength - 8, own.block.byteLength + 8, 2 ** 31 - 1]);
  else call.ordinal = pick([-1, ordinals.length, 2 ** 31 - 1, pick(alike[own.operands.length])]);
}

function run({ ordinal, width, rows, blockBytes, addresses }: Call, blockAddress: number): number {
  if (rows !== undefined) {
    const at = table.place(addresses.length * 8, true);
    new Float64Array(table.bytes.buffer, at, addresses.length).set(addresses);
    return runs["orchard_cpu_run_rows"](ordinal, blockAddress, blockBytes, rows, table.pointer);
  }
  const given = Array.from({ length: width }, (_, index) => addresses[index] ?? 0);
  return runs[`orchard_cpu_run${width}`](ordinal, blockAddress, blockBytes, ...given);
}

// ---------------------------------------------------------------- the storm

const known = new Set<number>(Object.values(Status).filter((status) => status !== Status.internal));
const { isas } = cpuInfo(native);
const SLICE = 500; // calls on one instruction set

/** How often each function ran and was rejected. */
const answers = ordinals.map(([name]) => ({ name, ran: 0, refused: 0 }));
let slowest = { number: 0, seconds: 0 };

function step(number: number): void {
  state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b)) >>> 0;
  random();
  const own = pick(seeds[below(seeds.length)]);
  const call = rightCall(own);
  for (let times = pick([0, 1, 1, 1, 2, 2, 3, 5]); times > 0; times--) alter(call, own);
  limitRepetition(call, own);
  progress[0] = number;
  if (count === 1) console.log(number, answers[own.ordinal].name, call, own);
  let status: number = Status.ok;
  const seconds = processorSeconds(() => {
    status = run(call, blocks.pointer);
  });
  if (seconds > slowest.seconds) slowest = { number, seconds };
  const answer = answers[own.ordinal];
  if (status === Status.ok) answer.ran++;
  else answer.refused++;
  if (!known.has(status)) throw new Error(`call ${number}: status ${status}, ${message()}`);
  for (let index = 0; index < own.operands.length; index++)
    if (own.operands[index] && !rooms[index].isIntact())
      throw new Error(`call ${number} of ${answer.name} wrote outside of operand ${index}`);
  if (!blocks.isIntact()) throw new Error(`call ${number} of ${answer.name} wrote outside of its block`);
}

const message = (): string => readText((buffer, capacity) => native.orchard_cpu_last_error(buffer, capacity));

/** Unaltered calls must run: otherwise the storm would test only rejections. */
for (const own of seeds.flat()) {
  const status = run(rightCall(own), blocks.pointer);
  if (status !== Status.ok) throw new Error(`a valid call of ${answers[own.ordinal].name} was rejected: ${message()}`);
}

for (let number = first; number < first + count; number++) {
  if (number % SLICE === 0 || number === first)
    configure(native, "isa", isas[Math.floor(number / SLICE) % isas.length]);
  step(number);
}
console.log(JSON.stringify({ version: ABI_VERSION, answers, slowest }));
