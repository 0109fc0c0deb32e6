/** Replays recordings of the cpu backend: one native call with the addresses of the operands. */
import { ptr } from "bun:ffi";
import { cpuLibrary } from "../backend/cpu/loader.ts";
import { errorOf } from "../backend/cpu/status.ts";
import { bytesOf } from "../tensor/dtype.ts";
import { allocateHost, type Memory } from "../tensor/memory.ts";
import { reachOf } from "../tensor/reach.ts";
import { Storage } from "../tensor/storage.ts";
import { Tensor } from "../tensor/tensor.ts";
import { difference } from "./difference.ts";
import { CompileError } from "./errors.ts";
import { Program } from "./program.ts";
import { type Entry, Recording } from "./recording.ts";
import {
  lastingEntries,
  Replay,
  type ReplayOptions,
  RUN_PLAINLY,
  type SavedParts,
  type SavedSlot,
  type Seam,
  type Taken,
  unsaved,
} from "./replay.ts";
import { layoutOf, leavesOf } from "./tree.ts";

interface External {
  readonly storage: Storage;
  readonly slot: number;
  readonly bytes: number;
  readonly changes: number;
  memory: Memory | null;
}

/** Records and replays calls of the cpu backend's dylib. */
export const cpuSeam: Seam<Recording> = {
  accepts: ({ storage }) => storage.memory.device === "host",
  /** Covers only the argument's part of the memory, so that later calls may pass other parts. */
  standIn(tensor) {
    const { dtype, shape, strides, start } = layoutOf(tensor);
    return new Tensor(new Storage(new PartOfMemory(tensor)), dtype, shape, strides, start);
  },
  record: (state, stand, gradients) =>
    new Recording(
      state,
      new Map(stand.map(({ storage }, index) => [storage, index])),
      new Map(gradients.flatMap((grad, index) => (grad ? [[grad.storage, index] as const] : []))),
    ),
  difference,
  compile: (taken, options) => new CpuReplay(taken, options),
  whyUnfit: () => undefined,
  whyPlain: () => undefined,
};

class CpuReplay extends Replay {
  readonly program: Program;
  private readonly created: readonly Entry[];
  private readonly entries: readonly Entry[];
  private readonly inputs: readonly { readonly slot: number; readonly index: number }[];
  private readonly gradientSlots: readonly {
    readonly slot: number;
    readonly index: number;
    readonly changes: number;
  }[];
  private readonly externals: readonly External[];
  private readonly after: readonly (() => void)[];
  /** The first call that changes memory which outlives the function. */
  private readonly firstChange: number;

  constructor(taken: Taken<Recording>, options: ReplayOptions) {
    super(taken, options);
    const { recording, result, gradients } = taken;
    const { entries } = recording;
    const results = lastingEntries(leavesOf(result), gradients);
    const bySource = (source: Entry["source"]) => entries.filter((entry) => entry.source === source);
    const lasting = entries.filter(({ source, changes }) => changes > 0 && source !== "computed" && source !== "host");
    this.firstChange = Math.min(Infinity, ...lasting.map(({ first }) => first));
    this.program = new Program(recording, results, options);
    this.externals = bySource("external").map(
      ({ storage, id, bytes, changes }): External => ({ storage: storage!, slot: id, bytes, changes, memory: null }),
    );
    this.created = [...results];
    this.after = recording.after;
    this.entries = entries;
    this.inputs = bySource("input").map(({ id, index }) => ({ slot: id, index }));
    this.gradientSlots = bySource("gradient").map(({ id, index, changes }) => ({ slot: id, index, changes }));
  }

  override bind(): boolean {
    for (let at = 0; at < this.externals.length; at++)
      if (!bindExternal(this.externals[at], this.program.addresses)) return false;
    for (const { bytes, contents } of this.program.lives) {
      const next = contents();
      if (!next) return false;
      bytes.set(new Uint8Array(next.buffer, next.byteOffset, next.byteLength));
    }
    return true;
  }

  override run(found: readonly Tensor[]): unknown {
    const { program } = this;
    const { addresses, blocks } = program;
    program.restore();
    for (const { slot, index } of this.inputs) addresses[slot] = addressOf(found[index]);
    for (const { slot, index } of this.gradientSlots)
      addresses[slot] = ptr(this.parameters[index].grad!.storage.hostBytes());
    const created = this.createResults();
    const states = this.advanceGenerators(program.draws, (at, key) => blocks.set(key, at));
    writeSteps(program);
    const { native } = cpuLibrary();
    const { status, call } = program.run(native);
    if (call < program.calls.length || status !== 0) {
      program.restore(true);
      for (const storage of created.values()) storage.memory.release();
      if (call > this.firstChange) throw this.partlyDone(status, call);
      for (const { slots } of program.steps) for (const slot of slots) slot.steps--;
      for (const [generator, state] of states) generator.setState(state);
      this.whyPlain = status === 0 ? "a check of the values differed" : errorOf(native, status, "compile").message;
      return RUN_PLAINLY;
    }
    for (const { storage, changes } of this.externals) storage.version += changes;
    for (const { index, changes } of this.gradientSlots) this.parameters[index].grad!.storage.version += changes;
    for (const run of this.after) run();
    return this.finish(found, created);
  }

  /** The error of a program that has changed state before it stopped. */
  private partlyDone(status: number, call: number): Error {
    if (status === 0)
      return new CompileError(
        "compile",
        "diverged",
        "the outcome of a check of values differs from the recorded calls, after state was changed; check the " +
          "values before the function changes state",
      );
    const { calls } = this.program;
    const failed = calls[Math.min(call, calls.length - 1)];
    return errorOf(cpuLibrary().native, status, failed.name, failed.call.description.operands);
  }

  private createResults(): Map<Entry, Storage> {
    const made = new Map<Entry, Storage>();
    for (const entry of this.created) {
      const memory = allocateHost(entry.bytes);
      const held = memory.hostBytes();
      if (entry.contents) held.set(entry.contents);
      this.program.addresses[entry.id] = ptr(held);
      made.set(entry, new Storage(memory));
    }
    return made;
  }

  /** Describes the program for a file. @throws {CompileError} `unsaved` */
  override describe(): SavedParts {
    const { program, externals } = this;
    if (program.lives.length > 0) throw unsaved("it continues a cache of keys and values");
    if (program.steps.length > 0) throw unsaved("it calls step() of an optimizer");
    if (this.gradientSlots.length > 0 || this.changesGradients) throw unsaved("it sets gradients");
    const slots = new Map<number, SavedSlot>();
    for (const { slot, index } of this.inputs) slots.set(slot, { kind: "input", index });
    for (const [at, { slot, bytes }] of externals.entries()) slots.set(slot, { kind: "state", index: at, bytes });
    for (const [slot, offset] of program.offsets)
      slots.set(slot, { kind: "arena", offset, bytes: this.entries[slot].bytes });
    for (const [at, { slot, changes }] of program.buffers.entries())
      slots.set(slot, { kind: "constant", index: at, changes });
    for (const [at, { id, bytes }] of this.created.entries()) slots.set(id, { kind: "result", index: at, bytes });
    return {
      backend: "cpu",
      words: program.words,
      blocks: program.blocks,
      arenaBytes: program.arenaBytes,
      slots: Array.from({ length: program.addresses.length }, (_, at) => slots.get(at) ?? { kind: "unused" }),
      constants: program.buffers.map(({ contents }) => contents),
      state: externals.map(({ storage }) => storage),
      contents: this.created.map(({ contents }) => contents),
      results: this.created,
      draws: program.draws,
      advances: this.advances,
      result: this.result,
    };
  }

  override dispose(): void {
    this.program.dispose();
  }
}

/** Counts the steps of optimizers and writes their coefficients. */
function writeSteps({ steps, blocks, scalars }: Program): void {
  for (const [step, { optimizer, slots, rows }] of steps.entries()) {
    optimizer.countStep(slots);
    for (const { step: of, value, target } of scalars) if (of === step) target[0] = value();
    for (const { values, keys, places } of rows)
      for (const [row, numbers] of values().entries())
        for (let at = 0; at < keys.length; at++)
          blocks[places[row][at]] = (numbers as Record<string, number>)[keys[at]];
  }
}

/** Sets the address of a tensor whose memory may have been replaced. Returns false if it no longer fits. */
function bindExternal(external: External, addresses: Float64Array): boolean {
  if (external.storage.isReleased || external.storage.isClosed) return false;
  const { memory } = external.storage;
  if (memory === external.memory) return true;
  if (memory.device !== "host") return false;
  memory.hostBuffer(); // a small array moves when its buffer is first needed
  const bytes = memory.hostBytes();
  if (bytes.byteLength !== external.bytes) return false;
  addresses[external.slot] = ptr(bytes);
  external.memory = memory;
  return true;
}

/** The address of an argument's first element in memory. */
function addressOf(tensor: Tensor): number {
  const { first, count } = reachOf(tensor);
  return count === 0 ? 0 : ptr(tensor.storage.hostBytes()) + first * bytesOf(tensor.dtype);
}

/** The bytes of an argument. Only native code accesses them: a recording rejects other accesses. */
class PartOfMemory implements Memory {
  readonly device = "host";
  private readonly bytes: Uint8Array;

  constructor(tensor: Tensor) {
    const { first, count } = reachOf(tensor);
    const size = bytesOf(tensor.dtype);
    this.bytes = tensor.storage.hostBytes().subarray(first * size, (first + count) * size);
  }

  get byteLength(): number {
    return this.bytes.byteLength;
  }
  hostBytes(): Uint8Array {
    return this.bytes;
  }
  hostBuffer(): ArrayBuffer {
    throw new TypeError("a part of memory has no buffer");
  }
  whenReady(): null {
    return null;
  }
  release(): void {
    // the argument owns the memory
  }
}
