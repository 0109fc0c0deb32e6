/** The report of a sweep: distributions of PyTorch's time divided by Orchard's, the slowest cases, and changes. */
import { table } from "../measure.ts";
import type { Row } from "./run.ts";

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

const shown = (value: number): string => value.toFixed(2);

/** Quantiles of the ratios, and the number of cases in which Orchard is slower. */
function distribution(rows: readonly Row[]): (string | number)[] {
  const ratios = rows.map(({ ratio }) => ratio).sort((a, b) => a - b);
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const below = (bound: number) => ratios.filter((ratio) => ratio < bound).length;
  return [
    rows.length,
    shown(mean),
    shown(ratios[0]),
    ...[0.05, 0.1, 0.25, 0.5].map((share) => shown(quantile(ratios, share))),
    ...[0.5, 0.8, 1].map(below),
  ];
}

const HEAD = ["cases", "geometric mean", "worst", "5 %", "10 %", "25 %", "median", "< 0.5", "< 0.8", "< 1"] as const;

function groups(rows: readonly Row[], nameOf: (row: Row) => string): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) found.set(nameOf(row), [...(found.get(nameOf(row)) ?? []), row]);
  return found;
}

/** One line for each number of threads. */
export function byThreads(rows: readonly Row[]): string {
  const lines = [...groups(rows, ({ threads }) => `${threads}`)].map(([name, each]) => [name, ...distribution(each)]);
  return table(["threads", ...HEAD], lines);
}

/** One line for each family and number of threads. */
export function byFamily(rows: readonly Row[]): string {
  const found = groups(rows, ({ family, threads }) => `${family}, ${threads}`);
  const lines = [...found].sort(([a], [b]) => a.localeCompare(b)).map(([name, each]) => [name, ...distribution(each)]);
  return table(["family, threads", ...HEAD], lines);
}

const microseconds = (milliseconds: number): string => (milliseconds * 1000).toPrecision(3);

/** The slowest cases relative to PyTorch, each with the command that repeats it. */
export function worst(rows: readonly Row[], count: number, repeat: (row: Row) => string): string {
  const slowest = rows.toSorted((a, b) => a.ratio - b.ratio).slice(0, count);
  const lines = slowest.map((row) => [
    shown(row.ratio),
    row.threads,
    microseconds(row.ours),
    microseconds(row.theirs),
    `  ${row.name}\n        ${repeat(row)}`,
  ]);
  return table(["ratio", "threads", "ours, µs", "PyTorch, µs", "  case"], lines);
}

/** The smallest factor of change that is not noise between two runs. */
const NOTABLE = 1.15;

/** The cases of both runs whose ratio changed most, first those that became slower. */
export function changes(rows: readonly Row[], before: readonly Row[], count: number): string {
  const key = ({ name, threads }: Row) => `${name}, ${threads}`;
  const old = new Map(before.map((row) => [key(row), row]));
  const changed = rows
    .flatMap((row) => (old.has(key(row)) ? [{ row, factor: row.ratio / old.get(key(row))!.ratio }] : []))
    .filter(({ factor }) => factor > NOTABLE || factor < 1 / NOTABLE)
    .sort((a, b) => a.factor - b.factor);
  const kept = changed.length > 2 * count ? [...changed.slice(0, count), ...changed.slice(-count)] : changed;
  const lines = kept.map(({ row, factor }) => [
    shown(factor),
    shown(old.get(key(row))!.ratio),
    shown(row.ratio),
    `  ${key(row)} threads`,
  ]);
  return table(["times as fast", "before", "now", "  case"], lines);
}
