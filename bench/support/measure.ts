/**
 * Measures several candidates in alternating order, A B C A B C …, so that a drift in the machine's speed affects all
 * equally.
 */
export interface Measured {
  name: string;
  /** Milliseconds per call: the median, and the fastest and slowest. */
  median: number;
  fastest: number;
  slowest: number;
}

/**
 * Runs each candidate `rounds` times after one warm-up round, in alternating order.
 *
 * @param candidates by name; each call is one sample
 * @param settle runs before each sample, and is not measured
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

/** Formats rows as a table with a header and right-aligned numbers. */
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
