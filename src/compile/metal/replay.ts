/** Replays recordings on metal: one native call encodes all dispatches. */
import { metalBackend } from "../../backend/metal/backend.ts";
import { checkLater } from "../../backend/metal/checks.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { noteEncoded, waitForRecomputable } from "../../backend/metal/journal.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import { errorOf } from "../../backend/metal/status.ts";
import { BackendError } from "../../core/errors.ts";
import { bytesOf, type DType } from "../../tensor/dtype.ts";
import { reachOf } from "../../tensor/reach.ts";
import { type DeferredCheck, Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { Entry } from "../recording.ts";
import {
  lastingEntries,
  Replay,
  type ReplayOptions,
  type ReplayParts,
  RUN_PLAINLY,
  type Saved,
  type Seam,
  unsaved,
} from "../replay.ts";
import type { State } from "../state.ts";
import { scalarArray } from "../tracking.ts";
import { leavesOf } from "../tree.ts";
import { deviceDifference } from "./difference.ts";
import { DeviceProgram } from "./program.ts";
import {
  type Change,
  type DeviceFacts,
  DeviceRecording,
  type LiveParameters,
  type PositionCheck,
} from "./recording.ts";

/**
 * Returns the alignment in bytes that recorded kernels may rely on: four elements, or eight if they have two bytes
 * (`run_width` of `kernels/common/runs.h`). A vector load from a less aligned pointer faults.
 */
const alignmentOf = (dtype: DType): number => Math.max(16, 4 * bytesOf(dtype));

const tensorsIn = (state: State): Tensor[] => [
  ...state.tensors(),
  ...state.optimizerTensors(),
  ...state.cachedTensors(),
];

const SHARED = "an argument shares its memory with the state";

const firstByteOf = (tensor: Tensor): number => reachOf(tensor).first * bytesOf(tensor.dtype);

/** Records and replays dispatches of Metal kernels. */
export const metalSeam: Seam<DeviceRecording> = {
  accepts: ({ storage }) => !storage.isAbstract && storage.batch === undefined,
  /**
   * Shares the argument's memory through another `Memory` object, which distinguishes it from other tensors' memory.
   */
  standIn(tensor) {
    metalBackend.makeResident(tensor);
    const { dtype, shape, strides, storage, offset } = tensor;
    const memory = Object.create(storage.memory, { release: { value: () => undefined } }) as MetalMemory;
    const stand = new Storage(memory);
    stand.dependOn(storage.checks);
    return new Tensor(stand, dtype, shape, strides, offset);
  },
  record: (state, stand, gradients) => new DeviceRecording(state, { stand, gradients, changing: tensorsIn(state) }),
  difference: deviceDifference,
  compile: (taken, options) => new MetalReplay(taken, options),
  whyUnfit(found, inputs) {
    for (let at = 0; at < found.length; at++) {
      const { dtype, offset, start } = inputs[at];
      const recorded = (offset - start) * bytesOf(dtype);
      if ((firstByteOf(found[at]) - recorded) % alignmentOf(dtype) !== 0)
        return `argument ${at} is not aligned like the recorded one`;
    }
    return undefined;
  },
  /** A call may swap the memory of the state. An argument that shares this memory would keep the old one. */
  whyPlain(found, state) {
    const own = new Set(tensorsIn(state).map(({ storage }) => storage));
    return found.some(({ storage }) => own.has(storage)) ? SHARED : undefined;
  },
};

/** The parts of a program on metal that are stored in a file. */
export interface SavedDispatches extends Saved {
  readonly backend: "metal";
  readonly recording: DeviceFacts;
  readonly isFused: boolean;
  readonly isFast: boolean;
}

/** Memory of a tensor from outside the function. */
interface Outer {
  readonly entry: number;
  readonly bytes: number;
  readonly storage: () => Storage;
}

export class MetalReplay extends Replay {
  readonly program: DeviceProgram;
  private readonly context = metalContext();
  /** Entries that get new memory in each replay, including those with contents that JavaScript computed. */
  private readonly created: readonly Entry[];
  private readonly inputs: readonly { readonly entry: number; readonly index: number }[];
  private readonly outer: readonly Outer[];
  private readonly changes: readonly Change[];
  private readonly steps: DeviceRecording["steps"];
  private readonly live: readonly LiveParameters[];
  private readonly checks: readonly PositionCheck[];
  /** The entries whose contents each replay recomputes. */
  private readonly contents: readonly { readonly entry: Entry; readonly next: () => NodeJS.TypedArray | undefined }[];
  private readonly scalars: ReturnType<DeviceRecording["liveEntries"]>;
  /** The memory that the next replay gives to each changed storage. A storage alternates between two blocks. */
  private readonly spares: (MetalMemory | null)[];
  private readonly outcome = new BigUint64Array(3);

  constructor(
    private readonly taken: ReplayParts & { readonly recording: DeviceFacts },
    private readonly options: ReplayOptions,
  ) {
    super(taken, options);
    const { recording, result, gradients } = taken;
    const { entries, changes, steps, parameters, checks, calls } = recording;
    [this.changes, this.steps, this.live, this.checks] = [changes, steps, parameters, checks];
    const lasting = lastingEntries(leavesOf(result), gradients);
    for (const { entry } of checks) lasting.add(entry);
    this.scalars = recording.liveEntries(entries);
    this.contents = entries.flatMap((entry) => {
      const next = entry.storage && recording.contents.get(entry.storage);
      return next ? [{ entry, next }] : [];
    });
    for (const { entry } of [...this.scalars, ...this.contents]) lasting.add(entry);
    const written = new Set(calls.flatMap(({ operands, writes }) => operands.filter((_, at) => writes[at])));
    for (const entry of entries) if (entry.source === "host" && written.has(entry)) lasting.add(entry);
    const swapped = new Set(changes.flatMap(({ after }) => after ?? []));
    this.created = [...lasting].filter((entry) => !swapped.has(entry));
    const isMoving = (entry: Entry) =>
      lasting.has(entry) || swapped.has(entry) || !["computed", "host"].includes(entry.source);
    this.program = new DeviceProgram(recording, isMoving, options);
    this.spares = changes.map(() => null);
    this.inputs = entries.flatMap(({ source, id, index }) => (source === "input" ? [{ entry: id, index }] : []));
    this.outer = entries.flatMap(({ source, id, index, bytes, storage }) => {
      if (source === "external") return [{ entry: id, bytes, storage: () => storage! }];
      return source === "gradient" ? [{ entry: id, bytes, storage: () => this.parameters[index].grad!.storage }] : [];
    });
  }

  override bind(): boolean {
    const { handles } = this.program;
    if (this.context.isClosed) return false;
    for (let at = 0; at < this.outer.length; at++) {
      const { entry, bytes, storage: storageOf } = this.outer[at];
      const storage = storageOf();
      if (storage.isReleased || storage.isClosed) return false;
      const memory = residentMemory(storage);
      if (memory.byteLength !== bytes) return false;
      handles[entry] = memory.handle;
    }
    return this.recompute();
  }

  /** Recomputes contents and parameters. Returns false if the recording does not fit. */
  private recompute(): boolean {
    for (const { entry, next } of this.contents) {
      const bytes = next();
      if (!bytes) return false;
      entry.contents!.set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    }
    for (const { call, step, bytes } of this.live) {
      if (step !== undefined) continue;
      const next = bytes();
      if (!next) return false;
      this.program.writeParameters(call, next);
    }
    return true;
  }

  override run(found: readonly Tensor[]): unknown {
    const { program, context, steps } = this;
    const { handles, firstBytes } = program;
    for (const { entry, index } of this.inputs) {
      const tensor = found[index];
      handles[entry] = residentMemory(tensor.storage).handle;
      firstBytes[entry] = firstByteOf(tensor);
    }
    const changed = new Set(this.changes.map((change) => this.storageOf(change)));
    if (found.some(({ storage }) => changed.has(storage))) {
      this.whyPlain = SHARED;
      return RUN_PLAINLY;
    }
    waitForRecomputable(context, changed);
    const created = this.createResults();
    const targets = this.changes.map((change, at) => this.targetOf(change, at));
    const states = this.advanceGenerators(program.draws, (at, key) => program.writeKey(at, key));
    this.writeSteps(created);
    program.bindAll();
    const { list } = program;
    const status = context.native.orchard_dispatches_encode(list, list.length, this.outcome);
    if (status !== 0) {
      for (const { slots } of steps) for (const slot of slots) slot.steps--;
      for (const [generator, state] of states) generator.setState(state);
      for (const storage of created.values()) storage.memory.release();
      const error = errorOf(context.native, status, "compile");
      const changesInPlace = this.changes.some(({ after }) => after === undefined);
      if (changesInPlace && this.outcome[0] !== 0n) throw error;
      this.whyPlain = error.message;
      return RUN_PLAINLY;
    }
    this.exchange(targets);
    const results = [...created].flatMap(([{ id }, storage]) => (this.isCheck(id) ? [] : [storage]));
    // keeps their memory: the journal may drop it before tensors own it
    for (const storage of results) storage.retain();
    this.note(found, results, this.checkLater(created));
    for (const run of this.taken.recording.after) run();
    const result = this.finish(found, created);
    for (const storage of results) storage.release();
    return result;
  }

  private isCheck(id: number): boolean {
    return this.checks.some(({ entry }) => entry.id === id);
  }

  private storageOf({ storage, gradient }: Change): Storage {
    return gradient === undefined ? storage : this.parameters[gradient].grad!.storage;
  }

  private createResults(): Map<Entry, Storage> {
    const made = new Map<Entry, Storage>();
    for (const entry of this.created) {
      const memory = new MetalMemory(this.context, entry.bytes, entry.contents ? { storage: "shared" } : {});
      if (entry.contents) new Uint8Array(memory.contents()).set(entry.contents);
      this.program.handles[entry.id] = memory.handle;
      made.set(entry, new Storage(memory));
    }
    return made;
  }

  /** Returns the memory for the new contents of a changed storage; null if it is changed in place. */
  private targetOf({ after, ...change }: Change, at: number): MetalMemory | null {
    if (after === undefined) return null;
    const modeOf = () => this.storageOf({ after, ...change }).memory.storage;
    const target = this.spares[at] ?? new MetalMemory(this.context, after.bytes, { storage: modeOf() });
    this.spares[at] = target;
    this.program.handles[after.id] = target.handle;
    return target;
  }

  private writeSteps(created: ReadonlyMap<Entry, Storage>): void {
    for (const [step, { optimizer, slots }] of this.steps.entries()) {
      optimizer.countStep(slots);
      for (const { step: of, entry, isDouble, value } of this.scalars)
        if (of === step) scalarArray(isDouble, (created.get(entry)!.memory as MetalMemory).contents())[0] = value();
      for (const { call, step: of, bytes } of this.live) if (of === step) this.program.writeParameters(call, bytes()!);
    }
  }

  private exchange(targets: readonly (MetalMemory | null)[]): void {
    for (const [at, change] of this.changes.entries()) {
      const storage = this.storageOf(change);
      const target = targets[at];
      if (target) this.spares[at] = storage.swap(target) as MetalMemory;
      storage.version += change.versions;
    }
  }

  /** Schedules the checks of positions that kernels write. */
  private checkLater(created: ReadonlyMap<Entry, Storage>): DeferredCheck[] {
    return this.checks.map(({ entry, errorAt }) => {
      const memory = created.get(entry)!.memory as MetalMemory;
      return checkLater(this.context, {
        isDone: () => memory.whenReady() === null,
        run() {
          const error = errorAt(new Uint32Array(memory.contents(), 0, 1)[0]);
          memory.release();
          if (error) throw error;
        },
      });
    });
  }

  /** Adds the replay to the journal of pending work, and makes its results depend on the checks of its operands. */
  private note(found: readonly Tensor[], results: readonly Storage[], checks: readonly DeferredCheck[]): void {
    const changed = this.changes.map((change) => this.storageOf(change));
    const reads = [...found.map(({ storage }) => storage), ...this.outer.map(({ storage }) => storage())];
    const pending = new Set([
      ...checks,
      ...reads.flatMap((storage) => storage.checks.filter((each) => !each.hasPassed)),
    ]);
    const writes = [...results, ...changed];
    if (pending.size > 0) for (const storage of writes) storage.dependOn([...pending]);
    const [, first, last] = this.outcome;
    noteEncoded(this.context, {
      tickets: { first: Number(first), last: Number(last) },
      reads,
      writes,
      isFinal: true,
      recompute() {
        throw new BackendError(
          "compile",
          "lost",
          "a command buffer of a compiled call failed, so its results and the state that it changed are lost; load " +
            "the state again",
        );
      },
    });
  }

  /** Describes the program for a file. @throws {CompileError} `unsaved` */
  override describe(): SavedDispatches {
    const { recording } = this.taken;
    if (this.contents.length > 0 || this.live.some(({ step }) => step === undefined))
      throw unsaved("it continues a cache of keys and values");
    if (this.steps.length > 0) throw unsaved("it calls step() of an optimizer");
    if (this.changesGradients) throw unsaved("it sets gradients");
    const { isFused, isFast } = this.options;
    return { backend: "metal", recording, advances: this.advances, result: this.result, isFused, isFast };
  }

  override dispose(): void {
    this.program.dispose();
    for (const spare of this.spares) spare?.release();
  }
}

/** Returns the memory of a storage on the device. Moves the storage there first if necessary. */
function residentMemory(storage: Storage): MetalMemory {
  if (storage.memory.device !== "metal") metalBackend.makeResident({ storage } as Tensor);
  return storage.memory as MetalMemory;
}
