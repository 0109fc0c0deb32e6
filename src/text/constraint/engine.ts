/**
 * The processes that compile constraints and follow texts. The cost of a constraint can't be predicted, and only ending
 * the process stops the work for certain, so each process limits its CPU time. The program keeps a copy of the state: a
 * process that replaces another receives it, and only the task that was running fails.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ArgumentError, BackendError } from "../../core/errors.ts";
import { moduleFile } from "../../core/place.ts";
import type { Answer, Request, Task } from "./messages.ts";

/** A slow constraint occupies only one of them. */
const MOST_PROCESSES = 2;

/** Thrown if the process ended before it started a task; another process can run the task. */
export class Lost extends Error {}

/** Limits in seconds of CPU time. A vocabulary of 256,000 tokens takes about one; typical constraints less than 20. */
const LIMITS = { vocabulary: 60, form: 40, forget: 5 } as const;

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (cause: Error) => void;
}

export class EngineProcess {
  private readonly child: Bun.Subprocess<"ignore", "ignore", "ignore">;
  private readonly waiting: Waiting[] = [];
  private readonly known = new WeakMap<object, Promise<unknown>>();
  isAlive = true;

  constructor() {
    const module = moduleFile("text/constraint/engine_main");
    if (!existsSync(module)) throw notBeside(module);
    this.child = Bun.spawn([process.execPath, module], {
      cwd: dirname(module), // another working folder, so that settings in the program's folder don't apply
      env: { ...process.env, BUN_BE_BUN: "1" }, // makes a compiled program act as Bun
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "advanced",
      ipc: (answer: Answer) => this.answered(answer),
      onExit: ({ signalCode }, code) => this.ended(code, signalCode),
    });
    this.child.unref();
  }

  /** The number of waiting tasks. */
  get load(): number {
    return this.waiting.length;
  }

  /**
   * @param seconds of CPU time after which the process ends itself
   *
   * @throws {ArgumentError} for a constraint that is unsupported or takes too long. @throws {Lost}
   */
  ask(task: Task, seconds: number): Promise<Answer> {
    if (!this.isAlive) return Promise.reject(new Lost());
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.waiting.push({ resolve, reject });
    this.child.ref(); // keeps a waiting program alive
    this.child.send({ task, seconds } satisfies Request);
    return promise;
  }

  /** Sends an object's data to the process once. */
  know(about: object, task: Task & { readonly kind: "vocabulary" | "form" }): Promise<unknown> {
    const known = this.known.get(about) ?? this.ask(task, LIMITS[task.kind]);
    this.known.set(about, known);
    return known;
  }

  /** Tells the process to forget data. */
  forget(task: Task & { readonly kind: "forget" }): void {
    this.ask(task, LIMITS.forget).catch(() => undefined); // if the process ended, there is nothing to forget
  }

  private answered(answer: Answer): void {
    const { resolve, reject } = this.waiting.shift()!;
    const { error } = answer;
    if (error) reject(new ArgumentError("compileConstraint", error.code, error.message));
    else resolve(answer);
    if (error?.isLast) this.lose();
    if (this.waiting.length === 0) this.child.unref();
  }

  private ended(code: number | null, signal: string | number | null): void {
    if (this.isAlive) this.waiting.shift()?.reject(endOf(code, signal));
    this.lose();
  }

  private lose(): void {
    this.isAlive = false;
    for (const { reject } of this.waiting.splice(0)) reject(new Lost());
    this.child.unref();
  }
}

/** Returns the error for bundles, which lack modules that are loaded by path. */
const notBeside = (module: string): BackendError =>
  new BackendError(
    "compileConstraint",
    "noEngine",
    `${module}, which compiles grammars in a separate process, is missing; keep orchard-metal external when you bundle`,
  );

function endOf(code: number | null, signal: string | number | null): Error {
  const message = "the constraint needs too much time or memory: its automaton grew too large";
  if (signal === "SIGVTALRM") return new ArgumentError("compileConstraint", "tooSlow", message);
  const how = signal === null ? `with code ${code}` : `by ${signal}`;
  return new BackendError("compileConstraint", "engineFailed", `the process for constraints ended ${how}`);
}

let processes: EngineProcess[] = [];

/** Returns the process with the fewest waiting tasks. */
export function engineProcess(): EngineProcess {
  processes = processes.filter(({ isAlive }) => isAlive);
  const least = processes.reduce<EngineProcess | undefined>((a, b) => (a && a.load <= b.load ? a : b), undefined);
  if (least && (least.load === 0 || processes.length === MOST_PROCESSES)) return least;
  const started = new EngineProcess();
  processes.push(started);
  return started;
}

/** Tells all processes to forget data. */
export function forgetEverywhere(task: Task & { readonly kind: "forget" }): void {
  for (const engine of processes) if (engine.isAlive) engine.forget(task);
}

/** Retries while the process is lost because of another task. */
export async function retrying<T>(body: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await body();
    } catch (cause) {
      if (!(cause instanceof Lost)) throw cause;
    }
}
