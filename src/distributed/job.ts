import { observer } from "../observe/observer.ts";
import { DistributedError } from "./errors.ts";

/** A part of a call that is in progress: a request of MPI, or work on a GPU. */
export interface Pending {
  /** Lets the request make progress. Returns whether it is complete. @throws {DistributedError} */
  test(): boolean;
}

/** A generator that yields what to wait for, and returns the result. */
export type Steps<Result> = Generator<Pending, Result, void>;

/** A call in progress: first its check, then its turn, then its requests. */
export class Job<Result = unknown> {
  state: "checking" | "waiting" | "running" | "done" = "waiting";
  private steps: Steps<Result> | undefined;
  private request: Pending | undefined;
  private outcome: { readonly value: Result } | { readonly error: unknown } | undefined;
  private started: number | undefined;
  /** Details of the call, for traces. */
  details: Readonly<Record<string, unknown>> | undefined;
  private readonly settled = Promise.withResolvers<void>();

  constructor(
    readonly operation: string,
    private readonly body: () => Steps<Result>,
    /** Whether the call's input is available: a device may still compute it. */
    readonly isReady: () => boolean = () => true,
    /** The request of the check, and the verification of its answer; undefined if nothing is checked. */
    private readonly check?: { readonly request: Pending; readonly verify: () => void },
  ) {
    if (check) this.state = "checking";
  }

  /** Advances the check. */
  checkOn(): void {
    this.guarded(() => {
      if (!this.check?.request.test()) return;
      this.check.verify();
      this.state = "waiting";
    });
  }

  start(): void {
    this.state = "running";
    this.started = performance.now();
    this.guarded(() => {
      this.steps = this.body();
      this.advance();
    });
  }

  /** Advances the call as far as its requests are complete. */
  workOn(): void {
    this.guarded(() => {
      if (this.request?.test()) this.advance();
    });
  }

  private advance(): void {
    for (;;) {
      const next = this.steps!.next();
      if (next.done) {
        this.settle({ value: next.value });
        return;
      }
      this.request = next.value;
      if (!this.request.test()) return;
    }
  }

  private guarded(body: () => void): void {
    try {
      body();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    if (this.state !== "done") this.settle({ error });
  }

  private settle(outcome: NonNullable<typeof this.outcome>): void {
    const { operation: name, started: start, details = {} } = this;
    if (start !== undefined) observer?.took({ name, category: "mpi", start, end: performance.now(), details });
    this.outcome = outcome;
    this.state = "done";
    this.settled.resolve();
  }

  /** Settles when the call is done, with or without an error. */
  get whenDone(): Promise<void> {
    return this.settled.promise;
  }

  /** The result, once the call is done. @throws its error */
  get result(): Result {
    if (this.outcome === undefined)
      throw new DistributedError(this.operation, "notDone", "the call is still in progress");
    if ("error" in this.outcome) throw this.outcome.error;
    return this.outcome.value;
  }
}
