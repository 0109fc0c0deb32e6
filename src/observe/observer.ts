/**
 * Records of operations and allocations: none, unless the environment asks for one. Then `observer` is undefined, and
 * whoever would report something has one branch to take.
 */
import { environment, environmentFlag } from "../core/environment.ts";
import { threadId } from "../core/thread.ts";
import { FlashAttentionLog } from "./flash_attention.ts";
import { TensorProfile } from "./tensor_profile.ts";
import { Trace } from "./trace.ts";

/** Command buffers of a device, by their tickets: an operation of several launches may lie in more than one. */
export interface TicketRange {
  readonly first: number;
  readonly last: number;
}

/** What a record says of a tensor. */
export interface ObservedTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** It gets other memory when the tensor is copied elsewhere. */
  readonly storage: { readonly memory: unknown };
}

/** An operation that a backend is about to run. */
export interface ObservedCall {
  readonly operation: string;
  /** Prefix of its name, such as `"backward of exp: "`. */
  readonly within: string;
  readonly backend: string;
  /** `"preferred"`, or why the backends before it did not run it. */
  readonly reason: string;
  readonly inputs: readonly ObservedTensor[];
  readonly attributes: unknown;
}

/** An operation that a backend ran, or tried to. On Metal it is encoded only. */
export interface OperationRun extends ObservedCall {
  readonly outputs: readonly ObservedTensor[];
  /** In milliseconds since the process began. */
  readonly start: number;
  readonly milliseconds: number;
  /**
   * How often elements were copied for it: to the device, to another storage mode, to be contiguous, or by the
   * operation `copy`.
   */
  readonly copies: number;
  /** The command buffers that it lies in. */
  readonly tickets: TicketRange | undefined;
  /** Why the backend failed, where it did. */
  readonly failure: unknown;
}

/** Memory that was allocated for tensors. */
export interface Allocation {
  readonly byteLength: number;
  /** Metal's storage mode; `host`: the cpu backend's allocator; `script`: JavaScript's own memory. */
  readonly storage: "shared" | "private" | "host" | "script";
  /** The label that the caller gave, or the operation that runs. */
  readonly label: string;
  /**
   * Of the allocator, with it; undefined for JavaScript's own memory, of which only the garbage collector knows what is
   * live.
   */
  readonly usage: { readonly liveBytes: number; readonly peakBytes: number } | undefined;
}

/** Something that goes on beside operations, such as an exchange with other processes. */
export interface Activity {
  readonly name: string;
  readonly category: string;
  /** In milliseconds since the process began. */
  readonly start: number;
  readonly end: number;
  readonly details: Readonly<Record<string, unknown>>;
}

/** How far a device is; undefined once it is closed. */
export type Completion = () => { readonly completed: number } | undefined;

/** What a record takes down. */
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

/** Passes on to recorders what happens. */
export class Observer {
  private running: Running | undefined;
  /** Those that the device does not count. */
  private copies = 0;
  private deviceCopies = (): number => 0;

  constructor(private readonly recorders: readonly Recorder[]) {}

  /** Copies of elements so far. */
  get copiesSoFar(): number {
    return this.copies + this.deviceCopies();
  }

  /** @param count how often a device has copied elements so far */
  countDeviceCopies(count: () => number): void {
    this.deviceCopies = count;
  }

  /** Runs an operation, and reports what became of it. */
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

  /** Reports an allocation; without a label it gets the running operation's name. */
  allocated(byteLength: number, storage: Allocation["storage"], usage?: Allocation["usage"], label?: string): void {
    const allocation = { byteLength, storage, usage, label: label ?? this.running?.operation ?? "tensor" };
    for (const recorder of this.recorders) recorder.allocated?.(allocation);
  }

  /** Reports an activity that is over. */
  took(activity: Activity): void {
    for (const recorder of this.recorders) recorder.took?.(activity);
  }

  /** Reports which command buffers the running operation is in. */
  encoded(tickets: TicketRange, completion: Completion): void {
    if (this.running) this.running.tickets = tickets;
    for (const recorder of this.recorders) recorder.encoded?.(tickets, completion);
  }
}

/** Logs attention's passes, where the environment asks for it. */
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

/** Undefined where nothing is recorded. */
export const observer: Observer | undefined = recorders.length > 0 ? new Observer(recorders) : undefined;

/** Copies of elements so far, where there is a record; else 0. */
export const copiesSoFar = (): number => observer?.copiesSoFar ?? 0;
