/**
 * The hooks through which `compile` records a function: calls of the cpu dylib, dispatches of kernels, accesses to
 * elements, random numbers, and optimizer steps. Without a recording, `capture` is null and each hook costs one branch.
 */

/** A call of a function of the cpu dylib. */
export interface CapturedCall {
  readonly description: {
    readonly name: string;
    readonly length: number;
    readonly operands: readonly string[];
    readonly fields: readonly { readonly name: string; readonly offset: number }[];
  };
  readonly ordinal: number;
  /** The number of rows; 0 for a call that is not by rows. */
  readonly rows: number;
  /** The values of each row, or of the call. */
  readonly values: readonly unknown[];
  /** The operands of all rows: tensors, typed arrays, or undefined. */
  readonly operands: readonly unknown[];
}

/** A kernel in `kernels/`, as `launch` names it. */
export interface BuiltInKernel {
  readonly file: string;
  readonly name: string;
  readonly constants?: readonly number[];
}

/** A dispatch of a kernel on a device. */
export interface CapturedDispatch {
  /** The kernel's name. */
  readonly name: string;
  /** The block for `orchard_dispatch_encode`. The recording must copy it. */
  readonly block: Uint8Array;
  /** The file, name and function constants of a built-in kernel; undefined for other kernels. */
  readonly kernel: BuiltInKernel | undefined;
  /** The tensors at the bindings, in order; undefined if a buffer does not belong to a tensor. */
  readonly operands:
    | readonly { readonly tensor: object; readonly access: "read" | "write" | "readwrite" }[]
    | undefined;
}

/** A recording in progress. A method throws if its call can't be recorded. */
export interface Capture {
  /** Runs a call and records it. @param block returns the block that the call has written */
  call(call: CapturedCall, run: () => number, block: () => Float64Array): number;
  /** Records a dispatch that is about to be encoded. */
  dispatched(dispatch: CapturedDispatch): void;
  /** Called before JavaScript reads or writes the elements of a storage. */
  accessed(storage: object): void;
  /** Called after a generator has returned a key. */
  drew(generator: object, key: object): void;
  /** Called before a generator continues from another state. */
  seeded(generator: object, state: { readonly seed: bigint; readonly offset: bigint }): void;
  /** Called before a backward pass sets the gradient of a tensor. */
  accumulated(tensor: object): void;
  /** Called after an optimizer has counted a step of these slots. */
  stepped(optimizer: object, slots: readonly object[]): void;
  /** Announces that the next call of the function `name` has rows of values that each replay recomputes by `rows`. */
  live(name: string, rows: () => readonly object[]): void;
  /**
   * Announces that a storage created during the recording holds one number, a float64 or a float32, that each replay
   * recomputes for the last step.
   */
  liveScalar(storage: object, isDouble: boolean, value: () => number): void;
  /**
   * Announces that the next dispatch has parameters for the rows of {@link live}.
   *
   * @param bytesOf returns the parameters of rows
   */
  liveParameters(bytesOf: (rows: readonly never[]) => Uint8Array): void;
  /**
   * Announces that each replay recomputes the parameters of the next dispatch.
   *
   * @param bytes returns undefined if the recording does not fit, so that the function is recorded again
   */
  liveBytes(bytes: () => Uint8Array | undefined): void;
  /**
   * Each replay recomputes the contents of a storage or an array that was created during the recording.
   *
   * @param contents returns undefined if the recording does not fit, so that the function is recorded again
   */
  liveContents(target: object, contents: () => NodeJS.TypedArray | undefined): void;
  /** Each replay also does this after its calls. */
  afterwards(run: () => void): void;
  /**
   * Announces that a kernel writes the position of the first invalid element, which the host checks after the call.
   *
   * @param errorAt returns the error for a position; undefined if there is none
   */
  checked(position: object, errorAt: (position: number) => Error | undefined): void;
  /** Announces that the function can't be replayed, so that its calls run plainly. */
  unsupported(why: string): void;
}

/** The recording of the running function; null if there is none. */
export let capture: Capture | null = null;

/** Returns {@link capture} for modules in other bundles of the package, which can't share a variable. */
export const currentCapture = (): Capture | null => capture;

/** Starts or ends a recording. */
export function setCapture(next: Capture | null): void {
  capture = next;
}
