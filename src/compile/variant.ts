/** A recorded function for one layout of arguments and state, and its replay. */
import { setCapture } from "../observe/capture.ts";
import { detach } from "../ops/gradient/backward.ts";
import type { MemoryDevice } from "../tensor/memory.ts";
import type { Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { dumpSources } from "./dump.ts";
import { CompileError } from "./errors.ts";
import {
  fromFirst,
  type GradientChange,
  type ProgramFacts,
  type Recorded,
  type Replay,
  type ResultLeaf,
  RUN_PLAINLY,
  type Seam,
  type Taken,
  viewOfInput,
} from "./replay.ts";
import type { State } from "./state.ts";
import { hasLayout, type Layout, layoutOf, leavesOf, mismatch, objectsIn, type Tree, treeOf, valueIn } from "./tree.ts";

/** Maximum number of recordings. By then, two successive ones must have been equal. */
const MOST_RECORDINGS = 5;

/** Frames of stack traces during a recording: enough to reach the caller's line from within the library. */
const STACK_FRAMES = 60;

export interface VariantOptions {
  readonly inputs: Tree<Layout>;
  readonly modes: number;
  readonly isFused: boolean;
  readonly isFast: boolean;
  /** The folder for the sources of generated kernels. */
  readonly dump: string | undefined;
  readonly seam: Seam;
}

export class Variant {
  /** Replays so far. */
  replays = 0;
  private recordings = 0;
  private last: Taken | null = null;
  private replay: Replay | null = null;
  /** The recording that {@link replay} was made from. */
  private compiled: Taken | null = null;
  private readonly layouts: readonly Layout[];
  private readonly parameters: readonly Tensor[];
  private readonly found: Tensor[] = [];
  /** The parameters' gradients after the last recording. */
  private gradientsAfter: readonly (Tensor | null)[] = [];
  /** Why the function can't be replayed; its calls run plainly. */
  private whyNever: string | undefined;
  /** Why the last call could not be recorded. */
  private whyRecorded: string | undefined;
  /** Why there is no program yet. */
  why = "";

  constructor(
    private readonly fn: (...values: never[]) => unknown,
    private readonly state: State,
    private readonly options: VariantOptions,
  ) {
    this.layouts = leavesOf(options.inputs);
    this.parameters = [...state.tensors()];
  }

  get program(): ProgramFacts | null {
    return this.replay?.program ?? null;
  }

  /** Why the last call must run plainly, if {@link run} returned {@link RUN_PLAINLY}. */
  get whyPlain(): string {
    return this.whyNever ?? this.whyRecorded ?? this.replay?.whyPlain ?? "";
  }

  /** Returns why a call does not fit; undefined if it does. */
  mismatch(values: readonly unknown[], modes: number): string | undefined {
    this.found.length = 0;
    const { options, found } = this;
    if (modes !== options.modes) return "the backend, noGrad or strict mode differs";
    const why = mismatch(options.inputs, values, found) ?? options.seam.whyUnfit(found, this.layouts);
    if (why !== undefined) return why;
    const taken = this.compiled ?? this.last;
    if (!taken) return undefined;
    const changed = this.compiled?.snapshot.changed();
    if (changed !== undefined) return `${changed} has changed`;
    for (let at = 0; at < this.parameters.length; at++) {
      const { grad } = this.parameters[at];
      const { before } = taken.gradients[at];
      if (grad === null ? before !== null : before === null || !isGradientLike(grad, before))
        return "the gradient of a parameter has another layout";
    }
    return !this.compiled || this.replay!.bind() ? undefined : "the memory of a tensor has changed";
  }

  /** Runs the function for a call that fits: records it, or replays the recording. */
  run(values: readonly unknown[]): unknown {
    if (this.whyNever !== undefined) return RUN_PLAINLY;
    this.whyRecorded = this.replay ? undefined : this.options.seam.whyPlain(this.found, this.state);
    if (this.whyRecorded !== undefined) return RUN_PLAINLY;
    if (!this.replay) return this.record(values);
    const result = this.replay.run(this.found);
    if (result === RUN_PLAINLY) return result;
    this.replays++;
    for (const at of this.compiled!.disposed) this.found[at].dispose();
    return result;
  }

  // ------------------------------------------------------------------ recording

  private record(values: readonly unknown[]): unknown {
    // the next recording may differ because of the caller's change
    if (this.last && this.hasChangedSince(this.last)) this.recordings = 1;
    if (this.recordings >= MOST_RECORDINGS) throw this.unstableError();
    const taken = this.take(values);
    this.recordings++;
    this.whyNever = taken.recording.why;
    if (this.whyNever !== undefined) return taken.value;
    const { seam, isFused, isFast, dump } = this.options;
    const why = this.last ? (taken.recording.unstable ?? differenceOf(this.last, taken, seam)) : "it has run once";
    if (why === undefined) {
      this.replay = seam.compile(taken, { parameters: this.parameters, isFused, isFast });
      this.compiled = taken; // the next call binds memory: the function may have removed gradients
      if (dump !== undefined) dumpSources(dump, this.replay.program.sources);
    }
    this.why = why ?? "";
    this.last = this.compiled ? null : taken;
    this.gradientsAfter = this.last ? this.parameters.map(({ grad }) => grad) : [];
    if (!this.compiled && this.recordings >= MOST_RECORDINGS) throw this.unstableError();
    return taken.value;
  }

  /** Whether the caller changed the state after a recording, so that the next one may differ. */
  private hasChangedSince({ snapshot }: Taken): boolean {
    return snapshot.changed() !== undefined || this.parameters.some(({ grad }, at) => grad !== this.gradientsAfter[at]);
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
    const { seam } = this.options;
    const stand = originals.map((tensor) => seam.standIn(tensor));
    let next = 0;
    const given = treeOf(values, () => stand[next++]);
    const before = this.parameters.map(gradientBefore);
    const recording = seam.record(
      this.state,
      stand,
      before.map((grad) => grad?.tensor ?? null),
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
    this.refuseObjects(recording, value);
    recording.finish(this.allowedStorages());
    const changed = started.changed();
    if (changed !== undefined) recording.unstable ??= `${changed} changes during the call`;
    const gradients = this.parameters.map((parameter, at) => gradientChange(recording, before[at]!, parameter));
    const leafOf = (tensor: Tensor): ResultLeaf => this.resultLeaf(recording, tensor, stand);
    const result = treeOf(value, leafOf);
    const returned = this.returned(value, stand, originals);
    const disposed = [...stand.keys()].filter((at) => stand[at].isDisposed);
    for (const tensor of stand) tensor.dispose();
    for (const at of disposed) originals[at].dispose();
    return { recording, value: returned, snapshot: this.state.snapshot(), result, gradients, disposed };
  }

  /** A result in a Map or in an instance of a class would have the tensors of the recorded call in each replay. */
  private refuseObjects(recording: Recorded, value: unknown): void {
    const known = [...this.state.modules, ...this.state.optimizers, ...this.state.caches] as object[];
    const other = objectsIn(treeOf(value, (tensor) => tensor)).find((object) => !known.includes(object));
    if (other) recording.unsupported(`a result is an object of ${other.constructor?.name ?? "a class"}`);
  }

  /** The storages that the function may change. */
  private allowedStorages(): Set<Storage> {
    const { state } = this;
    const tensors = [...state.tensors(), ...state.optimizerTensors(), ...state.cachedTensors()];
    return new Set(tensors.map(({ storage }) => storage));
  }

  private resultLeaf(recording: Recorded, tensor: Tensor, stand: readonly Tensor[]): ResultLeaf {
    const layout = layoutOf(tensor);
    const index = stand.findIndex(({ storage }) => storage === tensor.storage);
    const first = stand[index];
    if (first) return { layout: fromFirst(layout, first), from: "input", index, isSame: first === tensor };
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
      const first = stand[index];
      return first === tensor ? originals[index] : viewOfInput(originals[index], fromFirst(layoutOf(tensor), first));
    });
  }

  /** Saves the program. @throws {CompileError} @throws {FileError} */
  async save(path: string): Promise<void> {
    const parts = this.replay!.describe();
    const { saveProgram } = await import("./saved/save.ts");
    await saveProgram(path, parts, this.options.inputs);
  }

  dispose(): void {
    this.replay?.dispose();
    this.replay = null;
  }
}

function differenceOf(before: Taken, after: Taken, { difference }: Seam): string | undefined {
  const results = [before, after].map(({ result, gradients }) =>
    JSON.stringify([result, gradients], (key, value: unknown) => (key === "tensor" ? 0 : entryIndex(value))),
  );
  const tensors = ({ result }: Taken) =>
    leavesOf(result).map((leaf) => (leaf.from === "tensor" ? leaf.tensor.storage : null));
  if (results[0] !== results[1]) return "the results or the gradients differ";
  if (String(before.disposed) !== String(after.disposed)) return "the disposed arguments differ";
  const [first, second] = [tensors(before), tensors(after)];
  if (first.some((storage, at) => storage !== second[at])) return "another tensor of the surrounding code is returned";
  return difference(before.recording, after.recording);
}

/** Entries are compared by their indices. Numbers are printed in a way that preserves NaN and −0. */
function entryIndex(value: unknown): unknown {
  if (typeof value === "number" || typeof value === "bigint" || value === undefined) return `${typeof value} ${value}`;
  if (typeof value === "object" && value !== null && "source" in value && "id" in value) return `entry ${value.id}`;
  return value;
}

function gradientChange(recording: Recorded, before: GradientBefore | null, { grad }: Tensor): GradientChange {
  const old = before && { ...before.layout, bytes: before.bytes, device: before.device };
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
  readonly device: MemoryDevice;
}

function gradientBefore({ grad }: Tensor): GradientBefore | null {
  if (grad === null) return null;
  const { byteLength: bytes, device } = grad.storage.memory;
  return { tensor: grad, layout: layoutOf(grad), bytes, device };
}

const isGradientLike = (grad: Tensor, before: NonNullable<GradientChange["before"]>): boolean =>
  !grad.isDisposed &&
  grad.offset === before.offset &&
  hasLayout(grad, before) &&
  grad.storage.memory.device === before.device &&
  grad.storage.memory.byteLength === before.bytes;
