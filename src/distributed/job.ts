import { observer } from "../observe/observer.ts";
import { DistributedError } from "./errors.ts";
import type { Request } from "./mpi.ts";

/** What a job waits for next, one request after the other; what it returns is its result. */
export type Steps<Result> = Generator<Request, Result, void>;

/** A call that takes part in the world: its check, then its turn, then its requests. */
export class Job<Result = unknown> {
  state: "checking" | "waiting" | "running" | "done" = "waiting";
  private steps: Steps<Result> | undefined;
  private request: Request | undefined;
  private outcome: { readonly value: Result } | { readonly error: unknown } | undefined;
  private started: number | undefined;
  /** What a trace says of it. */
  details: Readonly<Record<string, unknown>> | undefined;
  private readonly settled = Promise.withResolvers<void>();

  constructor(
    readonly operation: string,
    private readonly body: () => Steps<Result>,
    /** Whether what it reads is there: a device may still compute it. */
    readonly isReady: () => boolean = () => true,
    /** The first request, and what to do with its answer; undefined where nothing is checked. */
    private readonly check?: { readonly request: Request; readonly verify: () => void },
  ) {
    if (check) this.state = "checking";
  }

  /** Lets the check come to its end. */
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

  /** Goes on as far as its requests are complete. */
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

  /** Settles once it is done, well or not. */
  get whenDone(): Promise<void> {
    return this.settled.promise;
  }

  /** What it gave, once it is done. @throws what it failed with. */
  get result(): Result {
    if (this.outcome === undefined) throw new DistributedError(this.operation, "notDone", "it is still under way");
    if ("error" in this.outcome) throw this.outcome.error;
    return this.outcome.value;
  }
}
