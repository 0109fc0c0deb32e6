/** Progress lines that fit the width of the terminal. */

/** A part of the line after the bar and the count. */
export interface LinePart {
  readonly text: string;
  /** If the line is too long, the least important parts are dropped first. The bar has {@link BAR_IMPORTANCE}. */
  readonly importance: number;
}

const SEPARATOR = " │ ";
const [MIN_BAR, MAX_BAR] = [6, 20];
/** The importance of the bar. */
export const BAR_IMPORTANCE = 4;

/**
 * Returns a line of at most `width` columns: a bar, the count, and as many parts as fit, the most important ones first.
 * Without a total, there is no bar.
 *
 * @example
 * fittedLine(80, 10, 400, [{ text: "loss 2.310", importance: 6 }]); // "█░░░░░░░░░░░░░░░░░░░ 10/400 │ loss 2.310"
 */
export function fittedLine(width: number, step: number, total: number | undefined, parts: readonly LinePart[]): string {
  const count = total === undefined ? String(step) : `${step}/${total}`;
  let room = width - count.length;
  const shown = new Set<LinePart>();
  for (const part of parts.toSorted((a, b) => b.importance - a.importance)) {
    const needed = SEPARATOR.length + part.text.length;
    if (needed > room - (part.importance < BAR_IMPORTANCE ? MIN_BAR + 1 : 0)) break;
    shown.add(part);
    room -= needed;
  }
  const hasBar = total !== undefined && room > MIN_BAR;
  const bar = hasBar ? `${drawBar(Math.min(MAX_BAR, room - 1), step / Math.max(total, 1))} ` : "";
  return [`${bar}${count}`, ...parts.flatMap((part) => (shown.has(part) ? part.text : []))].join(SEPARATOR);
}

function drawBar(length: number, fraction: number): string {
  const full = Math.round(length * Math.min(1, Math.max(0, fraction)));
  return "█".repeat(full) + "░".repeat(length - full);
}

/**
 * Returns the number of columns for a line on standard error: one less than the terminal's, which may wrap a full line.
 * Unlimited without a terminal.
 */
export const lineColumns = (): number =>
  process.stderr.isTTY ? (process.stderr.columns || 80) - 1 : Number.POSITIVE_INFINITY;
