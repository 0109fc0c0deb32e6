/** Data sets whose items are computed in worker threads. */
import { DataError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { moduleFile } from "../../core/place.ts";
import type { Dataset, ItemContext } from "./items.ts";
import { unpack } from "./transfer.ts";
import type { Answer, Request } from "./worker_main.ts";

/** Options of {@link openWorkerDataset}. */
export interface WorkerDatasetOptions {
  /** The number of threads. Default 2. */
  workers?: number;
  /** The argument of the module's function: any value that can be cloned. */
  options?: unknown;
}

const anything: Kind<unknown> = { expected: "a value", parse: (value) => value };
const openParameters = parameters("openWorkerDataset", {
  module: operand({
    expected: "the path or URL of a module",
    parse: (value) =>
      value instanceof URL ? value.href : typeof value === "string" && value !== "" ? value : undefined,
  } satisfies Kind<string>),
  workers: named(
    aNumber({ holds: (value) => count.holds(value) && value <= 256, expected: "a whole number from 1 to 256" }),
    2,
  ),
  options: named(anything),
});

/**
 * Opens a data set whose items are computed in Bun's Workers. The module's default export is a function that returns
 * the data set, or a promise of it, in each thread. Items may have tensors and values that can be cloned: numbers,
 * strings, typed arrays, lists and objects. An item does not depend on the thread that computes it.
 *
 * @param module an absolute path, or a URL: `new URL("./pictures.ts", import.meta.url)`
 *
 * @example
 * // pictures.ts: export default ({ folder }) => new data.ImageFolder(folder);
 * using pictures = await data.openWorkerDataset(new URL("./pictures.ts", import.meta.url), {
 *   workers: 4,
 *   options: { folder: "pictures" },
 * });
 * for await (const batch of new data.DataLoader(pictures, { batchSize: 32 })) train(batch);
 *
 * @throws {DataError} `workerFailed` if the module can't be loaded, or returns no data set. @throws {ArgumentError}
 */
export async function openWorkerDataset<Item>(
  module: string | URL,
  options?: WorkerDatasetOptions,
): Promise<WorkerDataset<Item>>;
export async function openWorkerDataset(...values: unknown[]): Promise<WorkerDataset<unknown>> {
  const { module, workers, options } = openParameters(values);
  const lines = Array.from({ length: workers }, () => new Line());
  try {
    const lengths = await Promise.all(lines.map((line) => line.ask({ kind: "open", module, options })));
    return new WorkerDataset<unknown>(lines, Number(lengths[0]));
  } catch (cause) {
    for (const line of lines) line.close();
    throw cause;
  }
}

/**
 * A data set whose items are computed in worker threads: see {@link openWorkerDataset}.
 *
 * @example
 * using pictures = await data.openWorkerDataset(new URL("./pictures.ts", import.meta.url), { workers: 4 });
 * const loader = new data.DataLoader(pictures, { batchSize: 32 });
 */
export class WorkerDataset<Item> implements Dataset<Item>, Disposable {
  readonly #lines: readonly Line[];
  readonly length: number;

  /** @internal */
  constructor(lines: readonly Line[], length: number) {
    this.#lines = lines;
    this.length = length;
  }

  /** Returns the item at an index, from the least busy thread. @throws {DataError} `workerFailed`, `closed` */
  get(index: number, context?: ItemContext): Promise<Item> {
    const line = this.#lines.reduce((least, each) => (each.pending < least.pending ? each : least));
    return line.ask({ kind: "get", index, context }) as Promise<Item>;
  }

  /** Ends the threads. Pending items are rejected. */
  close(): void {
    for (const line of this.#lines) line.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (cause: Error) => void;
}

/** A thread and its pending requests. It keeps the program alive only while there are any. */
class Line {
  readonly #worker = new Worker(moduleFile("data/loader/worker_main"));
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  #isClosed = false;

  constructor() {
    this.#worker.unref();
    this.#worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#answer(data);
    this.#worker.onerror = ({ message }) => this.#fail("workerFailed", message);
  }

  get pending(): number {
    return this.#waiting.size;
  }

  ask(request: Request): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new DataError("WorkerDataset.get", "closed", "its threads were stopped"));
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = this.#next++;
    if (this.#waiting.size === 0) this.#worker.ref();
    this.#waiting.set(id, { resolve, reject });
    this.#worker.postMessage({ id, request });
    return promise;
  }

  #answer({ id, value, error }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if (error === undefined) waiting?.resolve(unpack(value));
    else waiting?.reject(new DataError("openWorkerDataset", "workerFailed", error));
  }

  #fail(code: string, message: string): void {
    for (const { reject } of this.#waiting.values()) reject(new DataError("openWorkerDataset", code, message));
    this.#waiting.clear();
    this.#worker.unref();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#fail("closed", "its threads were stopped");
    this.#worker.terminate();
  }
}
