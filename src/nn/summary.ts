import { bytesOf } from "../tensor/dtype.ts";
import { formatShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Module } from "./module.ts";
import { ownTensorsOf } from "./slots.ts";

const header = ["layer", "kind", "state", "numbers", "bytes"];
/** Columns that hold figures. */
const isRight = [false, false, false, true, true];

/** @internal The table of `Module.summary()`: one line a module that has tensors of its own, and what they come to. */
export function formatSummary(module: Module): string {
  const counted = new Set<Tensor>();
  const rows = [...module.namedModules()].flatMap(([name, part]) => {
    const own = [...ownTensorsOf(part)];
    if (own.length === 0) return [];
    const fresh = own.map(({ value }) => value).filter((value) => !counted.has(value));
    const state = own.map(({ name, value }) => `${name} ${formatShape(value.shape)}${noteOf(value, counted)}`);
    for (const value of fresh) counted.add(value);
    return [[name || "(itself)", part.constructor.name, state.join(", "), ...figures(fresh)]];
  });
  return [...aligned([header, ...rows]), totals([...counted])].join("\n");
}

const noteOf = (tensor: Tensor, counted: ReadonlySet<Tensor>): string =>
  counted.has(tensor) ? " (tied)" : tensor.requiresGrad ? "" : " (frozen)";

const sizeOf = (tensors: readonly Tensor[]): number => tensors.reduce((sum, { size }) => sum + size, 0);
const bytesIn = (tensors: readonly Tensor[]): number =>
  tensors.reduce((sum, { size, dtype }) => sum + size * bytesOf(dtype), 0);

const figures = (tensors: readonly Tensor[]): [string, string] => [
  sizeOf(tensors).toLocaleString("en"),
  formatBytes(bytesIn(tensors)),
];

function totals(tensors: readonly Tensor[]): string {
  const parameters = tensors.filter(({ requiresGrad }) => requiresGrad);
  const buffers = tensors.filter(({ requiresGrad }) => !requiresGrad);
  const of = (what: string, some: readonly Tensor[]) =>
    `${sizeOf(some).toLocaleString("en")} ${what}, ${formatBytes(bytesIn(some))}`;
  return [of("parameters", parameters), ...(buffers.length > 0 ? [of("in buffers", buffers)] : [])].join("; ");
}

/** Columns of the width of their widest cell, two blanks apart, with a rule below the first row. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (isRight[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  "),
  );
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  return [lines[0]!, rule, ...lines.slice(1), rule];
}

const units = ["B", "KB", "MB", "GB", "TB"];

/** Three digits, and a unit of a power of 1,000. */
function formatBytes(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toPrecision(3)} ${units[power]}`;
}
