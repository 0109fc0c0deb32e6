/** Medians of several things measured in turn, A B C A B C …, so that a machine whose speed drifts drifts for all. */
export interface Measured {
  name: string;
  /** Milliseconds of one call: the median, and the fastest and slowest. */
  median: number;
  fastest: number;
  slowest: number;
}

/**
 * Runs each candidate `rounds` times after one warm-up round, interleaved.
 *
 * @param candidates by name; each call is one sample
 * @param settle what comes before each sample, and is not measured
 */
export function interleaved(
  candidates: Record<string, () => void>,
  rounds = 9,
  settle: () => void = () => undefined,
): Measured[] {
  const samples = new Map<string, number[]>(Object.keys(candidates).map((name) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    for (const [name, call] of Object.entries(candidates)) {
      settle();
      const started = performance.now();
      call();
      if (round >= 0) samples.get(name)?.push(performance.now() - started);
    }
  }
  return [...samples].map(([name, times]) => {
    const sorted = times.sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] as number;
    return { name, median: at(0.5), fastest: at(0), slowest: at(1) };
  });
}

/** Rows as a table with a head, numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ");
  return [
    line(cells[0] as string[]),
    widths.map((width) => "─".repeat(width)).join("  "),
    ...cells.slice(1).map(line),
  ].join("\n");
}
