/** A line of progress, fitted to the width of a terminal. */

/** A part of the line beside the bar and the count. */
export interface LinePart {
  readonly text: string;
  /** What matters least gives way first where the line is too long. The bar itself has {@link BAR_IMPORTANCE}. */
  readonly importance: number;
}

const SEPARATOR = " │ ";
const [MIN_BAR, MAX_BAR] = [6, 20];
/** The bar gives way after parts that matter less. */
export const BAR_IMPORTANCE = 4;

/**
 * A line of at most `width` columns: a bar, the count, and as many parts as there is room for, the most important ones
 * first. Without a total, there is no bar.
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
 * The columns that a line on standard error may have: one less than the terminal, which may wrap a full line.
 * Everything is shown where there is no terminal.
 */
export const lineColumns = (): number =>
  process.stderr.isTTY ? (process.stderr.columns || 80) - 1 : Number.POSITIVE_INFINITY;
