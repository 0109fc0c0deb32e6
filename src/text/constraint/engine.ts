/**
 * The processes that make automata of forms and follow texts by them. What a form costs can't be told beforehand, and
 * only the end of a process ends such work for certain; so each process limits its own time. What it knows is known
 * here too: where one ended, another is told, and only the task at which it ended fails.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ArgumentError, BackendError } from "../../core/errors.ts";
import { moduleFile } from "../../core/place.ts";
import type { Answer, Request, Task } from "./messages.ts";

/** A form that takes long keeps one of them busy. */
const MOST_PROCESSES = 2;

/** The process ended before it came to a task: another one can do it. */
export class Lost extends Error {}

/** Seconds of the processor. A vocabulary of 256,000 tokens takes about one, forms that people write less than 20. */
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
      cwd: dirname(module), // no settings of the folder that the program runs in
      env: { ...process.env, BUN_BE_BUN: "1" }, // a program that was compiled is its own Bun
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "advanced",
      ipc: (answer: Answer) => this.answered(answer),
      onExit: ({ signalCode }, code) => this.ended(code, signalCode),
    });
    this.child.unref();
  }

  /** How many tasks wait. */
  get load(): number {
    return this.waiting.length;
  }

  /**
   * @param seconds of the processor, at which the process ends itself
   *
   * @throws {ArgumentError} for a form that can't be held to, or takes too long. @throws {Lost}
   */
  ask(task: Task, seconds: number): Promise<Answer> {
    if (!this.isAlive) return Promise.reject(new Lost());
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.waiting.push({ resolve, reject });
    this.child.ref(); // a program that waits goes on
    this.child.send({ task, seconds } satisfies Request);
    return promise;
  }

  /** Tells the process once of what a task is about. */
  know(about: object, task: Task & { readonly kind: "vocabulary" | "form" }): Promise<unknown> {
    const known = this.known.get(about) ?? this.ask(task, LIMITS[task.kind]);
    this.known.set(about, known);
    return known;
  }

  /** What the process need not know any more. */
  forget(task: Task & { readonly kind: "forget" }): void {
    this.ask(task, LIMITS.forget).catch(() => undefined); // nothing to forget where it ended
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

/** Bundles hold no modules that are loaded by their path. */
const notBeside = (module: string): BackendError =>
  new BackendError(
    "compileConstraint",
    "noEngine",
    `expected ${module}, which compiles grammars in a process of its own; leave orchard-metal external when you bundle`,
  );

function endOf(code: number | null, signal: string | number | null): Error {
  const message = "expected a form that can be held to in little time and memory: its automaton grew too large";
  if (signal === "SIGVTALRM") return new ArgumentError("compileConstraint", "tooSlow", message);
  const how = signal === null ? `with code ${code}` : `by ${signal}`;
  return new BackendError("compileConstraint", "engineFailed", `the process for forms ended ${how}`);
}

let processes: EngineProcess[] = [];

/** A process that has nothing to do, or least. */
export function engineProcess(): EngineProcess {
  processes = processes.filter(({ isAlive }) => isAlive);
  const least = processes.reduce<EngineProcess | undefined>((a, b) => (a && a.load <= b.load ? a : b), undefined);
  if (least && (least.load === 0 || processes.length === MOST_PROCESSES)) return least;
  const started = new EngineProcess();
  processes.push(started);
  return started;
}

/** All of them forget something. */
export function forgetEverywhere(task: Task & { readonly kind: "forget" }): void {
  for (const own of processes) if (own.isAlive) own.forget(task);
}

/** Does something anew as often as the process that does it was lost at the task of another. */
export async function retrying<T>(body: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await body();
    } catch (cause) {
      if (!(cause instanceof Lost)) throw cause;
    }
}
