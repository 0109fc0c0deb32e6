/** Progress bars for loops, on standard error. */
import type { MultiBar, SingleBar } from "cli-progress";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { fittedLine, type LinePart, lineColumns } from "../core/fitted_line.ts";
import { formatCount, formatDuration } from "../core/format.ts";
import { aNumber, text } from "../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../core/parameters.ts";
import { printable } from "../core/printable.ts";
import { DataLoader } from "./loader/loader.ts";

/** Options of {@link progress}. */
export interface ProgressOptions {
  /** The text before the bar, such as `"epoch 3"`. */
  label?: string | undefined;
  /** The number of items. Default: the length of the loader, array, set or map; if unknown, only the count is shown. */
  total?: number | undefined;
}

type Items<Item> = Iterable<Item> | AsyncIterable<Item>;

const someItems: Kind<Items<unknown>> = {
  expected: "an iterable",
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    return Symbol.iterator in value || Symbol.asyncIterator in value ? (value as Items<unknown>) : undefined;
  },
};

const progressParameters = parameters("progress", {
  items: operand(someItems),
  label: named(text, ""),
  total: named(
    aNumber({ holds: (value) => Number.isSafeInteger(value) && value >= 0, expected: "a whole number of at least 0" }),
  ),
});

/**
 * Shows the progress of a loop on standard error: a bar, the count, the time left and the speed, with the figures of
 * {@link Progress.show}. Loops may be nested. If standard error is not a terminal, it prints a line every five seconds
 * and at the end.
 *
 * @param items a `DataLoader`, or any other iterable
 *
 * @example
 * const batches = data.progress(loader, { label: `epoch ${epoch}` });
 * for await (const [x, y] of batches) batches.show({ loss: step(x, y) });
 * // epoch 1 │ ██████░░░░░░░░░░░░░░ 12/40 │ loss 0.4371 │ 3 s left │ 9.12/s
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export function progress<Item>(items: Iterable<Item> | AsyncIterable<Item>, options?: ProgressOptions): Progress<Item>;
export function progress(...values: unknown[]): Progress<unknown> {
  const { items, label, total } = progressParameters(values);
  return new Progress(items, printable(label), total);
}

/**
 * An iterable that shows its progress: see {@link progress}.
 *
 * @example
 * const batches = data.progress(loader);
 * for await (const [x, y] of batches) batches.show({ loss: step(x, y) });
 */
export class Progress<Item> implements AsyncIterable<Item> {
  readonly #items: Items<Item>;
  readonly #label: string;
  readonly #total: number | undefined;
  #figures = "";

  /** @internal */
  constructor(items: Items<Item>, label: string, total: number | undefined) {
    this.#items = items;
    this.#label = label;
    this.#total = total;
  }

  /** Shows figures next to the count, until the next call. @throws {ArgumentError} */
  show(figures: Readonly<Record<string, number | string>>): void {
    const entries = reading("Progress.show", () =>
      typeof figures === "object" && figures !== null ? Object.entries(figures) : undefined,
    );
    if (entries === undefined || entries.some(([, value]) => typeof value !== "number" && typeof value !== "string"))
      throw new ArgumentError(
        "Progress.show",
        "invalidOperand",
        `expected an object of numbers and strings, got ${describeValue(figures)}`,
      );
    const shown = entries.map(([name, value]) => `${name} ${typeof value === "number" ? rounded(value) : value}`);
    this.#figures = printable(shown.join(", "));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    const [first, total] = [firstOf(this.#items), this.#total ?? totalOf(this.#items)];
    const start = performance.now();
    let count = first;
    const line = () => this.#line(count, first, total, (performance.now() - start) / 1000);
    const bar = await openBar(line);
    try {
      for await (const item of this.#items as AsyncIterable<Item>) {
        yield item;
        bar.update(++count);
      }
    } finally {
      bar.close();
    }
  }

  #line(count: number, first: number, total: number | undefined, seconds: number): string {
    const done = count - first;
    const left = total === undefined ? undefined : (seconds / done) * (total - count);
    const speed = done === 0 ? "" : `${formatCount(done / seconds)}/s`;
    const isOver = total !== undefined && count >= total;
    const time = isOver || left === undefined ? formatDuration(seconds) : `${formatDuration(left)} left`;
    const parts: LinePart[] = [
      { text: this.#figures, importance: 6 },
      { text: time, importance: 5 },
      { text: speed, importance: 3 },
    ];
    const line = fittedLine(
      lineColumns() - (this.#label === "" ? 0 : this.#label.length + 3),
      count,
      total,
      parts.filter((part) => part.text !== ""),
    );
    return this.#label === "" ? line : `${this.#label} │ ${line}`;
  }
}

const rounded = (value: number): string => (Number.isInteger(value) ? String(value) : value.toPrecision(4));

/** The batch from which a resumed loader continues. */
const firstOf = (items: Items<unknown>): number => (items instanceof DataLoader ? items.getState().batch : 0);

function totalOf(items: Items<unknown>): number | undefined {
  if (items instanceof DataLoader) return items.length;
  if (Array.isArray(items)) return items.length;
  return items instanceof Set || items instanceof Map ? items.size : undefined;
}

interface Bar {
  update(count: number): void;
  close(): void;
}

/** The bars of all running loops, and their number. */
let open: { readonly bars: MultiBar; count: number } | undefined;

/** Without a terminal, a line is printed at this interval, in milliseconds. */
const LINE_INTERVAL = 5_000;

/** Adds a bar below those of outer loops. The package is loaded on first use. */
async function openBar(line: () => string): Promise<Bar> {
  const { MultiBar } = await import("cli-progress");
  open ??= {
    count: 0,
    bars: new MultiBar({
      format: (_options, _state, { line: current }: { readonly line: () => string }) => current(),
      noTTYOutput: true,
      notTTYSchedule: LINE_INTERVAL,
      hideCursor: true,
      linewrap: true,
      gracefulExit: false, // the program handles signals itself
    }),
  };
  const group = open;
  group.count++;
  const bar: SingleBar = group.bars.create(Number.MAX_SAFE_INTEGER, 0, { line });
  return {
    update: (count) => bar.update(count),
    close() {
      if (--group.count > 0) {
        group.bars.log(`${line()}\n`); // above the bars of outer loops
        group.bars.remove(bar);
        return;
      }
      group.bars.stop(); // its timer would keep the process alive
      open = undefined;
    },
  };
}
