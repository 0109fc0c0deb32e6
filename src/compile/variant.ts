/** A recorded function for one layout of arguments and state, and its replay. */
import { ptr } from "bun:ffi";
import { cpuLibrary } from "../backend/cpu/loader.ts";
import { errorOf } from "../backend/cpu/status.ts";
import { setCapture } from "../observe/capture.ts";
import { detach } from "../ops/gradient/backward.ts";
import { callKey } from "../random/philox.ts";
import { bytesOf } from "../tensor/dtype.ts";
import { allocateHost, type Memory } from "../tensor/memory.ts";
import { reachOf } from "../tensor/reach.ts";
import { Storage } from "../tensor/storage.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { difference } from "./difference.ts";
import { CompileError } from "./errors.ts";
import { Program } from "./program.ts";
import { type Entry, Recording } from "./recording.ts";
import type { State, StateSnapshot } from "./state.ts";
import { hasLayout, type Layout, layoutOf, leavesOf, mismatch, type Tree, treeOf, valueIn } from "./tree.ts";

/** Returned by {@link Variant.replay} if the call must run plainly, since a check of its values differed. */
export const RUN_PLAINLY = Symbol("run plainly");

/** Recordings after which a function must have done the same twice in a row. */
const MOST_RECORDINGS = 5;

/** Frames of stack traces during a recording: enough to reach the caller's line from within the library. */
const STACK_FRAMES = 60;

/** A tensor of a result: where its memory comes from. */
type ResultLeaf = { readonly layout: Layout } & (
  | { readonly from: "entry"; readonly entry: Entry }
  | { readonly from: "input"; readonly index: number; readonly isSame: boolean }
  | { readonly from: "gradient"; readonly index: number }
  | { readonly from: "tensor"; readonly tensor: Tensor; readonly isSame: boolean }
);

/** The gradient of a parameter before and after the function. */
interface GradientChange {
  readonly before: (Layout & { readonly bytes: number }) | null;
  /** The new gradient's entry; `"kept"` for the same tensor, null for none. */
  readonly after: { readonly entry: Entry; readonly layout: Layout } | "kept" | null;
  readonly disposesBefore: boolean;
}

interface External {
  readonly storage: Storage;
  readonly slot: number;
  readonly bytes: number;
  readonly changes: number;
  memory: Memory | null;
}

/** The parts of a variant that a replay needs. */
interface Compiled {
  readonly program: Program;
  readonly snapshot: StateSnapshot;
  readonly result: Tree<ResultLeaf>;
  readonly created: readonly { readonly entry: Entry; readonly bytes: number; readonly contents: Uint8Array | null }[];
  readonly inputs: readonly { readonly slot: number; readonly index: number }[];
  readonly gradientSlots: readonly { readonly slot: number; readonly index: number; readonly changes: number }[];
  readonly externals: readonly External[];
  readonly gradients: readonly GradientChange[];
  readonly advances: readonly { readonly generator: { setState(state: never): unknown }; readonly count: bigint }[];
  /** The first call that changes memory which outlives the function. */
  readonly firstChange: number;
}

interface Taken {
  readonly recording: Recording;
  readonly value: unknown;
  readonly snapshot: StateSnapshot;
  readonly result: Tree<ResultLeaf>;
  readonly gradients: readonly GradientChange[];
}

export interface VariantOptions {
  readonly inputs: Tree<Layout>;
  readonly modes: number;
  readonly isFused: boolean;
}

export class Variant {
  /** Replays so far. */
  replays = 0;
  private recordings = 0;
  private last: Taken | null = null;
  private compiled: Compiled | null = null;
  private readonly inputs: Tree<Layout>;
  private readonly modes: number;
  private readonly isFused: boolean;
  private readonly parameters: readonly Tensor[];
  private readonly found: Tensor[] = [];
  /** Why the last replay asked for a plain run. */
  whyPlain = "";
  /** Why there is no program yet. */
  why = "";

  constructor(
    private readonly fn: (...values: never[]) => unknown,
    private readonly state: State,
    { inputs, modes, isFused }: VariantOptions,
  ) {
    [this.inputs, this.modes, this.isFused] = [inputs, modes, isFused];
    this.parameters = [...state.tensors()];
  }

  get program(): Program | null {
    return this.compiled?.program ?? null;
  }

  /** Returns why a call does not fit; undefined if it does. */
  mismatch(values: readonly unknown[], modes: number): string | undefined {
    this.found.length = 0;
    if (modes !== this.modes) return "noGrad or strict mode differs";
    const why = mismatch(this.inputs, values, this.found);
    if (why !== undefined) return why;
    const { compiled } = this;
    if (!compiled) return undefined;
    const changed = compiled.snapshot.changed();
    if (changed !== undefined) return `${changed} has changed`;
    for (let at = 0; at < this.parameters.length; at++) {
      const { grad } = this.parameters[at]!;
      const { before } = compiled.gradients[at]!;
      if (grad === null ? before !== null : before === null || !isGradientLike(grad, before))
        return "the gradient of a parameter has another layout";
    }
    for (let at = 0; at < compiled.externals.length; at++)
      if (!bindExternal(compiled.externals[at]!, compiled.program.addresses))
        return "the memory of a tensor has changed";
    return undefined;
  }

  /** Runs the function for a call that fits: records it, or replays the recording. */
  run(values: readonly unknown[]): unknown {
    return this.compiled ? this.replay(this.compiled) : this.record(values);
  }

  // ------------------------------------------------------------------ recording

  private record(values: readonly unknown[]): unknown {
    if (this.recordings >= MOST_RECORDINGS) throw this.unstableError();
    const taken = this.take(values);
    this.recordings++;
    const why = this.last ? (taken.recording.unstable ?? differenceOf(this.last, taken)) : "it has run once";
    if (why === undefined) this.compiled = this.compile(taken);
    this.why = why ?? "";
    this.last = this.compiled ? null : taken;
    if (!this.compiled && this.recordings >= MOST_RECORDINGS) throw this.unstableError();
    return taken.value;
  }

  private unstableError(): CompileError {
    return new CompileError(
      "compile",
      "changes",
      `the function does not do the same in each call: ${this.why}; pass what changes as an argument: a tensor if it ` +
        "changes in each call",
    );
  }

  private take(values: readonly unknown[]): Taken {
    const originals = leavesOf(treeOf(values, (tensor) => tensor));
    const stand = originals.map(standIn);
    let next = 0;
    const given = treeOf(values, () => stand[next++]!);
    const before = this.parameters.map(gradientBefore);
    const recording = new Recording(
      this.state,
      new Map(stand.map(({ storage }, index) => [storage, index])),
      new Map(before.flatMap((grad, index) => (grad ? [[grad.tensor.storage, index] as const] : []))),
    );
    const started = this.state.snapshot();
    let value: unknown;
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = STACK_FRAMES;
    setCapture(recording);
    try {
      value = this.fn(...(valueIn(given, (tensor) => tensor) as never[]));
    } finally {
      setCapture(null);
      Error.stackTraceLimit = stackTraceLimit;
    }
    if (value instanceof Promise)
      throw new CompileError("compile", "async", "the function is asynchronous; compile its synchronous parts");
    recording.finish(this.allowedStorages());
    const changed = started.changed();
    if (changed !== undefined) recording.unstable ??= `${changed} changes during the call`;
    const gradients = this.parameters.map((parameter, at) => gradientChange(recording, before[at]!, parameter));
    const leafOf = (tensor: Tensor): ResultLeaf => this.resultLeaf(recording, tensor, stand);
    const result = treeOf(value, leafOf);
    const returned = this.returned(value, stand, originals);
    for (const tensor of stand) tensor.dispose();
    return { recording, value: returned, snapshot: this.state.snapshot(), result, gradients };
  }

  /** The storages that the function may change. */
  private allowedStorages(): Set<Storage> {
    const tensors = [...this.state.tensors(), ...this.state.optimizerTensors()];
    return new Set(tensors.map(({ storage }) => storage));
  }

  private resultLeaf(recording: Recording, tensor: Tensor, stand: readonly Tensor[]): ResultLeaf {
    const layout = layoutOf(tensor);
    const index = stand.findIndex(({ storage }) => storage === tensor.storage);
    if (index >= 0) return { layout, from: "input", index, isSame: stand[index] === tensor };
    const gradient = this.parameters.findIndex(({ grad }) => grad === tensor);
    if (gradient >= 0) return { layout, from: "gradient", index: gradient };
    if (!recording.isNew(tensor.storage))
      return { layout, from: "tensor", tensor, isSame: this.parameters.includes(tensor) };
    return { layout, from: "entry", entry: recording.adopt(tensor.storage) };
  }

  /** Returns the result of a recorded call: without a graph, and with the arguments instead of their stand-ins. */
  private returned(value: unknown, stand: readonly Tensor[], originals: readonly Tensor[]): unknown {
    const tree = treeOf(value, (tensor) => tensor);
    return valueIn(tree, (tensor) => {
      const index = stand.findIndex(({ storage }) => storage === tensor.storage);
      if (index < 0) return tensor.edge === null ? tensor : detach(tensor);
      return stand[index] === tensor ? originals[index] : viewOfInput(originals[index]!, layoutOf(tensor));
    });
  }

  private compile({ recording, snapshot, result, gradients }: Taken): Compiled {
    const results = new Set<Entry>();
    for (const leaf of leavesOf(result)) if (leaf.from === "entry") results.add(leaf.entry);
    for (const { after } of gradients) if (after && after !== "kept") results.add(after.entry);
    const { entries } = recording;
    const bySource = (source: Entry["source"]) => entries.filter((entry) => entry.source === source);
    const externals = bySource("external").map(
      ({ storage, id, bytes, changes }): External => ({ storage: storage!, slot: id, bytes, changes, memory: null }),
    );
    const lasting = entries.filter(({ source, changes }) => changes > 0 && source !== "computed" && source !== "host");
    const firstChange = Math.min(Infinity, ...lasting.map(({ first }) => first));
    return {
      ...{
        program: new Program(recording, results, this.isFused),
        snapshot,
        result,
        externals,
        gradients,
        firstChange,
      },
      created: [...results].map((entry) => ({ entry, bytes: entry.bytes, contents: entry.contents })),
      inputs: bySource("input").map(({ id, index }) => ({ slot: id, index })),
      gradientSlots: bySource("gradient").map(({ id, index, changes }) => ({ slot: id, index, changes })),
      advances: recording.advances(),
    };
  }

  // ------------------------------------------------------------------ replay

  private replay(compiled: Compiled): unknown {
    const { program, gradients } = compiled;
    const { addresses } = program;
    program.restore();
    for (const { slot, index } of compiled.inputs) addresses[slot] = addressOf(this.found[index]!);
    for (const { slot, index } of compiled.gradientSlots)
      addresses[slot] = ptr(this.parameters[index]!.grad!.storage.hostBytes());
    const created = this.createResults(compiled);
    const states = this.advanceGenerators(compiled);
    this.writeSteps(program);
    const { native } = cpuLibrary();
    const { status, call } = program.run(native);
    if (call < program.calls.length || status !== 0) {
      program.restore(true);
      for (const storage of created.values()) storage.memory.release();
      if (call <= compiled.firstChange) {
        for (const { slots } of program.steps) for (const slot of slots) slot.steps--;
        for (const [generator, state] of states) generator.setState(state as never);
        this.whyPlain = status === 0 ? "a check of the values differed" : errorOf(native, status, "compile").message;
        return RUN_PLAINLY;
      }
      const failed = program.calls[Math.min(call, program.calls.length - 1)]!;
      throw errorOf(native, status, failed.name, failed.call.description.operands);
    }
    this.replays++;
    for (const { storage, changes } of compiled.externals) storage.version += changes;
    for (const { index, changes } of compiled.gradientSlots) this.parameters[index]!.grad!.storage.version += changes;
    for (let at = 0; at < gradients.length; at++) this.setGradient(gradients[at]!, this.parameters[at]!, created);
    return valueIn(compiled.result, (leaf) => this.resultOf(leaf, created));
  }

  private createResults({ created, program }: Compiled): Map<Entry, Storage> {
    const made = new Map<Entry, Storage>();
    for (const { entry, bytes, contents } of created) {
      const memory = allocateHost(bytes);
      const held = memory.hostBytes();
      if (contents) held.set(contents);
      program.addresses[entry.id] = ptr(held);
      made.set(entry, new Storage(memory));
    }
    return made;
  }

  /** Serves the keys of the random calls, in the generators' order, and advances the generators. */
  private advanceGenerators({ program, advances }: Compiled) {
    const states = new Map(program.draws.map(({ generator }) => [generator, generator.getState()]));
    for (const { generator, ahead, places } of program.draws) {
      const { seed, offset } = states.get(generator)!;
      const key = callKey(seed, BigInt.asUintN(64, offset + ahead));
      for (const at of places) program.blocks.set(key, at);
    }
    for (const { generator, count } of advances) {
      const before = states.get(generator as never)!;
      generator.setState({ seed: before.seed, offset: BigInt.asUintN(64, before.offset + count) } as never);
    }
    return states;
  }

  /** Counts the steps of optimizers and writes their coefficients. */
  private writeSteps({ steps, blocks }: Program): void {
    for (const { optimizer, slots, rows } of steps) {
      optimizer.countStep(slots);
      for (const { values, keys, places } of rows)
        for (const [row, numbers] of values().entries())
          for (let at = 0; at < keys.length; at++)
            blocks[places[row]![at]!] = (numbers as Record<string, number>)[keys[at]!]!;
    }
  }

  private setGradient(change: GradientChange, parameter: Tensor, created: ReadonlyMap<Entry, Storage>): void {
    const { after, before, disposesBefore } = change;
    if (after === "kept" || (before === null && after === null)) return;
    const old = parameter.grad;
    parameter.grad = after && keep(tensorIn(created.get(after.entry)!, after.layout));
    if (disposesBefore) old?.dispose();
  }

  private resultOf(leaf: ResultLeaf, created: ReadonlyMap<Entry, Storage>): Tensor {
    const { layout } = leaf;
    if (leaf.from === "entry") return tensorIn(created.get(leaf.entry)!, layout);
    if (leaf.from === "gradient") return this.parameters[leaf.index]!.grad!;
    if (leaf.from === "tensor") return leaf.isSame ? leaf.tensor : tensorIn(leaf.tensor.storage, layout);
    const input = this.found[leaf.index]!;
    return leaf.isSame ? input : viewOfInput(input, layout);
  }

  dispose(): void {
    this.compiled?.program.dispose();
    this.compiled = null;
  }
}

function differenceOf(before: Taken, after: Taken): string | undefined {
  const results = [before, after].map(({ result, gradients }) =>
    JSON.stringify([result, gradients], (key, value: unknown) => (key === "tensor" ? 0 : entryIndex(value))),
  );
  const tensors = ({ result }: Taken) =>
    leavesOf(result).map((leaf) => (leaf.from === "tensor" ? leaf.tensor.storage : null));
  if (results[0] !== results[1]) return "the results or the gradients differ";
  const [first, second] = [tensors(before), tensors(after)];
  if (first.some((storage, at) => storage !== second[at])) return "another tensor of the surrounding code is returned";
  return difference(before.recording, after.recording);
}

/** Entries are compared by their numbers; the numbers of JavaScript are printed so that NaN and -0 are kept. */
function entryIndex(value: unknown): unknown {
  if (typeof value === "number" || typeof value === "bigint" || value === undefined) return `${typeof value} ${value}`;
  if (typeof value === "object" && value !== null && "source" in value && "id" in value) return `entry ${value.id}`;
  return value;
}

function gradientChange(recording: Recording, before: GradientBefore | null, { grad }: Tensor): GradientChange {
  const old = before && { ...before.layout, bytes: before.bytes };
  const disposesBefore = before?.tensor.isDisposed === true;
  if (grad === null) return { before: old, after: null, disposesBefore };
  if (grad === before?.tensor) return { before: old, after: "kept", disposesBefore };
  if (!recording.isNew(grad.storage)) recording.unstable ??= "a gradient is a tensor of the surrounding code";
  return { before: old, after: { entry: recording.adopt(grad.storage), layout: layoutOf(grad) }, disposesBefore };
}

interface GradientBefore {
  readonly tensor: Tensor;
  readonly layout: Layout;
  readonly bytes: number;
}

const gradientBefore = ({ grad }: Tensor): GradientBefore | null =>
  grad && { tensor: grad, layout: layoutOf(grad), bytes: grad.storage.memory.byteLength };

const isGradientLike = (grad: Tensor, before: Layout & { readonly bytes: number }): boolean =>
  !grad.isDisposed &&
  grad.offset === before.offset &&
  hasLayout(grad, before) &&
  grad.storage.memory.device === "host" &&
  grad.storage.memory.byteLength === before.bytes;

/** Sets the address of a tensor whose memory may have been replaced. Returns false if it no longer fits. */
function bindExternal(external: External, addresses: Float64Array): boolean {
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

const tensorIn = (storage: Storage, { dtype, shape, strides, offset }: Layout): Tensor =>
  new Tensor(storage, dtype, shape, strides, offset);

/** Returns a view of an argument, from the layout of the same view of its stand-in. */
function viewOfInput(input: Tensor, { dtype, shape, strides, offset }: Layout): Tensor {
  const base = reachOf(input).first * bytesOf(input.dtype);
  return new Tensor(input.storage, dtype, shape, strides, base / bytesOf(dtype) + offset);
}

/** Returns a tensor over the part of an argument's memory that it covers, so that other calls may have other parts. */
function standIn(tensor: Tensor): Tensor {
  const { dtype, shape, strides, start } = layoutOf(tensor);
  return new Tensor(new Storage(new PartOfMemory(tensor)), dtype, shape, strides, start);
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
