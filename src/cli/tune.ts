/** `orchard tune`: measures crossovers, writes them to tables and prints them. */

import { accessSync, constants, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { orchardCommand } from "../core/commands.ts";
import { OrchardError } from "../core/errors.ts";
import { counted } from "../core/plural.ts";
import type { LinalgTable } from "../linalg/crossover.ts";
import { linalgTablePath, writeLinalgTable } from "../linalg/crossover_file.ts";
import { fullLinalgGrid, type LinalgReport, quickLinalgGrid, tuneLinalg } from "../linalg/tune.ts";
import { type Crossovers, type CrossoverTable, dimClasses, headClasses } from "../ops/attention/crossover.ts";
import { tablePath, writeTable } from "../ops/attention/crossover_file.ts";
import { fullGrid, quickGrid, type TuneStep, tune, tunedBackends } from "../ops/attention/tune.ts";

/** Measures or deletes the crossovers. Returns the exit code. @param option `--quick`, `--reset` or nothing */
export function runTune(option: string | undefined): number {
  const [attention, linalg] = [tablePath(), linalgTablePath()];
  if (attention === undefined) return complain(isNone("ORCHARD_ATTENTION_TABLE"));
  if (linalg === undefined) return complain(isNone("ORCHARD_LINALG_TABLE"));
  if (option === "--reset") return reset([attention, linalg]);
  return measureInto(attention, option === "--quick") || measureLinalgInto(linalg, option === "--quick");
}

const isNone = (variable: string): string => `${variable} is none. Unset it, or set it to the path of a file.`;

function reset(paths: readonly string[]): number {
  for (const path of paths) {
    rmSync(path, { force: true });
    console.log(`Reset to the shipped crossovers: ${path} is removed.`);
  }
  return 0;
}

/** Measures linear algebra if there is a Metal device; otherwise there is nothing to compare. */
function measureLinalgInto(path: string, isQuick: boolean): number {
  if (!tunedBackends().includes("metal")) return 0;
  return attempt(() => {
    checkWritable(path);
    const table = tuneLinalg(isQuick ? quickLinalgGrid : fullLinalgGrid, showLinalg);
    writeLinalgTable(path, table);
    console.log(`\n${formatLinalgTable(table)}\n\nwritten to ${path}`);
  });
}

const showLinalg: LinalgReport = (operation, measured) => {
  const times = measured.map(({ size, metal, cpu }) => `${size}: ${(metal / cpu).toFixed(2)}`);
  console.error(`${operation}; metal / cpu by size: ${times.join(", ")}`);
};

/** Formats the table: the number of rows from which one matrix is computed on metal. */
export const formatLinalgTable = ({ metalFrom }: LinalgTable): string =>
  Object.entries(metalFrom)
    .map(
      ([operation, from]) => `${operation} of one matrix: ${from === null ? "on cpu" : `on metal from ${from} rows`}`,
    )
    .join("\n");

function measureInto(path: string, isQuick: boolean): number {
  const backends = tunedBackends();
  if (backends.length === 0)
    return complain(`No backend can be measured here; \`${orchardCommand("doctor")}\` shows what is missing.`);
  return attempt(() => {
    checkWritable(path);
    const table = tune(backends, isQuick ? quickGrid : fullGrid, showStep);
    writeTable(path, table);
    console.log(`${formatTable(table)}\n\nwritten to ${path}`);
  });
}

function attempt(body: () => void): number {
  try {
    body();
    return 0;
  } catch (error) {
    if (error instanceof OrchardError || (error instanceof Error && "code" in error)) return complain(error.message);
    throw error;
  }
}

/** Fails before the measurement instead of after it. */
function checkWritable(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  accessSync(dirname(path), constants.W_OK);
}

function complain(sentence: string): number {
  console.error(sentence);
  return 1;
}

/** Prints one line per class of calls, with the ratio of times for each length. */
function showStep({ backend, dtype, dim, heads, measured, done, steps }: TuneStep): void {
  const times = measured.map(({ length, fused, unfused }) => `${length}: ${(fused / unfused).toFixed(2)}`);
  const step = `[${String(done).padStart(String(steps).length)}/${steps}]`;
  const calls = `${backend} ${dtype}, dim ${dim}, ${counted(heads, "head")}`;
  console.error(`${step} ${calls}; fused / unfused by length: ${times.join(", ")}`);
}

/** Formats the table: for each class, the number of queries · keys up to which attention is computed unfused. */
export function formatTable({ pairs }: CrossoverTable): string {
  const columns = headClasses.map((least) => `${least}+`.padStart(8)).join("");
  const sections = Object.entries(pairs).flatMap(([backend, grids]) =>
    Object.entries(grids).map(([dtype, grid]) => `${backend} ${dtype}, batch · heads:${columns}\n${rowsOf(grid)}`),
  );
  return `Unfused up to this many queries · keys (0: always fused)\n\n${sections.join("\n\n")}`;
}

const rowsOf = (grid: Crossovers): string =>
  grid
    .map((row, at) => `  dim up to ${dimClasses[at]}`.padEnd(20) + row.map((bound) => `${bound}`.padStart(8)).join(""))
    .join("\n");
