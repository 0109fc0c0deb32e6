/** What all recordings track: generators, steps of optimizers, and reasons why calls can't be replayed. */
import type { Capture, CapturedCall, CapturedDispatch } from "../observe/capture.ts";
import type { Slot } from "../optim/slot.ts";
import { Generator, type GeneratorState } from "../random/generator.ts";
import type { PhiloxKey } from "../random/philox.ts";
import { Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { CompileError, placeIn } from "./errors.ts";
import type { Entry } from "./recording.ts";
import type { State, StateOptimizer } from "./state.ts";

/** A number in a block that changes from call to call: a random key, or the coefficients of an optimizer. */
export interface Draw {
  readonly generator: Generator;
  /** The number of the generator's calls since the function began. */
  readonly ahead: bigint;
  /** The places of the key in the recorded blocks. */
  readonly places: { readonly call: number; readonly at: number }[];
}

/** A step of an optimizer: slots whose step is counted, and the rows of calls that have coefficients. */
export interface Step {
  readonly optimizer: StateOptimizer;
  readonly slots: readonly Slot<never>[];
  readonly rows: {
    readonly call: number;
    readonly values: () => readonly object[];
    readonly keys: readonly string[];
  }[];
}

/** A tensor of one number that each replay recomputes. */
export interface LiveScalar {
  /** The index of the optimizer's step. */
  readonly step: number;
  readonly storage: Storage;
  readonly isDouble: boolean;
  readonly value: () => number;
}

/** Returns the memory of a live scalar as an array of one element. */
export const scalarArray = (isDouble: boolean, memory: ArrayBuffer): Float32Array | Float64Array =>
  isDouble ? new Float64Array(memory, 0, 1) : new Float32Array(memory, 0, 1);

/** A generator's state when the function first used it, and the highest offset since then. */
interface GeneratorStart extends GeneratorState {
  highest: bigint;
}

/** Tracks the values that a replay recomputes: the keys of random numbers, and the steps of optimizers. */
export abstract class Tracking implements Capture {
  readonly draws: Draw[] = [];
  readonly steps: Step[] = [];
  readonly scalars: LiveScalar[] = [];
  /** The recomputed contents of storages and arrays. */
  readonly contents = new Map<object, () => NodeJS.TypedArray | undefined>();
  readonly after: (() => void)[] = [];
  protected readonly firstSerial = Storage.nextSerial;
  /** The recorded calls of random number generators, by the first word of their keys. */
  protected readonly keys = new Map<number, { readonly second: number; readonly draw: Draw }>();
  /** The tensors whose gradients the function set, and their gradients before that. */
  private readonly graded = new Map<Tensor, { readonly before: Tensor | null; readonly place: Error }>();
  private readonly starts = new Map<Generator, GeneratorStart>();
  /** Why the calls can't be replayed yet; undefined if they can. */
  unstable: string | undefined;
  /** Why no call of this kind can be replayed; undefined if they can. */
  why: string | undefined;
  protected liveRows: { readonly name: string; readonly rows: () => readonly object[] } | null = null;

  constructor(protected readonly state: State) {}

  abstract call(call: CapturedCall, run: () => number, block: () => Float64Array): number;
  abstract dispatched(dispatch: CapturedDispatch): void;
  abstract accessed(storage: object): void;

  drew(generator: object, key: object): void {
    if (!(generator instanceof Generator)) return;
    const { offset } = generator.getState();
    const start = this.startOf(generator, offset - 1n);
    if (offset > start.highest) start.highest = offset;
    const [first, second] = key as PhiloxKey;
    const ahead = offset - 1n - start.offset;
    const known = this.keys.get(first)?.draw;
    if (known?.generator === generator && known.ahead === ahead) return; // a checkpoint repeats an earlier draw
    if (known) this.unstable ??= "two generators have the same seed";
    const draw: Draw = { generator, ahead, places: [] };
    this.draws.push(draw);
    this.keys.set(first, { second, draw });
  }

  private startOf(generator: Generator, offset: bigint): GeneratorStart {
    const start = this.starts.get(generator) ?? { seed: generator.seed, offset, highest: offset };
    this.starts.set(generator, start);
    return start;
  }

  /** Allows a return to an earlier state of the same call, as a checkpoint does. */
  seeded(generator: object, { seed, offset }: GeneratorState): void {
    if (!(generator instanceof Generator)) return;
    const start = this.startOf(generator, generator.getState().offset);
    if (seed === start.seed && offset >= start.offset && offset <= start.highest) return;
    throw this.refusal("seeded", "the function seeds a random generator", "seed it before the call");
  }

  stepped(optimizer: object, slots: readonly object[]): void {
    const { name, stepKey } = optimizer as StateOptimizer;
    if (stepKey.call(optimizer as StateOptimizer) === null)
      throw this.refusal(
        "read",
        `the function calls step() of ${name}, which reads the loss`,
        "compile the closure that computes the loss and its gradients, and pass it to step() outside of the function",
      );
    if (!(this.state.optimizers as readonly object[]).includes(optimizer))
      throw this.refusal(
        "notState",
        "the function calls step() of an optimizer that is not in its state",
        "add it: compile(fn, { state: [model, optimizer] })",
      );
    this.steps.push({ optimizer: optimizer as StateOptimizer, slots: slots as readonly Slot<never>[], rows: [] });
  }

  accumulated(tensor: object): void {
    const target = tensor as Tensor;
    if (this.isNew(target.storage) || this.graded.has(target)) return;
    this.graded.set(target, { before: target.grad, place: new Error() });
  }

  /** @throws {CompileError} if a tensor outside of the state keeps a gradient that the function has set */
  protected refuseGradients(allowed: ReadonlySet<Storage>): void {
    for (const [{ grad, storage }, { before, place }] of this.graded)
      if (grad !== before && !allowed.has(storage))
        throw new CompileError(
          "compile",
          "notState",
          `the function sets the gradient of a tensor that is not in its state${placeIn(place)}; add the model: ` +
            "compile(fn, { state: [model, optimizer] })",
        );
  }

  live(name: string, rows: () => readonly object[]): void {
    this.liveRows = { name, rows };
  }

  liveScalar(storage: object, isDouble: boolean, value: () => number): void {
    this.scalars.push({ step: this.steps.length - 1, storage: storage as Storage, isDouble, value });
  }

  liveContents(target: object, contents: () => NodeJS.TypedArray | undefined): void {
    this.contents.set(target, contents);
  }

  afterwards(run: () => void): void {
    this.after.push(run);
  }

  /** Returns the live scalars with their entries. Scalars that no call accesses are omitted. */
  liveEntries(entries: readonly Entry[]): (LiveScalar & { readonly entry: Entry })[] {
    return this.scalars.flatMap((scalar) => {
      const entry = entries.find(({ storage }) => storage === scalar.storage);
      return entry ? [{ ...scalar, entry }] : [];
    });
  }

  /** Called if a dispatch has parameters that are computed from the rows of {@link live}. Only devices call it. */
  liveParameters(_bytesOf: (rows: readonly never[]) => Uint8Array): void {
    this.liveRows = null;
  }

  /** Only devices call it. */
  liveBytes(_bytes: () => Uint8Array | undefined): void {
    throw new TypeError("a call of the cpu dylib has no bytes");
  }

  checked(_position: object, _errorAt: (position: number) => Error | undefined): void {
    this.why ??= "values are checked after the call";
  }

  unsupported(why: string): void {
    this.why ??= why;
  }

  /** Whether the storage was created during the recording. */
  isNew(storage: Storage): boolean {
    return storage.serial >= this.firstSerial;
  }

  /** The number of keys that each generator served, and its seed. */
  advances(): { readonly generator: Generator; readonly count: bigint }[] {
    return [...this.starts].map(([generator, { offset }]) => ({
      generator,
      count: generator.getState().offset - offset,
    }));
  }

  /** @throws {CompileError} if the key of a random call is in no recorded number */
  protected refuseLostDraws(): void {
    const lost = this.draws.find(({ places }) => places.length === 0);
    if (lost)
      throw this.refusal(
        "random",
        "the function draws random numbers in JavaScript",
        "draw them before the call, and pass them as a tensor",
      );
  }

  protected accessRefusal(): CompileError {
    return this.refusal(
      "read",
      "the function reads or writes elements of a tensor in JavaScript, as item() does",
      "return the tensor, and read it after the call",
    );
  }

  protected refusal(code: string, what: string, advice: string): CompileError {
    return new CompileError("compile", code, `${what}${placeIn(new Error())}; ${advice}`);
  }
}
