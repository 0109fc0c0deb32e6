/** Solves the linear assignment problem. */

/**
 * Assigns each row to a different column so that the sum of the costs is minimal, by the Hungarian algorithm. Adds one
 * row at a time, along the shortest augmenting path of reduced costs. Takes O(rows² · columns) time.
 *
 * Source: R. Jonker, A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
 * problems", 1987.
 *
 * @param costs the costs in row-major order, [rows, columns], with rows ≤ columns
 * @returns the column of each row
 */
export function assign(costs: ArrayLike<number>, rows: number, columns: number): number[] {
  const [ofRows, ofColumns] = [new Float64Array(rows), new Float64Array(columns)]; // the dual variables
  const rowOf = new Int32Array(columns).fill(-1);
  for (let first = 0; first < rows; first++) {
    const distances = new Float64Array(columns).fill(Number.POSITIVE_INFINITY);
    const before = new Int32Array(columns).fill(-1);
    const isDone = new Uint8Array(columns);
    let [row, reached, distance] = [first, -1, 0];
    while (row >= 0) {
      let next = -1;
      for (let column = 0; column < columns; column++) {
        if (isDone[column]) continue;
        const reduced = distance + costs[row * columns + column] - ofRows[row] - ofColumns[column];
        if (reduced < distances[column]) {
          distances[column] = reduced;
          before[column] = reached;
        }
        if (next < 0 || distances[column] < distances[next]) next = column;
      }
      isDone[next] = 1;
      [reached, distance, row] = [next, distances[next], rowOf[next]];
    }
    ofRows[first] += distance;
    for (let column = 0; column < columns; column++) {
      if (!isDone[column] || column === reached) continue;
      ofRows[rowOf[column]] += distance - distances[column];
      ofColumns[column] -= distance - distances[column];
    }
    for (let column = reached; column >= 0; column = before[column])
      rowOf[column] = before[column] < 0 ? first : rowOf[before[column]];
  }
  const found = new Array<number>(rows);
  for (const [column, row] of rowOf.entries()) if (row >= 0) found[row] = column;
  return found;
}
