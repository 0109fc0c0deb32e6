/** Formats the report of `quantizeModel` as a table. */
import type { QuantizationReport } from "./model.ts";

/** Formats one row per layer (format, bytes after and before, relative error), and the totals. */
export function formatReport({ layers, bytesBefore, bytesAfter }: QuantizationReport): string {
  const header = ["layer", "shape", "format", "bytes", "before", "error"];
  const rows = layers.map(({ name, shape, format, ...figures }) => [
    name,
    `[${shape.join(", ")}]`,
    format ?? "(as it was)",
    figures.bytesAfter.toLocaleString("en"),
    figures.bytesBefore.toLocaleString("en"),
    format === null ? "" : `${(100 * figures.relativeError).toPrecision(3)} %`,
  ]);
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => (column < 3 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join("  ")
      .trimEnd(),
  );
  const part = bytesBefore === 0 ? "" : ` (${((100 * bytesAfter) / bytesBefore).toFixed(1)} %)`;
  const totals = `${bytesAfter.toLocaleString("en")} of ${bytesBefore.toLocaleString("en")} bytes${part}`;
  return [...lines, totals].join("\n");
}
