/** Code that all backends share for replays: the parts of a recorded call, and the construction of its results. */
import type { Generator } from "../random/generator.ts";
import { callKey, type PhiloxKey } from "../random/philox.ts";
import { bytesOf } from "../tensor/dtype.ts";
import type { MemoryDevice } from "../tensor/memory.ts";
import { reachOf } from "../tensor/reach.ts";
import type { Storage } from "../tensor/storage.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { CompileError } from "./errors.ts";
import type { Entry } from "./recording.ts";
import type { State, StateSnapshot } from "./state.ts";
import type { Tracking } from "./tracking.ts";
import { type Layout, type Tree, valueIn } from "./tree.ts";

/** Returned by {@link Replay.run} if the call must run without the program, such as after a failed check. */
export const RUN_PLAINLY = Symbol("run plainly");

/** A tensor of a result: where its memory comes from. */
export type ResultLeaf = { readonly layout: Layout } & (
  | { readonly from: "entry"; readonly entry: Entry }
  | { readonly from: "input"; readonly index: number; readonly isSame: boolean }
  | { readonly from: "gradient"; readonly index: number }
  | { readonly from: "tensor"; readonly tensor: Tensor; readonly isSame: boolean }
  | { readonly from: "state"; readonly storage: Storage }
);

/** The gradient of a parameter before and after the function. */
export interface GradientChange {
  readonly before: (Layout & { readonly bytes: number; readonly device: MemoryDevice }) | null;
  /** The new gradient's entry; `"kept"` for the same tensor, null for none. */
  readonly after: { readonly entry: Entry; readonly layout: Layout } | "kept" | null;
  readonly disposesBefore: boolean;
}

/** A recording of a function on one backend. */
export interface Recorded extends Tracking {
  readonly entries: readonly Entry[];
  /** Returns the entry of a result's storage. No recorded call needs to access it. */
  adopt(storage: Storage): Entry;
  /** Ends the recording. @throws {CompileError} if the function changed tensors that are not in its state */
  finish(allowed: ReadonlySet<Storage>): void;
}

/** A recorded call. */
export interface Taken<Recording extends Recorded = Recorded> {
  readonly recording: Recording;
  readonly value: unknown;
  readonly snapshot: StateSnapshot;
  readonly result: Tree<ResultLeaf>;
  readonly gradients: readonly GradientChange[];
  /** The indices of the arguments that the function disposes of. */
  readonly disposed: readonly number[];
}

/** A backend whose calls can be recorded and replayed. */
export interface Seam<Recording extends Recorded = Recorded> {
  /** Whether a tensor may be an argument. */
  accepts(tensor: Tensor): boolean;
  /** Returns a stand-in: a tensor over the memory of an argument, by which a recording recognizes the argument. */
  standIn(tensor: Tensor): Tensor;
  /** Starts a recording. @param stand the arguments' stand-ins @param gradients the parameters' gradients */
  record(state: State, stand: readonly Tensor[], gradients: readonly (Tensor | null)[]): Recording;
  /** Returns how two recordings differ; undefined if they are equal. */
  difference(before: Recording, after: Recording): string | undefined;
  /** Compiles a recording to a program. */
  compile(taken: Taken<Recording>, options: ReplayOptions): Replay;
  /** Returns why a program can't use arguments whose layouts match its recording's; undefined if it can. */
  whyUnfit(found: readonly Tensor[], inputs: readonly Layout[]): string | undefined;
  /** Returns why a call with these arguments can't be recorded; undefined if it can. */
  whyPlain(found: readonly Tensor[], state: State): string | undefined;
}

/** The parts of a recorded call from which a replay is made. */
export interface ReplayParts extends Pick<Taken, "result" | "gradients"> {
  readonly recording: Pick<Recorded, "advances">;
}

export interface ReplayOptions {
  readonly parameters: readonly Tensor[];
  readonly isFused: boolean;
  /** Whether fusion may change the last bits of results. */
  readonly isFast: boolean;
}

/** The text of a generated kernel. */
export interface GeneratedSource {
  readonly kernel: string;
  readonly text: string;
}

/** A program as text: see `explain.ts`. */
export interface ProgramFacts {
  readonly calls: readonly { readonly name: string }[];
  /** The recorded calls that each call of the program performs, in the program's order. */
  readonly performed: readonly (readonly number[])[];
  /** The generated kernels. */
  readonly sources: readonly GeneratedSource[];
  readonly arenaBytes: number;
  /** Bytes that the calls read and write, without and with fusion: the sum of the operands' bytes over all calls. */
  readonly bytesMoved: { readonly plain: number; readonly fused: number };
}

/** A draw of random numbers in a program. */
export interface ProgramDraw {
  readonly generator: Generator;
  readonly ahead: bigint;
  readonly places: readonly number[];
}

/** A program and its replays. */
export abstract class Replay {
  abstract readonly program: ProgramFacts;
  /** Why the last replay asked for a plain run. */
  whyPlain = "";
  protected readonly parameters: readonly Tensor[];
  protected readonly result: Tree<ResultLeaf>;
  private readonly gradients: readonly GradientChange[];
  protected readonly advances: readonly { readonly generator: Generator; readonly count: bigint }[];

  protected constructor({ recording, result, gradients }: ReplayParts, { parameters }: ReplayOptions) {
    [this.result, this.gradients, this.parameters] = [result, gradients, parameters];
    this.advances = recording.advances();
  }

  /** Finds the memory of tensors from outside the function. Returns false if the program can't use it. */
  abstract bind(): boolean;
  /** Replays a call with these arguments. Returns {@link RUN_PLAINLY} if it must run without the program. */
  abstract run(found: readonly Tensor[]): unknown;
  /** Returns the program's parts to save in a file. @throws {CompileError} `unsaved` if it can't be saved */
  abstract describe(): Saved;
  abstract dispose(): void;

  /** Whether a call replaces or removes gradients. */
  protected get changesGradients(): boolean {
    return this.gradients.some(({ before, after }) => after !== "kept" && (before !== null || after !== null));
  }

  /** Serves the keys of the random calls, in the generators' order, and advances the generators. */
  protected advanceGenerators(draws: readonly ProgramDraw[], write: (at: number, key: PhiloxKey) => void) {
    const used = [...draws, ...this.advances];
    const states = new Map(used.map(({ generator }) => [generator, generator.getState()]));
    for (const { generator, ahead, places } of draws) {
      const { seed, offset } = states.get(generator)!;
      const key = callKey(seed, BigInt.asUintN(64, offset + ahead));
      for (const at of places) write(at, key);
    }
    for (const { generator, count } of this.advances) {
      const before = states.get(generator)!;
      generator.setState({ seed: before.seed, offset: BigInt.asUintN(64, before.offset + count) });
    }
    return states;
  }

  /** Sets the gradients, and returns the result. */
  protected finish(found: readonly Tensor[], created: ReadonlyMap<Entry, Storage>): unknown {
    const { gradients, parameters } = this;
    for (let at = 0; at < gradients.length; at++) setGradient(gradients[at], parameters[at], created);
    return valueIn(this.result, (leaf) => this.resultOf(leaf, found, created));
  }

  private resultOf(leaf: ResultLeaf, found: readonly Tensor[], created: ReadonlyMap<Entry, Storage>): Tensor {
    const { layout } = leaf;
    if (leaf.from === "entry") return tensorIn(created.get(leaf.entry)!, layout);
    if (leaf.from === "gradient") return this.parameters[leaf.index].grad!;
    if (leaf.from === "state") return tensorIn(leaf.storage, layout);
    if (leaf.from === "tensor") return leaf.isSame ? leaf.tensor : tensorIn(leaf.tensor.storage, layout);
    const input = found[leaf.index];
    return leaf.isSame ? input : viewOfInput(input, layout);
  }
}

/** The memory of a slot in a saved program. */
export type SavedSlot =
  | { readonly kind: "input"; readonly index: number }
  | { readonly kind: "state" | "result"; readonly index: number; readonly bytes: number }
  | { readonly kind: "arena"; readonly offset: number; readonly bytes: number }
  | { readonly kind: "constant"; readonly index: number; readonly changes: boolean }
  | { readonly kind: "unused" };

/** The parts of a program that are stored in a file. */
export interface Saved {
  readonly backend: "cpu" | "metal";
  readonly advances: readonly { readonly generator: Generator; readonly count: bigint }[];
  readonly result: Tree<ResultLeaf>;
}

/** The parts of a program on cpu that are stored in a file. */
export interface SavedParts extends Saved {
  readonly backend: "cpu";
  readonly words: Int32Array;
  readonly blocks: Float64Array;
  readonly arenaBytes: number;
  readonly slots: readonly SavedSlot[];
  readonly constants: readonly Uint8Array[];
  readonly state: readonly Storage[];
  /** The results' entries, and the contents that JavaScript computed; null for other results. */
  readonly results: readonly Entry[];
  readonly contents: readonly (Uint8Array | null)[];
  readonly draws: readonly ProgramDraw[];
}

/** Returns the error of a function that can't be saved. */
export const unsaved = (why: string): CompileError =>
  new CompileError("CompiledFunction.save", "unsaved", `the function can't be saved: ${why}`);

/** Returns the entries that outlive the function. */
export function lastingEntries(result: readonly ResultLeaf[], gradients: readonly GradientChange[]): Set<Entry> {
  const results = new Set<Entry>();
  for (const leaf of result) if (leaf.from === "entry") results.add(leaf.entry);
  for (const { after } of gradients) if (after && after !== "kept") results.add(after.entry);
  return results;
}

function setGradient(change: GradientChange, parameter: Tensor, created: ReadonlyMap<Entry, Storage>): void {
  const { after, before, disposesBefore } = change;
  if (after === "kept" || (before === null && after === null)) return;
  const old = parameter.grad;
  parameter.grad = after && keep(tensorIn(created.get(after.entry)!, after.layout));
  if (disposesBefore) old?.dispose();
}

const tensorIn = (storage: Storage, { dtype, shape, strides, offset }: Layout): Tensor =>
  new Tensor(storage, dtype, shape, strides, offset);

/** Returns a view of an argument, whose layout counts its offset from the argument's first element in memory. */
export function viewOfInput(input: Tensor, { dtype, shape, strides, offset }: Layout): Tensor {
  const base = reachOf(input).first * bytesOf(input.dtype);
  return new Tensor(input.storage, dtype, shape, strides, base / bytesOf(dtype) + offset);
}

/** Returns a layout whose offset counts from the first element of a stand-in. */
export function fromFirst(layout: Layout, stand: Tensor): Layout {
  const base = reachOf(stand).first * bytesOf(stand.dtype);
  return { ...layout, offset: layout.offset - base / bytesOf(layout.dtype) };
}
