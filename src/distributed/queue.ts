/**
 * The queue of calls in progress. MPI matches the calls on a communicator by their order, which must be the same on
 * every rank. Checks use a separate communicator and are sent when a call is made. The calls start in the order in
 * which they were made, each after its check has passed, so an asynchronous call never overtakes another one.
 *
 * MPI makes progress only while it is called: in `progress`, which blocking callers run in a loop, and a timer for the
 * others.
 */
import { setImmediate, setTimeout } from "node:timers/promises";
import { checkRecords, RECORD_BYTES, recordOf } from "./digest.ts";
import { DistributedError } from "./errors.ts";
import { Job, type Steps } from "./job.ts";
import { yieldProcessor } from "./locate.ts";
import type { Communicator, Elements, Mpi } from "./mpi.ts";
import { LOOK_AFTER, type Lost } from "./peers.ts";

/** The properties of a world that a queue needs. */
export interface QueueWorld {
  readonly mpi: Mpi;
  readonly size: number;
  /** Whether calls are compared between ranks before they start. */
  readonly isChecked: boolean;
  /** Seconds after which waiting for a call is an error. */
  readonly timeout: number;
  /** Whether ranks share processors. Then waiting yields them immediately. */
  readonly isCrowded: boolean;
  /** Returns the ranks that are known to be lost. */
  readonly lost: () => readonly Lost[];
}

/** Milliseconds for which a wait spins before it sleeps. */
const SPINNING = 0.2;
/** The shortest and longest sleep between two polls, in milliseconds. */
const [SHORTEST, LONGEST] = [0.02, 1];
/**
 * Milliseconds for which a started call is polled without sleeping: MPI moves large tensors in many small parts, and
 * only while it is called.
 */
const MOVING = 10_000;
/** Milliseconds for which every turn of the event loop polls, before timers are used. */
const TURNING = 50;

export class Queue {
  private jobs: Job[] = [];
  private messages: Job[] = [];
  private isPumping = false;
  private readonly clock = new Int32Array(new SharedArrayBuffer(4));
  private readonly checks: Communicator;
  private broken: unknown;

  constructor(private readonly world: QueueWorld) {
    this.checks = world.mpi.duplicate(world.mpi.world);
  }

  /** The number of calls in progress. */
  get pending(): number {
    return this.jobs.length + this.messages.length;
  }

  /**
   * Begins a call that every rank makes.
   *
   * @param description must be equal on all ranks; undefined for calls without a check
   */
  begin<Result>(
    operation: string,
    description: string | undefined,
    body: () => Steps<Result>,
    isReady?: () => boolean,
  ): Job<Result> {
    this.checkWhole();
    const check = this.world.isChecked ? this.checkOf(operation, description) : undefined;
    const job = new Job(operation, body, isReady, check);
    this.jobs.push(job);
    this.progress();
    return job;
  }

  /** Begins a call between two ranks, which is ordered only by its tag. */
  beginAtOnce<Result>(operation: string, body: () => Steps<Result>, isReady?: () => boolean): Job<Result> {
    this.checkWhole();
    const job = new Job(operation, body, isReady);
    this.messages.push(job);
    this.progress();
    return job;
  }

  private checkWhole(): void {
    if (this.broken !== undefined) throw this.broken;
  }

  private checkOf(operation: string, description: string | undefined) {
    if (description === undefined) return undefined;
    const from = elementsOf(recordOf(description));
    const to = elementsOf(new Uint8Array(new ArrayBuffer(RECORD_BYTES * this.world.size)));
    const request = this.world.mpi.allGather(operation, this.checks, from, to);
    return { request, verify: () => checkRecords(operation, to.bytes) };
  }

  /** Advances every call as far as possible without waiting. */
  progress(): void {
    let mayStart = true;
    for (const job of this.jobs) {
      if (job.state === "checking") job.checkOn();
      else if (job.state === "running") job.workOn();
      if (job.state === "waiting" && mayStart && job.isReady()) job.start();
      mayStart &&= job.state === "running" || job.state === "done";
    }
    for (const job of this.messages)
      if (job.state === "running") job.workOn();
      else if (job.state === "waiting" && job.isReady()) job.start();
    this.jobs = unfinished(this.jobs);
    this.messages = unfinished(this.messages);
  }

  /** Blocks until a call is complete. @throws {DistributedError} */
  wait<Result>(job: Job<Result>): Result {
    const started = performance.now();
    let [sleep, looked] = [SHORTEST, started];
    for (;;) {
      this.progress();
      if (job.state === "done") return job.result;
      const now = performance.now();
      if (now - looked > LOOK_AFTER) {
        this.lookAfter(job.operation, started);
        looked = now;
      }
      const isMoving = job.state === "running" && now - started < MOVING;
      if (isMoving || (!this.world.isCrowded && now - started < SPINNING)) {
        yieldProcessor();
        continue;
      }
      Atomics.wait(this.clock, 0, 0, sleep);
      sleep = Math.min(sleep * 1.5, LONGEST);
    }
  }

  /** Waits until a call is complete, without blocking the event loop. @throws {DistributedError} */
  async finish<Result>(job: Job<Result>): Promise<Result> {
    if (job.state !== "done") void this.pump();
    await job.whenDone;
    return job.result;
  }

  /** Advances calls in turns of the event loop until none is left. */
  private async pump(): Promise<void> {
    if (this.isPumping) return;
    this.isPumping = true;
    const started = performance.now();
    for (let looked = started; this.pending > 0; ) {
      this.progress();
      const now = performance.now();
      if (now - looked > LOOK_AFTER) {
        const [first] = [...this.jobs, ...this.messages];
        if (first !== undefined) this.lookAfter(first.operation, started);
        looked = now;
      }
      const isMoving = this.jobs.some(({ state }) => state === "running") && now - started < MOVING;
      await (isMoving || now - started < TURNING ? setImmediate() : setTimeout(LONGEST));
    }
    this.isPumping = false;
  }

  /** Ends a wait for a lost rank or after the timeout. */
  private lookAfter(operation: string, since: number): void {
    const lost = this.world.lost();
    if (lost.length > 0) this.break(lostError(operation, lost));
    else if (performance.now() - since > this.world.timeout * 1000)
      this.break(timeoutError(operation, this.world.timeout));
  }

  /** Fails all calls in progress and all later ones, since nothing can be exchanged any more. */
  private break(error: DistributedError): void {
    this.broken = error;
    for (const job of [...this.jobs, ...this.messages]) job.fail(error);
    [this.jobs, this.messages] = [[], []];
  }
}

const isUnfinished = ({ state }: Job): boolean => state !== "done";
const unfinished = (jobs: Job[]): Job[] => (jobs.every(isUnfinished) ? jobs : jobs.filter(isUnfinished));

const elementsOf = (bytes: Uint8Array): Elements => ({ bytes, type: "uint8", count: bytes.length });

/** Maximum number of ranks in a message. */
const MOST_NAMED = 8;

function lostError(operation: string, lost: readonly Lost[]): DistributedError {
  const named = lost.slice(0, MOST_NAMED).map(({ rank, fate }) => `rank ${rank} ${fate}`);
  const others = lost.length > MOST_NAMED ? `, and ${lost.length - MOST_NAMED} others` : "";
  const ranks = lost.map(({ rank }) => rank);
  const text = `${named.join(", ")}${others}, while this rank waited`;
  return new DistributedError(operation, "rankLost", text, ranks);
}

const timeoutError = (operation: string, seconds: number): DistributedError =>
  new DistributedError(
    operation,
    "timeout",
    `the other ranks did not join within ${seconds} s; init({ timeout }) allows more`,
  );
