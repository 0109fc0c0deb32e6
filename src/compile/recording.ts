/** Records a run of a function: the calls of the cpu dylib in order, with the storages that they access. */
import { lastElement } from "../core/collections.ts";
import type { CapturedCall } from "../observe/capture.ts";
import { within } from "../observe/within.ts";
import type { Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { CompileError, placeIn } from "./errors.ts";
import type { State } from "./state.ts";
import { Tracking } from "./tracking.ts";

/**
 * Where the memory of an operand comes from: an argument, the gradient of a parameter from an earlier call, a tensor
 * from before the call, elements that JavaScript wrote during it, an array, or a result of a recorded call.
 */
export type Source = "input" | "gradient" | "external" | "host" | "array" | "computed";

/** Memory that recorded calls access. */
export interface Entry {
  readonly source: Source;
  readonly id: number;
  /** The index of the argument or of the parameter. */
  readonly index: number;
  readonly bytes: number;
  /** The storage; null for an array. */
  readonly storage: Storage | null;
  /** The version at the first access. */
  readonly version: number;
  /** The contents before the first access, for entries of kind `host` and `array`. */
  readonly contents: Uint8Array | null;
  /** The contents of an array after its call. */
  after: Uint8Array | null;
  /** The indices of the first and the last call that access it. */
  readonly first: number;
  last: number;
  /** Changes of the version during the recording. */
  changes: number;
}

export interface RecordedCall {
  readonly call: Pick<CapturedCall, "description" | "ordinal" | "rows">;
  /** The blocks of all rows, each followed by the operands' sizes. */
  readonly block: Float64Array;
  /** The entry of each operand; null for an omitted one. */
  readonly operands: readonly (Entry | null)[];
  /** The operation in the program, for messages. */
  readonly name: string;
  readonly place: Error;
}

/** The operations of one call of a function. */
export class Recording extends Tracking {
  readonly calls: RecordedCall[] = [];
  readonly entries: Entry[] = [];
  private readonly byStorage = new Map<Storage, Entry>();
  /** Arrays whose contents each replay recomputes. */
  private readonly liveArrays = new Map<Entry, () => NodeJS.TypedArray | undefined>();
  private readonly hostWritten = new Set<Storage>();
  private isInCall = false;

  /**
   * @param inputs the storages of the arguments
   * @param gradients the storages of the parameters' gradients
   */
  constructor(
    state: State,
    private readonly inputs: ReadonlyMap<Storage, number>,
    private readonly gradients: ReadonlyMap<Storage, number>,
  ) {
    super(state);
  }

  call(call: CapturedCall, run: () => number, block: () => Float64Array): number {
    const index = this.calls.length;
    const count = call.description.operands.length * Math.max(call.rows, 1); // trailing operands may be omitted
    const operands = Array.from({ length: count }, (_, at) => this.entryOf(call.operands[at], index));
    this.isInCall = true;
    let status: number;
    try {
      status = run();
    } finally {
      this.isInCall = false;
    }
    const name = `${within.get()}${call.description.name}`;
    if (status !== 0) return status;
    const { length, operands: names } = call.description;
    const rows = Math.max(call.rows, 1);
    const written = block().slice(0, rows * (length + names.length));
    for (const [at, operand] of call.operands.entries()) this.sawArray(operand, operands[at]!);
    const { description, ordinal } = call;
    this.calls.push({
      call: { description, ordinal, rows: call.rows },
      block: written,
      operands,
      name,
      place: new Error(),
    });
    this.linkKeys(written, index);
    this.linkRows(call, index);
    return status;
  }

  private entryOf(operand: unknown, call: number): Entry | null {
    if (operand === undefined) return null;
    if (!isTensor(operand)) return this.arrayEntry(operand as NodeJS.TypedArray, call);
    const { storage } = operand;
    const known = this.byStorage.get(storage);
    if (known) {
      known.last = call;
      return known;
    }
    const entry = this.add({ ...this.sourceOf(storage), storage, version: storage.version, first: call });
    this.byStorage.set(storage, entry);
    return entry;
  }

  private sourceOf(storage: Storage): Pick<Entry, "source" | "index" | "bytes" | "contents"> {
    const { memory } = storage;
    if (memory.device !== "host") this.unstable ??= "a tensor is in the memory of another device";
    const bytes = memory.hostBytes();
    const plain = { index: 0, bytes: bytes.byteLength, contents: null };
    const input = this.inputs.get(storage);
    if (input !== undefined) return { ...plain, source: "input", index: input };
    const gradient = this.gradients.get(storage);
    if (gradient !== undefined) return { ...plain, source: "gradient", index: gradient };
    if (storage.serial < this.firstSerial) return { ...plain, source: "external" };
    if (this.hostWritten.has(storage)) return { ...plain, source: "host", contents: bytes.slice() };
    return { ...plain, source: "computed" };
  }

  private arrayEntry(array: NodeJS.TypedArray, call: number): Entry {
    const { buffer, byteOffset, byteLength } = array;
    const contents = new Uint8Array(buffer, byteOffset, byteLength).slice();
    const plain = { source: "array", index: 0, bytes: byteLength, storage: null, version: 0 } as const;
    const entry = this.add({ ...plain, contents, first: call });
    const live = this.contents.get(array);
    if (live) this.liveArrays.set(entry, live);
    return entry;
  }

  /** Returns the entries whose contents each replay recomputes, and how. */
  liveContentsOf(): Map<Entry, () => NodeJS.TypedArray | undefined> {
    const found = new Map(this.liveArrays);
    for (const entry of this.entries) {
      const live = entry.storage && this.contents.get(entry.storage);
      if (live) found.set(entry, live);
    }
    return found;
  }

  private sawArray(operand: unknown, entry: Entry | null): void {
    if (entry?.source !== "array") return;
    const { buffer, byteOffset, byteLength } = operand as NodeJS.TypedArray;
    entry.after = new Uint8Array(buffer, byteOffset, byteLength).slice();
  }

  private add(entry: Omit<Entry, "id" | "last" | "changes" | "after">): Entry {
    const made: Entry = { ...entry, id: this.entries.length, last: entry.first, changes: 0, after: null };
    this.entries.push(made);
    return made;
  }

  /** Finds the keys of random calls in a block: two words of 32 bits, which no other numbers equal by chance. */
  private linkKeys(block: Float64Array, call: number): void {
    if (this.keys.size === 0) return;
    for (let at = 0; at + 1 < block.length; at++) {
      const known = this.keys.get(block[at]);
      if (known && block[at + 1] === known.second) known.draw.places.push({ call, at });
    }
  }

  private linkRows({ description, rows }: CapturedCall, call: number): void {
    if (this.liveRows?.name !== description.name || rows === 0) return;
    const { rows: values } = this.liveRows;
    this.liveRows = null;
    lastElement(this.steps).rows.push({ call, values, keys: Object.keys(values()[0]) });
  }

  dispatched(): void {
    this.unstable ??= "a kernel ran on another device";
  }

  accessed(storage: object): void {
    if (this.isInCall) return;
    const given = storage as Storage;
    if (given.serial >= this.firstSerial && !this.byStorage.has(given) && !this.inputs.has(given))
      this.hostWritten.add(given);
    else throw this.accessRefusal();
  }

  /** Returns the entry of a result's storage, even if no recorded call accesses it. */
  adopt(storage: Storage): Entry {
    const known = this.byStorage.get(storage);
    if (known) return known;
    const entry = this.add({ ...this.sourceOf(storage), storage, version: storage.version, first: this.calls.length });
    this.byStorage.set(storage, entry);
    return entry;
  }

  /** Ends the recording. @throws {CompileError} if the function changed tensors that are not in its state */
  finish(allowed: ReadonlySet<Storage>): void {
    for (const entry of this.entries) {
      if (!entry.storage) continue;
      entry.changes = entry.storage.version - entry.version;
      if (entry.changes === 0 || entry.source === "computed" || entry.source === "gradient") continue;
      if (entry.source === "external" && allowed.has(entry.storage)) continue;
      if (entry.source === "host") continue;
      const what = entry.source === "input" ? `argument ${entry.index}` : "a tensor that is not in its state";
      const { name, place } = this.calls[entry.last];
      throw new CompileError(
        "compile",
        "writes",
        `the function changes ${what} in place${placeIn(place)}, last in ${name}; add the tensor to the state, or ` +
          "change a clone()",
      );
    }
    this.refuseGradients(allowed);
    this.refuseLostDraws();
  }
}

const isTensor = (operand: unknown): operand is Tensor =>
  typeof operand === "object" && operand !== null && "storage" in operand;
