/** Aligns tokens with audio by the attention of some heads and dynamic time warping. */

/**
 * Applies a median filter along rows, which are extended by reflection. Rows that are too short for reflection are
 * unchanged.
 *
 * @param width odd
 */
export function medianFilter(row: Float64Array, width: number): Float64Array {
  const half = Math.floor(width / 2);
  const { length } = row;
  if (length <= half) return row;
  const window = new Float64Array(width);
  return row.map((_, at) => {
    for (let k = 0; k < width; k++) {
      const from = Math.abs(at + k - half);
      window[k] = row[from < length ? from : 2 * (length - 1) - from];
    }
    return window.toSorted()[half];
  });
}

/**
 * Finds the path of least cost through a matrix, from the first row and column to the last ones, in steps of one row,
 * one column, or both.
 *
 * @param costs rows × columns
 * @returns the row and the column of each place on the path
 */
export function warp(costs: readonly Float64Array[]): (readonly [row: number, column: number])[] {
  const [rows, columns] = [costs.length, costs[0].length];
  const steps = Array.from({ length: rows + 1 }, () => new Uint8Array(columns + 1).fill(COLUMN));
  let before = new Float64Array(columns + 1).fill(Infinity);
  before[0] = 0;
  for (let i = 1; i <= rows; i++) {
    const sums = new Float64Array(columns + 1).fill(Infinity);
    steps[i][0] = ROW;
    for (let j = 1; j <= columns; j++) {
      const [both, row, column] = [before[j - 1], before[j], sums[j - 1]];
      const step = both < row && both < column ? BOTH : row < both && row < column ? ROW : COLUMN;
      steps[i][j] = step;
      sums[j] = costs[i - 1][j - 1] + (step === BOTH ? both : step === ROW ? row : column);
    }
    before = sums;
  }
  const path: [number, number][] = [];
  for (let [i, j] = [rows, columns]; i > 0 || j > 0; ) {
    path.push([i - 1, j - 1]);
    const step = steps[i][j];
    if (step !== COLUMN) i--;
    if (step !== ROW) j--;
  }
  return path.reverse();
}

const [BOTH, ROW, COLUMN] = [0, 1, 2];

/**
 * Returns the column at which each row begins, from the attention of several heads: probabilities are normalized over
 * the rows, filtered, averaged over the heads, and warped.
 *
 * @param heads for each head the attention of each row (token) to each column (position in the audio)
 * @param first the number of rows at the start that are normalized but not aligned
 * @param end the row after the last one that is aligned
 *
 * Source: `find_alignment` in OpenAI's whisper/timing.py.
 */
export function startsOf(
  heads: readonly (readonly Float64Array[])[],
  { first, end, filterWidth }: { readonly first: number; readonly end: number; readonly filterWidth: number },
): number[] {
  const columns = heads[0][0].length;
  const costs = Array.from({ length: end - first }, () => new Float64Array(columns));
  for (const head of heads) {
    const { means, deviations } = moments(head, columns);
    for (let row = first; row < end; row++) {
      const normalized = head[row].map((value, at) => (value - means[at]) / (deviations[at] || 1));
      const filtered = medianFilter(normalized, filterWidth);
      const sums = costs[row - first];
      for (let at = 0; at < columns; at++) sums[at] -= filtered[at] / heads.length;
    }
  }
  const starts: number[] = [];
  let last = -1;
  for (const [row, column] of warp(costs)) {
    if (row !== last) starts.push(column);
    last = row;
  }
  return starts;
}

/** Returns the mean and the standard deviation of each column. */
function moments(rows: readonly Float64Array[], columns: number) {
  const means = new Float64Array(columns);
  const deviations = new Float64Array(columns);
  for (const row of rows) for (let at = 0; at < columns; at++) means[at] += row[at] / rows.length;
  for (const row of rows) for (let at = 0; at < columns; at++) deviations[at] += (row[at] - means[at]) ** 2;
  for (let at = 0; at < columns; at++) deviations[at] = Math.sqrt(deviations[at] / rows.length);
  return { means, deviations };
}
