/**
 * Recording of operations and allocations, if environment variables request it. Otherwise `observer` is undefined, and
 * a report costs one branch.
 */
import { environment, environmentFlag } from "../core/environment.ts";
import { threadId } from "../core/thread.ts";
import { FlashAttentionLog } from "./flash_attention.ts";
import { TensorProfile } from "./tensor_profile.ts";
import { Trace } from "./trace.ts";

/** A range of command buffers of a device: an operation with several launches may span more than one. */
export interface TicketRange {
  readonly first: number;
  readonly last: number;
}

/** A tensor in a record. */
export interface ObservedTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** The storage, whose memory changes when the tensor is copied elsewhere. */
  readonly storage: { readonly memory: unknown };
}

/** An operation that a backend is about to run. */
export interface ObservedCall {
  readonly operation: string;
  /** A prefix of the operation's name, such as `"backward of exp: "`. */
  readonly within: string;
  readonly backend: string;
  /** `"preferred"`, or why the backends before this one did not run it. */
  readonly reason: string;
  readonly inputs: readonly ObservedTensor[];
  readonly attributes: unknown;
}

/** An operation that a backend ran or tried to run. On Metal it is only encoded. */
export interface OperationRun extends ObservedCall {
  readonly outputs: readonly ObservedTensor[];
  /** The start time in milliseconds since the process began. */
  readonly start: number;
  readonly milliseconds: number;
  /**
   * The number of copies made for the operation: to the device, to another storage mode, to make a tensor contiguous,
   * or by the operation `copy`.
   */
  readonly copies: number;
  /** The command buffers of the operation. */
  readonly tickets: TicketRange | undefined;
  /** The error of the backend, if it failed. */
  readonly failure: unknown;
}

/** An allocation of tensor memory. */
export interface Allocation {
  readonly byteLength: number;
  /** Metal's storage mode, `host` for the cpu backend's allocator, or `script` for JavaScript memory. */
  readonly storage: "shared" | "private" | "host" | "script";
  /** The caller's label, or the running operation. */
  readonly label: string;
  /**
   * The allocator's usage, including this allocation; undefined for JavaScript memory, whose live bytes only the
   * garbage collector knows.
   */
  readonly usage: { readonly liveBytes: number; readonly peakBytes: number } | undefined;
}

/** An activity other than operations, such as an exchange with other processes. */
export interface Activity {
  readonly name: string;
  readonly category: string;
  /** The start time in milliseconds since the process began. */
  readonly start: number;
  readonly end: number;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Returns the progress of a device; undefined once it is closed. */
export type Completion = () => { readonly completed: number } | undefined;

/** A receiver of events; all methods are optional. */
export interface Recorder {
  ran?(run: OperationRun): void;
  allocated?(allocation: Allocation): void;
  encoded?(tickets: TicketRange, completion: Completion): void;
  took?(activity: Activity): void;
}

interface Running {
  readonly operation: string;
  tickets: TicketRange | undefined;
}

/** Forwards events to recorders. */
export class Observer {
  private running: Running | undefined;
  /** The copies that the device does not count. */
  private copies = 0;
  private deviceCopies = (): number => 0;

  constructor(private readonly recorders: readonly Recorder[]) {}

  /** The number of copies so far. */
  get copiesSoFar(): number {
    return this.copies + this.deviceCopies();
  }

  /** @param count returns the number of copies that a device has made so far */
  countDeviceCopies(count: () => number): void {
    this.deviceCopies = count;
  }

  /** Runs an operation, and reports its result or failure. */
  watch<Result extends readonly ObservedTensor[]>(call: ObservedCall, body: () => Result): Result {
    const outside = this.running;
    const running: Running = { operation: call.operation, tickets: undefined };
    const memories = call.inputs.map(({ storage }) => storage.memory);
    const [before, start] = [this.copiesSoFar, performance.now()];
    const report = (outputs: readonly ObservedTensor[], failure?: unknown): void => {
      const milliseconds = performance.now() - start;
      const moved = call.inputs.filter(({ storage }, at) => !failure && storage.memory !== memories[at]);
      this.copies += new Set(moved.map(({ storage }) => storage)).size + (call.operation === "copy" ? 1 : 0);
      const { tickets } = running;
      const copies = this.copiesSoFar - before;
      for (const recorder of this.recorders)
        recorder.ran?.({ ...call, outputs, start, milliseconds, copies, tickets, failure });
    };
    this.running = running;
    try {
      const outputs = body();
      report(outputs);
      return outputs;
    } catch (error) {
      report([], error);
      throw error;
    } finally {
      this.running = outside;
    }
  }

  /** Reports an allocation; its default label is the running operation's name. */
  allocated(byteLength: number, storage: Allocation["storage"], usage?: Allocation["usage"], label?: string): void {
    const allocation = { byteLength, storage, usage, label: label ?? this.running?.operation ?? "tensor" };
    for (const recorder of this.recorders) recorder.allocated?.(allocation);
  }

  /** Reports a finished activity. */
  took(activity: Activity): void {
    for (const recorder of this.recorders) recorder.took?.(activity);
  }

  /** Reports the command buffers of the running operation. */
  encoded(tickets: TicketRange, completion: Completion): void {
    if (this.running) this.running.tickets = tickets;
    for (const recorder of this.recorders) recorder.encoded?.(tickets, completion);
  }
}

/** The log of attention passes; undefined unless the environment requests it. */
export const flashAttentionLog: FlashAttentionLog | undefined =
  environmentFlag("ORCHARD_DEBUG_FLASH_ATN") || environmentFlag("ORCHARD_DEBUG_FLASHATN")
    ? new FlashAttentionLog(threadId())
    : undefined;

function recordersOf(): Recorder[] {
  const path = environment("ORCHARD_TRACE");
  return [
    ...(flashAttentionLog ? [flashAttentionLog] : []),
    ...(environmentFlag("ORCHARD_TENSOR_PROFILE") ? [new TensorProfile()] : []),
    ...(path === undefined ? [] : [new Trace(path, threadId())]),
  ];
}

const recorders = recordersOf();

/** The observer; undefined if nothing is recorded. */
export const observer: Observer | undefined = recorders.length > 0 ? new Observer(recorders) : undefined;

/** Returns the number of copies so far if they are recorded, else 0. */
export const copiesSoFar = (): number => observer?.copiesSoFar ?? 0;
