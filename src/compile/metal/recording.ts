/** Records a run of a function on metal: its dispatches, in order, and the memory that they bind. */
import { layouts } from "../../backend/metal/layouts.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { CapturedCall, CapturedDispatch } from "../../observe/capture.ts";
import { within } from "../../observe/within.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import type { Memory } from "../../tensor/memory.ts";
import { reachOf } from "../../tensor/reach.ts";
import type { Storage } from "../../tensor/storage.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { CompileError, placeIn } from "../errors.ts";
import type { Entry } from "../recording.ts";
import type { GeneratedSource, Recorded } from "../replay.ts";
import type { State } from "../state.ts";
import { Tracking } from "../tracking.ts";

/** The byte range of inline parameters in a block. */
export interface Inline {
  readonly at: number;
  readonly length: number;
}

/** A dispatch with the entries of its bindings. */
export interface DeviceCall {
  readonly name: string;
  readonly place: Error;
  /** The block for `orchard_dispatch_encode`, without handles. An argument's offset is relative to its first byte. */
  readonly block: Uint8Array;
  readonly operands: readonly Entry[];
  /** Whether the kernel writes each operand. */
  readonly writes: readonly boolean[];
  readonly kernel: CapturedDispatch["kernel"];
  readonly generated?: GeneratedSource;
  /** The byte offset of each binding in the block. */
  readonly bindings: readonly number[];
  readonly inline: readonly Inline[];
}

/** Parameters of a dispatch that each replay recomputes. */
export interface LiveParameters {
  readonly call: number;
  /** The index of the optimizer's step; undefined if the parameters depend on no optimizer. */
  readonly step: number | undefined;
  /** Returns undefined if the recording does not fit, which only parameters without a step may do. */
  readonly bytes: () => Uint8Array | undefined;
}

/** The check of a number that a kernel writes. The host runs it after the call. */
export interface PositionCheck {
  readonly entry: Entry;
  readonly errorAt: (position: number) => Error | undefined;
}

/** A storage from outside the function, or a parameter's gradient, whose memory the function changes. */
export interface Change {
  readonly storage: Storage;
  /** The index of the gradient's parameter; undefined for other storages. */
  readonly gradient: number | undefined;
  readonly versions: number;
  /** The entry of the storage's new memory; undefined if the function changes the memory in place. */
  readonly after: Entry | undefined;
}

/** A storage whose memory is known before the function runs. */
interface Known {
  readonly source: "input" | "gradient" | "external";
  readonly index: number;
  readonly storage: Storage;
  readonly version: number;
  /** The offset of an argument's first byte; 0 for other storages. */
  readonly base: number;
}

export interface DeviceStart {
  /** The arguments' stand-ins. */
  readonly stand: readonly Tensor[];
  readonly gradients: readonly (Tensor | null)[];
  /** The tensors that the function may change. */
  readonly changing: Iterable<Tensor>;
}

/** The parts of a recording that a program needs. */
export type DeviceFacts = Pick<
  DeviceRecording,
  | ("calls" | "entries" | "parameters" | "checks" | "changes" | "draws" | "steps" | "after" | "contents")
  | ("liveEntries" | "advances")
>;

export class DeviceRecording extends Tracking implements Recorded {
  readonly calls: DeviceCall[] = [];
  readonly entries: Entry[] = [];
  readonly parameters: LiveParameters[] = [];
  readonly checks: PositionCheck[] = [];
  changes: readonly Change[] = [];
  private readonly byMemory = new Map<Memory, Entry>();
  private readonly known = new Map<Memory, Known>();
  private readonly hostWritten = new Set<Storage>();
  private pendingParameters: ((rows: readonly never[]) => Uint8Array) | null = null;
  private pendingBytes: LiveParameters["bytes"] | null = null;
  private pendingChecks: { readonly position: Tensor; readonly errorAt: PositionCheck["errorAt"] }[] = [];

  constructor(state: State, { stand, gradients, changing }: DeviceStart) {
    super(state);
    const know = (tensor: Tensor, source: Known["source"], index: number) => {
      const { storage, dtype } = tensor;
      const { memory, version } = storage;
      const base = source === "input" ? reachOf(tensor).first * bytesOf(dtype) : 0;
      if (!this.known.has(memory)) this.known.set(memory, { source, index, storage, version, base });
    };
    for (const [index, tensor] of stand.entries()) know(tensor, "input", index);
    for (const [index, tensor] of gradients.entries()) if (tensor) know(tensor, "gradient", index);
    for (const tensor of changing) know(tensor, "external", 0);
  }

  /** Called when an operation falls back to the cpu backend. */
  override call({ description }: CapturedCall, run: () => number): number {
    this.unsupported(`${within.get()}${description.name} runs on the cpu backend`);
    return run();
  }

  override dispatched({ name, block, operands, kernel }: CapturedDispatch): void {
    if (this.why !== undefined) return;
    if (operands === undefined) {
      this.unsupported(`the kernel ${name} binds a buffer that does not belong to a tensor`);
      return;
    }
    const bound = operands.map((operand) => operand as { readonly tensor: Tensor; readonly access: string });
    const call = this.calls.length;
    const written = new Set(bound.filter(({ access }) => access === "write").map(({ tensor }) => memoryOf(tensor)));
    const entries = bound.map(({ tensor, access }) => this.entryOf(tensor, access, call, written));
    const own = block.slice();
    const inline = inlineOf(own);
    const bindings = bindingsIn(own);
    for (const [at, place] of bindings.entries())
      setBinding(own, place, this.known.get(memoryOf(bound[at].tensor))?.base ?? 0);
    this.calls.push({
      name: `${within.get()}${name}`,
      place: new Error(),
      block: own,
      operands: entries,
      inline,
      bindings,
      writes: bound.map(({ access }) => access !== "read"),
      kernel,
    });
    this.linkKeys(own, inline, call);
    this.linkParameters(call);
    for (const { position, errorAt } of this.pendingChecks.splice(0))
      this.checks.push({ entry: this.byMemory.get(memoryOf(position))!, errorAt });
  }

  private entryOf(tensor: Tensor, access: string, call: number, written: ReadonlySet<Memory>): Entry {
    const memory = memoryOf(tensor);
    const found = this.byMemory.get(memory);
    if (found) {
      found.last = call;
      return found;
    }
    const { storage } = tensor;
    if (access !== "read") this.refuseOtherState(storage, memory, call);
    const isFirstWritten = written.has(memory) && !this.hostWritten.has(storage);
    return this.add(storage, memory, call, isFirstWritten);
  }

  /** Throws if a call writes a tensor that is neither new nor in the state. */
  private refuseOtherState(storage: Storage, memory: Memory, call: number): void {
    if (this.isNew(storage) || this.known.has(memory)) return;
    const ownsKnown = [...this.known.values()].find((known) => known.storage === storage);
    if (ownsKnown && ownsKnown.source !== "input") return;
    throw writesError(ownsKnown ? `argument ${ownsKnown.index}` : undefined, this.calls[call - 1]);
  }

  /** @param isWritten whether kernels write the storage before they read it */
  private add(storage: Storage, memory: Memory, first: number, isWritten: boolean): Entry {
    if (!(memory instanceof MetalMemory)) this.unsupported("a tensor is in the memory of another device");
    const known = this.known.get(memory);
    const { source, index } = known ?? this.sourceOf(storage, isWritten);
    const contents = source === "host" ? memory.hostBytes().slice(0, (memory as MetalMemory).usedLength) : null;
    const entry: Entry = {
      source,
      index,
      contents,
      first,
      last: first,
      after: null,
      changes: 0,
      id: this.entries.length,
      storage: known?.storage ?? storage,
      version: storage.version,
      bytes: memory.byteLength,
    };
    this.entries.push(entry);
    this.byMemory.set(memory, entry);
    return entry;
  }

  private sourceOf(storage: Storage, isWritten: boolean): Pick<Entry, "source" | "index"> {
    if (isWritten) return { source: "computed", index: 0 };
    return { source: this.isNew(storage) ? "host" : "external", index: 0 };
  }

  /**
   * Finds the keys of random calls in inline parameters. A key has 64 bits, so no other parameter equals it by chance.
   */
  private linkKeys(block: Uint8Array, inline: readonly Inline[], call: number): void {
    if (this.keys.size === 0) return;
    const view = new DataView(block.buffer);
    for (const { at: start, length } of inline)
      for (let at = start; at + 8 <= start + length; at += 4) {
        const known = this.keys.get(view.getUint32(at, true));
        if (known && view.getUint32(at + 4, true) === known.second) known.draw.places.push({ call, at });
      }
  }

  override liveParameters(bytesOf: (rows: readonly never[]) => Uint8Array): void {
    this.pendingParameters = bytesOf;
  }

  override liveBytes(bytes: () => Uint8Array | undefined): void {
    this.pendingBytes = bytes;
  }

  private linkParameters(call: number): void {
    if (this.pendingBytes) this.parameters.push({ call, step: undefined, bytes: this.pendingBytes });
    this.pendingBytes = null;
    const { pendingParameters: bytesOf, liveRows } = this;
    if (bytesOf === null || liveRows === null) return;
    [this.pendingParameters, this.liveRows] = [null, null];
    const bytes = () => bytesOf(liveRows.rows() as readonly never[]);
    this.parameters.push({ call, step: this.steps.length - 1, bytes });
  }

  override checked(position: object, errorAt: PositionCheck["errorAt"]): void {
    this.pendingChecks.push({ position: position as Tensor, errorAt });
  }

  override accessed(storage: object): void {
    if (this.why !== undefined) return;
    const given = storage as Storage;
    const { memory } = given;
    if (this.isNew(given) && !this.byMemory.has(memory) && !this.known.has(memory)) this.hostWritten.add(given);
    else throw this.accessRefusal();
  }

  adopt(storage: Storage): Entry {
    const { memory } = storage;
    const isWritten = !this.hostWritten.has(storage);
    return this.byMemory.get(memory) ?? this.add(storage, memory, this.calls.length, isWritten);
  }

  finish(allowed: ReadonlySet<Storage>): void {
    if (this.why !== undefined) return;
    const before = [...this.known.values()];
    const seen = new Map(before.map(({ storage, version }) => [storage, version]));
    for (const { storage, version } of this.entries)
      if (storage && !this.isNew(storage) && !seen.has(storage)) seen.set(storage, version);
    const inputs = new Map(before.filter(({ source }) => source === "input").map((each) => [each.storage, each.index]));
    const gradients = new Map(
      before.filter(({ source }) => source === "gradient").map(({ storage, index }) => [storage, index]),
    );
    const changes: Change[] = [];
    for (const [storage, version] of seen) {
      if (storage.isReleased || storage.version === version) continue;
      const gradient = gradients.get(storage);
      if (gradient === undefined && !allowed.has(storage))
        throw writesError(inputs.has(storage) ? `argument ${inputs.get(storage)}` : undefined, this.calls.at(-1));
      const { memory } = storage;
      const after = this.known.get(memory)?.storage === storage ? undefined : this.byMemory.get(memory);
      if (!this.known.has(memory) && !after) this.unsupported("the memory of a tensor was replaced");
      changes.push({ storage, gradient, versions: storage.version - version, after });
    }
    this.changes = changes;
    this.refuseGradients(allowed);
    this.refuseLostDraws();
  }
}

function writesError(what: string | undefined, call: DeviceCall | undefined): CompileError {
  const place = call ? `${placeIn(call.place)}, last in ${call.name}` : "";
  return new CompileError(
    "compile",
    "writes",
    `the function changes ${what ?? "a tensor that is not in its state"} in place${place}; add the tensor to the ` +
      "state, or change a clone()",
  );
}

const memoryOf = ({ storage }: Tensor): Memory => storage.memory;

type BlockLayout = (typeof layouts)[keyof typeof layouts];

/** Returns the byte offsets, within a block, of the structs in one of its spans. */
export function placesOf(block: Uint8Array, span: "bindings" | "inlineBytes", { size }: BlockLayout): number[] {
  const view = new DataView(block.buffer);
  const at = layouts.dispatch.offsets[span];
  const [start, bytes] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
  return Array.from({ length: bytes / size }, (_, index) => start + index * size);
}

/** Returns the byte offsets of the bindings in a block. */
export const bindingsIn = (block: Uint8Array): number[] => placesOf(block, "bindings", layouts.binding);

/** Clears a binding's handle, and makes its offset relative to `base`. */
function setBinding(block: Uint8Array, place: number, base: number): void {
  const view = new DataView(block.buffer);
  const { buffer, offset } = layouts.binding.offsets;
  view.setBigUint64(place + buffer, 0n, true);
  view.setBigUint64(place + offset, view.getBigUint64(place + offset, true) - BigInt(base), true);
}

export function inlineOf(block: Uint8Array): Inline[] {
  const view = new DataView(block.buffer);
  return placesOf(block, "inlineBytes", layouts.inline).map((place) => {
    const at = place + layouts.inline.offsets["bytes"];
    return { at: view.getUint32(at, true), length: view.getUint32(at + 4, true) };
  });
}
