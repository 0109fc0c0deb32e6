/** Turns a recording into a list for `orchard_dispatches_encode`, and owns the memory of intermediate results. */
import { metalContext } from "../../backend/metal/context.ts";
import { layouts } from "../../backend/metal/layouts.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { PhiloxKey } from "../../random/philox.ts";
import { placeInArena } from "../arena.ts";
import { neededCalls } from "../dead.ts";
import type { Entry } from "../recording.ts";
import type { ProgramDraw, ProgramFacts, ReplayOptions } from "../replay.ts";
import { bytesMoved, type Planned } from "./dispatches.ts";
import { type Fused, fuse, unfused } from "./fuse.ts";
import type { DeviceCall, DeviceFacts } from "./recording.ts";
import { usesOf } from "./uses.ts";

/** A binding that each replay writes. */
interface Moving {
  readonly entry: number;
  /** The index of the binding in the list, in words of 32 bits. */
  readonly at: number;
  /** The offset from the first byte of the entry's memory. */
  readonly offset: number;
}

type Fusing = Pick<ReplayOptions, "isFused" | "isFast">;

const { buffer: bufferAt, offset: offsetAt } = layouts.binding.offsets as { buffer: number; offset: number };

const TWO_32 = 2 ** 32;

/** A recording as a list of dispatches. */
export class DeviceProgram implements ProgramFacts {
  readonly calls: readonly DeviceCall[];
  readonly performed: ProgramFacts["performed"];
  readonly sources: ProgramFacts["sources"];
  readonly arenaBytes: number;
  readonly bytesMoved: { readonly plain: number; readonly fused: number };
  readonly list: Uint8Array;
  readonly draws: readonly ProgramDraw[];
  /** The handle and the first byte of each entry's memory. */
  readonly handles: Float64Array;
  readonly firstBytes: Float64Array;
  private readonly words: Uint32Array;
  /**
   * The dispatches after fusion. `places` has, for each recorded dispatch, the index of the dispatch that replaces it.
   */
  private readonly dispatches: readonly Planned[];
  private readonly places: readonly number[];
  private readonly starts: number[] = [];
  private readonly moving: readonly Moving[];
  private readonly arena: MetalMemory | null;
  private readonly constants: MetalMemory[] = [];

  /** @param isMoving whether an entry's memory may differ in each replay */
  constructor(
    recording: Pick<DeviceFacts, "calls" | "entries" | "draws">,
    isMoving: (entry: Entry) => boolean,
    { isFused, isFast }: Fusing,
  ) {
    this.calls = recording.calls;
    const accesses = this.calls.map(({ operands, writes }) => ({
      operands,
      results: operands.filter((_, at) => writes[at]),
    }));
    const all = unfused(this.calls);
    const needed = isFused ? neededCalls(accesses, isMoving) : new Set(all.keys());
    const performed = all.filter((_, at) => needed.has(at));
    const plain: Fused = { calls: performed, tables: [] };
    const { calls, tables } = isFused
      ? fuse(performed, isMoving, { entries: recording.entries.length, isFast })
      : plain;
    const entries = [...recording.entries, ...tables];
    this.dispatches = calls;
    this.performed = calls.map(({ from }) => from);
    this.sources = calls.flatMap(({ generated }) => generated ?? []);
    this.places = placesOfCalls(calls);
    this.list = this.makeList();
    this.words = new Uint32Array(this.list.buffer);
    this.handles = new Float64Array(entries.length);
    this.firstBytes = new Float64Array(entries.length);
    const fixed = entries.filter((entry) => !isMoving(entry));
    for (const { id, contents } of fixed) if (contents) this.handles[id] = this.constant(contents);
    const uses = usesOf(calls);
    const inArena = fixed.filter((entry) => entry.contents === null && uses.has(entry));
    const { offsets, bytes } = placeInArena(inArena.map((entry) => ({ bytes: entry.bytes, ...uses.get(entry)! })));
    this.arenaBytes = bytes;
    this.arena = bytes > 0 ? new MetalMemory(metalContext(), bytes, { label: "compiled function" }) : null;
    for (const [at, { id }] of inArena.entries()) {
      this.handles[id] = this.arena!.handle;
      this.firstBytes[id] = offsets[at];
    }
    const bindings = calls.flatMap(({ bindings: places, operands }, call) =>
      places.map((place, at) => this.bindingAt(operands[at], this.starts[call] + place)),
    );
    const isFixed = ({ entry }: Moving) => !isMoving(entries[entry]);
    for (const binding of bindings) if (isFixed(binding)) this.bind(binding);
    this.moving = bindings.filter((binding) => !isFixed(binding));
    this.draws = recording.draws.map((draw) => this.placedDraw(draw, needed));
    this.bytesMoved = { plain: bytesMoved(this.calls), fused: bytesMoved(calls) };
  }

  /** Returns the places of a draw's numbers in the list. @param needed the calls whose results are needed */
  private placedDraw({ generator, ahead, places }: DeviceFacts["draws"][number], needed: ReadonlySet<number>) {
    const kept = places.filter(({ call }) => needed.has(call));
    return { generator, ahead, places: kept.map(({ call, at }) => (this.starts[this.places[call]] + at) / 4) };
  }

  private makeList(): Uint8Array {
    let length = 0;
    for (const { block } of this.dispatches) {
      this.starts.push(length + 8);
      length += 8 + Math.ceil(block.length / 8) * 8;
    }
    const list = new Uint8Array(new ArrayBuffer(length));
    const view = new DataView(list.buffer);
    for (const [at, { block }] of this.dispatches.entries()) {
      view.setBigUint64(this.starts[at] - 8, BigInt(block.length), true);
      list.set(block, this.starts[at]);
    }
    return list;
  }

  private constant(contents: Uint8Array): number {
    const memory = new MetalMemory(metalContext(), contents.byteLength, { storage: "shared" });
    new Uint8Array(memory.contents()).set(contents);
    memory.moveToHint();
    this.constants.push(memory);
    return memory.handle;
  }

  private bindingAt({ id }: Entry, place: number): Moving {
    const view = new DataView(this.list.buffer);
    return { entry: id, at: place / 4, offset: Number(view.getBigUint64(place + offsetAt, true)) };
  }

  private bind({ entry, at, offset }: Moving): void {
    const { words, handles, firstBytes } = this;
    write64(words, at + bufferAt / 4, handles[entry]);
    write64(words, at + offsetAt / 4, firstBytes[entry] + offset);
  }

  /** Writes the handles and offsets that may differ in each replay. */
  bindAll(): void {
    for (let at = 0; at < this.moving.length; at++) this.bind(this.moving[at]);
  }

  writeKey(at: number, [first, second]: PhiloxKey): void {
    this.words[at] = first;
    this.words[at + 1] = second;
  }

  /** Replaces the inline parameters of a call. */
  writeParameters(call: number, bytes: Uint8Array): void {
    this.list.set(bytes, this.starts[this.places[call]] + this.calls[call].inline[0].at);
  }

  dispose(): void {
    this.arena?.release();
    for (const memory of this.constants) memory.release();
  }
}

/** Returns the index of the dispatch that performs each recorded one. */
function placesOfCalls(calls: readonly Planned[]): number[] {
  const places: number[] = [];
  for (const [at, { from }] of calls.entries()) for (const recorded of from) places[recorded] = at;
  return places;
}

function write64(words: Uint32Array, at: number, value: number): void {
  words[at] = value % TWO_32;
  words[at + 1] = Math.floor(value / TWO_32);
}
