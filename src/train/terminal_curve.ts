/** Draws the loss curve for a terminal, with characters of 2 × 4 dots. */
import { scaleLinear } from "d3-scale";
import type { Curves, Point } from "./curve.ts";
import { smooth } from "./smooth.ts";

/** The bit of each dot of U+2800 and following, by row and column in a character (Unicode, Braille Patterns). */
const DOTS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const EMPTY = 0x2800;
const LABEL = 6;

/**
 * Draws the smoothed training losses as a line and the held-out losses as `o`, with axes of losses and steps. Returns
 * an empty string without a finite loss.
 *
 * @param width in columns @param height in rows
 */
export function terminalCurve({ training, heldOut }: Curves, width: number, height: number): string {
  const line = smoothed(training.filter(isFinitePoint));
  const dots = heldOut.filter(isFinitePoint);
  const all = [...line, ...dots];
  if (all.length === 0) return "";
  const columns = width - LABEL - 2;
  const [low, high] = [Math.min(...all.map(({ loss }) => loss)), Math.max(...all.map(({ loss }) => loss))];
  const steps = [Math.min(...all.map(({ step }) => step)), Math.max(...all.map(({ step }) => step))] as const;
  const x = scaleLinear([steps[0], Math.max(steps[1], steps[0] + 1)], [0, 2 * columns - 1]);
  const y = scaleLinear([low, high > low ? high : low + 1], [4 * height - 1, 0]);
  const grid = Array.from({ length: height }, () => new Array<number>(columns).fill(EMPTY));
  for (const [column, row] of path(line, x, y)) grid[row >> 2][column >> 1] |= DOTS[row & 3][column & 1];
  const rows = grid.map((row) => row.map((code) => (code === EMPTY ? " " : String.fromCodePoint(code))));
  for (const { step, loss } of dots) rows[Math.round(y(loss)) >> 2][Math.round(x(step)) >> 1] = "o";
  const labels = labelsOf(y, height);
  return [
    ...rows.map((row, at) => `${(labels.get(at) ?? "").padStart(LABEL)} ${labels.has(at) ? "┤" : "│"}${row.join("")}`),
    `${" ".repeat(LABEL)} ╰${"─".repeat(columns)}`,
    stepLabels(steps, columns),
  ]
    .map((row) => row.trimEnd())
    .join("\n");
}

const isFinitePoint = ({ loss }: Point): boolean => Number.isFinite(loss);

function smoothed(points: readonly Point[]): Point[] {
  const losses = smooth(points.map(({ loss }) => loss));
  return points.map(({ step }, at) => ({ step, loss: losses[at]! }));
}

type Scale = (value: number) => number;

/** Yields the dots from each point to the next, without gaps. */
function* path(points: readonly Point[], x: Scale, y: Scale): Generator<[column: number, row: number]> {
  let last: readonly [number, number] | undefined;
  for (const { step, loss } of points) {
    const next = [Math.round(x(step)), Math.round(y(loss))] as const;
    const [fromColumn, fromRow] = last ?? next;
    const count = Math.max(1, Math.abs(next[0] - fromColumn), Math.abs(next[1] - fromRow));
    for (let at = 0; at <= count; at++) {
      const part = at / count;
      yield [Math.round(fromColumn + part * (next[0] - fromColumn)), Math.round(fromRow + part * (next[1] - fromRow))];
    }
    last = next;
  }
}

/** Returns the labels of the loss axis by row. */
function labelsOf(y: ReturnType<typeof scaleLinear<number, number>>, height: number): Map<number, string> {
  const format = y.tickFormat(Math.ceil(height / 3));
  return new Map(y.ticks(Math.ceil(height / 3)).map((loss) => [Math.round(y(loss)) >> 2, format(loss)]));
}

function stepLabels([first, last]: readonly [number, number], columns: number): string {
  const end = `step ${last}`;
  return `${" ".repeat(LABEL + 2)}${String(first).padEnd(Math.max(0, columns - end.length))}${end}`;
}
