/** Prints readers of files. */
import { printedBytes, printedColumns, printedCount, printedLines } from "../core/printing.ts";
import { formatShape, type Shape } from "../tensor/shape.ts";

interface Entry {
  readonly name: string;
  /** The dtype, or the type in the file. */
  readonly type: string;
  readonly shape: Shape;
  readonly byteLength: number;
}

/** @internal Prints a file: a summary, its metadata, and a line per tensor; long lists are shortened. */
export function formatFile(
  kind: string,
  path: string,
  entries: readonly Entry[],
  { metadata, isClosed }: { readonly metadata: readonly (readonly [name: string, value: string])[]; isClosed: boolean },
): string {
  const bytes = entries.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const what = `${printedCount(entries.length, "tensor")}, ${printedBytes(bytes)}`;
  const facts = metadata.map(([name, value]) => `${name}: ${value}`);
  const rows = entries.map(({ name, type, shape, byteLength }) => {
    return [name, `${type}${formatShape(shape)}`, printedBytes(byteLength)];
  });
  const lines = [...printedLines(facts, "entries"), ...printedLines(printedColumns(rows), "tensors")];
  return [`${kind} ${path}: ${what}${isClosed ? " (closed)" : ""}`, ...lines].join("\n  ");
}

const LONGEST = 60;

/** @internal Prints a metadata value in one short line. */
export function formatMetadata(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}
