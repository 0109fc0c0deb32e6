/** Formatting for objects in `console.log`, `Bun.inspect` and node:util's `inspect`. */

const units = ["B", "KB", "MB", "GB", "TB"];

/** Formats bytes with three significant digits and a decimal unit. @example printedBytes(1_234_567); // "1.23 MB" */
export function printedBytes(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toPrecision(3)} ${units[power]}`;
}

/**
 *  Formats a whole number in groups of three digits, with its noun. @example printedCount(1234, "step"); // "1,234
 *  steps"
 */
export const printedCount = (count: number, singular: string): string =>
  `${count.toLocaleString("en")} ${singular}${count === 1 ? "" : "s"}`;

/**
 *  Formats options by name as in a call. @example printedOptions({ lr: 0.1, betas: [0, 1] }); // "lr: 0.1, betas: [0,
 *  1]"
 */
export const printedOptions = (options: object): string =>
  Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${printedValue(value)}`)
    .join(", ");

function printedValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(printedValue).join(", ")}]`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

const MOST_LINES = 20;

/** Returns the first 20 lines; if there are more, the last line is their count. */
export function printedLines(lines: readonly string[], what: string): string[] {
  if (lines.length <= MOST_LINES) return [...lines];
  const left = lines.length - MOST_LINES + 1;
  return [...lines.slice(0, MOST_LINES - 1), `… and ${left.toLocaleString("en")} more ${what}`];
}

/** Pads every column except the last to its widest cell. Columns are two spaces apart. */
export function printedColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column].length))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join("  ")
      .trimEnd(),
  );
}

/** Makes a function print as `text`. */
export function printedAs<F extends (...values: never) => unknown>(callee: F, text: string): F {
  return Object.defineProperty(callee, Symbol.for("nodejs.util.inspect.custom"), { value: () => text });
}
