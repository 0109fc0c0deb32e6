/**
 * Who watches operations and allocations: nobody, unless the environment asks for a record. Then `observer` is undefined, and whoever would
 * tell it something has one branch to take.
 */
import { threadId } from "node:worker_threads";
import type { BackendName } from "../backend/names.ts";
import { environment, environmentFlag } from "../core/environment.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { MemoryUsage } from "../tensor/usage.ts";
import { metalCopies } from "./copies.ts";
import { FlashAttentionLog } from "./flash_attention.ts";
import { TensorProfile } from "./tensor_profile.ts";
import { Trace } from "./trace.ts";

/** Command buffers of a device, by their tickets: an operation of several launches may lie in more than one. */
export interface TicketRange {
  readonly first: number;
  readonly last: number;
}

/** An operation that a backend is about to run. */
export interface WatchedCall {
  readonly operation: string;
  /** Prefix of its name, such as `"backward of exp: "`. */
  readonly within: string;
  readonly backend: BackendName;
  /** `"preferred"`, or why the backends before it did not run it. */
  readonly reason: string;
  readonly inputs: readonly Tensor[];
  readonly attributes: unknown;
}

/** An operation that a backend ran, or tried to. On Metal it is encoded only. */
export interface OperationRun extends WatchedCall {
  readonly outputs: readonly Tensor[];
  /** In milliseconds since the process began. */
  readonly start: number;
  readonly milliseconds: number;
  /** How often elements were copied for it: to the device, to another storage mode, to be contiguous, or by the operation `copy`. */
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
  /** The label of the one who asked, or the operation that runs. */
  readonly label: string;
  /** Of its place, with it; undefined for JavaScript's own, of which only the collector knows what is live. */
  readonly usage: MemoryUsage | undefined;
}

/** How far a device is; undefined once it is closed. */
export type Completion = () => { readonly completed: number } | undefined;

/** What a record wants to be told. */
export interface Recorder {
  ran?(run: OperationRun): void;
  allocated?(allocation: Allocation): void;
  encoded?(tickets: TicketRange, completion: Completion): void;
}

interface Running {
  readonly operation: string;
  tickets: TicketRange | undefined;
}

/** Passes on to recorders what happens. */
export class Observer {
  private running: Running | undefined;
  /** Those that Metal's statistics do not count. */
  private copies = 0;

  constructor(private readonly recorders: readonly Recorder[]) {}

  /** Copies of elements so far. */
  get copiesSoFar(): number {
    return this.copies + metalCopies();
  }

  /** Runs an operation, and tells what became of it. */
  watch<Result extends readonly Tensor[]>(call: WatchedCall, body: () => Result): Result {
    const outside = this.running;
    const running: Running = { operation: call.operation, tickets: undefined };
    const memories = call.inputs.map(({ storage }) => storage.memory);
    const [before, start] = [this.copiesSoFar, performance.now()];
    const tell = (outputs: readonly Tensor[], failure?: unknown): void => {
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
      tell(outputs);
      return outputs;
    } catch (error) {
      tell([], error);
      throw error;
    } finally {
      this.running = outside;
    }
  }

  /** Tells of memory; without a label it gets the running operation's name. */
  allocated(byteLength: number, storage: Allocation["storage"], usage?: MemoryUsage, label?: string): void {
    const allocation = { byteLength, storage, usage, label: label ?? this.running?.operation ?? "tensor" };
    for (const recorder of this.recorders) recorder.allocated?.(allocation);
  }

  /** Tells which command buffers the running operation is in. */
  encoded(tickets: TicketRange, completion: Completion): void {
    if (this.running) this.running.tickets = tickets;
    for (const recorder of this.recorders) recorder.encoded?.(tickets, completion);
  }
}

/** Tells of attention's passes, where that is asked for. */
export const flashAttentionLog: FlashAttentionLog | undefined =
  environmentFlag("ORCHARD_DEBUG_FLASH_ATN") || environmentFlag("ORCHARD_DEBUG_FLASHATN")
    ? new FlashAttentionLog(threadId)
    : undefined;

function recordersOf(): Recorder[] {
  const path = environment("ORCHARD_TRACE");
  return [
    ...(flashAttentionLog ? [flashAttentionLog] : []),
    ...(environmentFlag("ORCHARD_TENSOR_PROFILE") ? [new TensorProfile()] : []),
    ...(path === undefined ? [] : [new Trace(path, threadId)]),
  ];
}

const recorders = recordersOf();

/** Undefined where nothing is recorded. */
export const observer: Observer | undefined = recorders.length > 0 ? new Observer(recorders) : undefined;

/** Copies of elements so far, as far as somebody watches. */
export const copiesSoFar = (): number => observer?.copiesSoFar ?? 0;
