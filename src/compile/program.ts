/** Turns a recording into a program for `orchard_cpu_run_program`, and owns its memory. */

import { ptr } from "bun:ffi";
import type { cpuLibrary } from "../backend/cpu/loader.ts";
import { lastElement } from "../core/collections.ts";
import { allocateHost, LARGE, type Memory } from "../tensor/memory.ts";
import { type Lifetime, placeInArena } from "./arena.ts";
import { accessesOf, neededCalls } from "./dead.ts";
import { rowPlaces } from "./difference.ts";
import { type Fusion, fuse } from "./fuse.ts";
import type { Entry, RecordedCall, Recording } from "./recording.ts";
import type { ProgramDraw, ProgramFacts, ReplayOptions } from "./replay.ts";
import type { Step } from "./tracking.ts";
import { scalarArray } from "./tracking.ts";

/** Instructions of a program; see `orchard_cpu_program.h`. */
const Code = { call: 0, check: 1, fused: 2, product: 3 } as const;

type Fusing = Pick<ReplayOptions, "isFused" | "isFast">;

/** The rows of a call with coefficients, and their positions in the program's blocks. */
interface LiveRows {
  readonly values: () => readonly object[];
  readonly keys: readonly string[];
  readonly places: readonly (readonly number[])[];
}

export interface ProgramStep extends Pick<Step, "optimizer" | "slots"> {
  readonly rows: readonly LiveRows[];
}

/** Memory of the program with given contents. */
export interface Buffered {
  readonly slot: number;
  readonly bytes: Uint8Array;
  readonly contents: Uint8Array;
  /** Whether the program changes the contents. */
  readonly changes: boolean;
}

/** A recording as a list of instructions over slots of memory: one slot for each entry, then expected arrays. */
export class Program implements ProgramFacts {
  readonly words: Int32Array;
  readonly blocks: Float64Array;
  readonly addresses: Float64Array;
  readonly steps: readonly ProgramStep[];
  readonly draws: readonly ProgramDraw[];
  readonly calls: readonly RecordedCall[];
  readonly performed: ProgramFacts["performed"];
  /** Numbers that each replay recomputes, by the index of the optimizer's step. */
  readonly scalars: readonly {
    readonly step: number;
    readonly value: () => number;
    readonly target: Float32Array | Float64Array;
  }[];
  /** The buffers whose contents each replay recomputes. */
  readonly lives: readonly { readonly bytes: Uint8Array; readonly contents: () => NodeJS.TypedArray | undefined }[];
  readonly sources = [];
  private readonly fusions: readonly Fusion[];
  /** The indices of the calls whose results are needed. */
  private readonly needed: ReadonlySet<number>;
  readonly arenaBytes: number;
  /** Bytes that the calls read and write, counted by operand, without and with fusion. */
  readonly bytesMoved: { readonly plain: number; readonly fused: number };
  /** The index of the first call that an instruction runs. */
  private readonly firstCalls: number[] = [];
  private readonly starts: number[] = [];
  private readonly arena: Memory | null;
  readonly buffers: Buffered[] = [];
  /** The offsets of intermediate results in the arena, by slot. */
  readonly offsets: ReadonlyMap<number, number>;
  private readonly stopped = new Float64Array(1);

  /** @param results the entries whose memory is new in each replay */
  constructor(recording: Recording, results: ReadonlySet<Entry>, { isFused, isFast }: Fusing) {
    const { calls, entries } = recording;
    this.calls = calls;
    const isLasting = (entry: Entry) => results.has(entry);
    this.needed = isFused ? neededCalls(calls.map(accessesOf), isLasting) : new Set(calls.keys());
    this.fusions = isFused ? fuse(recording, { results, needed: this.needed, isFast }) : [];
    this.performed = this.performedCalls();
    const local = new Set(this.fusions.flatMap(({ locals }) => [...locals.keys()]));
    this.blocks = this.makeBlocks();
    const scalars = recording.liveEntries(entries);
    const lives = recording.liveContentsOf();
    const arrays = entries.filter((entry) => entry.source === "array" && !lives.has(entry));
    this.addresses = new Float64Array(entries.length + arrays.length + 1);
    for (const [at, entry] of arrays.entries()) this.place(entries.length + at, entry.after!, false);
    for (const entry of entries)
      if (entry.contents && !results.has(entry)) this.place(entry.id, entry.contents, changesIn(entry));
    const used = new Set(calls.flatMap(({ operands }, at) => (this.needed.has(at) ? operands : [])));
    const inArena = entries.filter(
      (each) => each.source === "computed" && !results.has(each) && !local.has(each) && used.has(each),
    );
    const { offsets, bytes } = placeInArena(inArena.map((entry) => lifetimeOf(entry, this.fusions)));
    this.arenaBytes = bytes;
    this.offsets = new Map(inArena.map(({ id }, at) => [id, offsets[at]]));
    this.arena = this.makeArena();
    this.words = Int32Array.from(this.instructions(new Map(arrays.map((entry, at) => [entry, entries.length + at]))));
    this.steps = recording.steps.map((step) => this.placedStep(step));
    const bytesOf = (entry: Entry) => this.buffers.find(({ slot }) => slot === entry.id)!.bytes;
    this.lives = [...lives].map(([entry, contents]) => ({ bytes: bytesOf(entry), contents }));
    this.scalars = scalars.map(({ step, isDouble, value, entry }) => {
      return { step, value, target: scalarArray(isDouble, bytesOf(entry).buffer as ArrayBuffer) };
    });
    this.draws = recording.draws.map(({ generator, ahead, places }) => ({
      generator,
      ahead,
      places: places.map(({ call, at }) => this.starts[call] + at),
    }));
    const performed = calls.filter((_, at) => this.needed.has(at));
    this.bytesMoved = {
      plain: movedBytes(calls, new Set(), new Map()),
      fused: movedBytes(performed, local, this.cachedResults()),
    };
  }

  /** Returns the needed calls; those of a chain together, at the place of its first. */
  private performedCalls(): ProgramFacts["performed"] {
    const ofFusion = new Map(this.fusions.flatMap(({ calls: chain }) => chain.map((call) => [call, chain] as const)));
    const single = (call: number) => (ofFusion.has(call) || !this.needed.has(call) ? [] : [[call]]);
    return this.calls.flatMap((_, at) => (ofFusion.get(at)?.[0] === at ? [ofFusion.get(at)!] : single(at)));
  }

  /** Returns the blocks of all calls, with the changes that chains need. */
  private makeBlocks(): Float64Array {
    const doubles = this.placeBlocks();
    const blocks = new Float64Array(Math.max(doubles, 1));
    for (const [at, { block }] of this.calls.entries()) blocks.set(block, this.starts[at]);
    for (const { calls: chain, links } of this.fusions)
      for (const [at, call] of chain.entries())
        for (const [place, value] of links[at].changes) blocks[this.starts[call] + place] = value;
    return blocks;
  }

  /** Allocates the memory of intermediate results, and sets their addresses. */
  private makeArena(): Memory | null {
    if (this.arenaBytes === 0) return null;
    const arena = allocateHost(Math.max(this.arenaBytes, LARGE));
    const base = ptr(arena.hostBytes());
    for (const [id, offset] of this.offsets) this.addresses[id] = base + offset;
    return arena;
  }

  private placedStep({ optimizer, slots, rows }: Step): ProgramStep {
    const placed = rows.map(({ call, values, keys }) => ({
      values,
      keys,
      places: rowPlaces(this.calls[call], keys).map((row) => row.map((at) => this.starts[call] + at)),
    }));
    return { optimizer, slots, rows: placed };
  }

  /** Returns the product's result for each call of an epilogue, which reads it from a cache. */
  private cachedResults(): Map<RecordedCall, Entry> {
    const epilogues = this.fusions.filter(({ startsWithProduct }) => startsWithProduct);
    return new Map(
      epilogues.flatMap(({ calls: [product, ...rest], links }) => {
        const result = this.calls[product].operands[links[0].result]!;
        return rest.map((call) => [this.calls[call], result] as const);
      }),
    );
  }

  private placeBlocks(): number {
    let doubles = 0;
    for (const { block } of this.calls) {
      this.starts.push(doubles);
      doubles += block.length;
    }
    return doubles;
  }

  /** Sets the memory of a slot to these contents, which are restored before each run. */
  private place(slot: number, contents: Uint8Array, changes: boolean): void {
    const bytes = new Uint8Array(new ArrayBuffer(Math.max(contents.byteLength, 8))); // a small array would move
    bytes.set(contents);
    this.addresses[slot] = ptr(bytes);
    this.buffers.push({ slot, bytes, contents, changes });
  }

  private instructions(expected: ReadonlyMap<Entry, number>): number[] {
    const words: number[] = [];
    const fusionAt = new Map(this.fusions.map((fusion) => [fusion.calls[0], fusion]));
    for (let at = 0; at < this.calls.length; at++) {
      const fusion = fusionAt.get(at);
      if (!this.needed.has(at)) continue;
      this.firstCalls.push(at);
      if (fusion) {
        words.push(...this.fusedWords(fusion));
        at = lastElement(fusion.calls);
        continue;
      }
      const { call, operands } = this.calls[at];
      words.push(Code.call, call.ordinal, call.rows, this.starts[at], ...operands.map((entry) => entry?.id ?? -1));
      for (const entry of operands) {
        const slot = entry && expected.get(entry);
        if (slot === null || slot === undefined) continue;
        this.firstCalls.push(at);
        words.push(Code.check, entry!.id, slot, entry!.bytes);
      }
    }
    return words;
  }

  private fusedWords({ startsWithProduct, ...fusion }: Fusion): number[] {
    const { calls, units, width, piece, locals, links, buffers } = fusion;
    const first = startsWithProduct ? 1 : 0;
    const words: number[] = startsWithProduct ? this.productWords(calls[0]) : [Code.fused];
    words.push(calls.length - first, units, piece, width, buffers);
    for (const [index, at] of calls.entries()) {
      if (index < first) continue;
      const { call, operands: entries } = this.calls[at];
      const { operands, count } = links[index];
      words.push(call.ordinal, this.starts[at], count);
      for (const [operand, { offset, step }] of operands.entries()) {
        const entry = entries[operand] ?? null;
        const buffer = entry && locals.get(entry);
        words.push(...(typeof buffer === "number" ? [1, buffer] : [0, entry?.id ?? -1]), offset, step);
      }
    }
    return words;
  }

  private productWords(at: number): number[] {
    const { call, operands } = this.calls[at];
    return [Code.product, call.ordinal, this.starts[at], ...operands.map((entry) => entry?.id ?? -1)];
  }

  /** Restores the contents of arrays and constants, by default of those that a complete run changes. */
  restore(isAll = false): void {
    for (const { bytes, contents, changes } of this.buffers) if (changes || isAll) bytes.set(contents);
  }

  /**
   * Runs the program. Returns its status, and the index of the call that did not complete; the number of calls if all
   * did.
   */
  run(native: Native): { status: number; call: number } {
    const { words, blocks, addresses, stopped } = this;
    const status = native.orchard_cpu_run_program(
      ...([words, words.length, blocks, blocks.length] as const),
      ...([addresses, addresses.length, stopped] as const),
    );
    outcome.status = status;
    outcome.call = this.firstCalls[stopped[0]] ?? this.calls.length;
    return outcome;
  }

  dispose(): void {
    this.arena?.release();
  }
}

/**
 * Returns the first and the last call that need an entry. Operands of a chain's calls are needed until the chain's last
 * call, because later pieces read them after earlier pieces of results were written.
 */
function lifetimeOf({ bytes, first, last }: Entry, fusions: readonly Fusion[]): Lifetime {
  const ending = fusions.find(({ calls }) => calls.includes(last));
  return { bytes, first, last: ending?.calls.at(-1) ?? last };
}

const changesIn = ({ contents, after, changes }: Entry): boolean =>
  changes > 0 || (after !== null && Buffer.compare(contents!, after) !== 0);

const outcome = { status: 0, call: 0 };

type Native = ReturnType<typeof cpuLibrary>["native"];

/** Returns the bytes of the operands of calls, except for those in buffers of a chain, and cached ones. */
function movedBytes(
  calls: readonly RecordedCall[],
  local: ReadonlySet<Entry>,
  cached: ReadonlyMap<RecordedCall, Entry>,
): number {
  let bytes = 0;
  for (const call of calls)
    for (const entry of call.operands)
      if (entry && !local.has(entry) && entry !== cached.get(call)) bytes += entry.bytes;
  return bytes;
}
