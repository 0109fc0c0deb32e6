/** The worker thread of a data set: opens the data set of a module, and returns items by index. */
import type { Dataset, ItemContext } from "./items.ts";
import { pack } from "./transfer.ts";

/** A request to a worker thread. */
export type Request =
  | { readonly kind: "open"; readonly module: string; readonly options: unknown }
  | { readonly kind: "get"; readonly index: number; readonly context: ItemContext | undefined };

/** The answer: the length of the data set, an item, or an error message. */
export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

declare const self: {
  onmessage: (event: MessageEvent<{ readonly id: number; readonly request: Request }>) => void;
  postMessage(answer: Answer, moved?: ArrayBuffer[]): void;
};

let dataset: Dataset<unknown> | undefined;

async function open(module: string, options: unknown): Promise<number> {
  const { default: make } = (await import(module)) as { readonly default?: (given: unknown) => unknown };
  if (typeof make !== "function") throw new Error(`expected ${module} to have a function as its default export`);
  const made = (await make(options)) as Dataset<unknown> | null | undefined;
  if (typeof made?.length !== "number" || typeof made.get !== "function")
    throw new Error(`expected the function of ${module} to return a data set with length and get(index)`);
  dataset = made;
  return made.length;
}

self.onmessage = async ({ data: { id, request } }) => {
  try {
    if (request.kind === "open") {
      self.postMessage({ id, value: await open(request.module, request.options) });
      return;
    }
    const { value, moved } = pack(await dataset!.get(request.index, request.context));
    self.postMessage({ id, value }, moved);
  } catch (cause) {
    self.postMessage({ id, error: cause instanceof Error ? cause.message : String(cause) });
  }
};
