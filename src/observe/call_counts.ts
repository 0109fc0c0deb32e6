import { closeSync, openSync, readFileSync } from "node:fs";
import { DebugFile, writeWhole } from "./debug_file.ts";

/** The digits of a count, fixed so that lines keep their length. */
const DIGITS = 12;

/**
 * Counts events in a file that several processes share. Each thread has one line: it appends the line with one write,
 * and then only overwrites it. So processes never wait for each other or overwrite each other's lines, and the file is
 * correct at any time, even after a crash. Totals are the sums of the lines.
 *
 * @example
 * 2026-01-31T12:00:00.000Z pid 4711 thread 0 forward 000000000012 backward 000000000008
 */
export class CallCounts<Name extends string> {
  private readonly counts: Map<Name, number>;
  private readonly file: DebugFile;
  private readonly head: string;
  private position = 0;

  constructor(path: string, names: readonly Name[], thread: number) {
    this.counts = new Map(names.map((name) => [name, 0]));
    this.head = `${new Date().toISOString()} pid ${process.pid} thread ${thread}`;
    this.file = new DebugFile(path, (name) => this.addLine(name));
  }

  increment(name: Name): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    this.file.use((descriptor) => writeWhole(descriptor, this.line(), this.position));
  }

  /** Appends the line, and finds its position, which does not change. */
  private addLine(path: string): number {
    const end = openSync(path, "a");
    try {
      writeWhole(end, this.line());
    } finally {
      closeSync(end);
    }
    this.position = readFileSync(path).lastIndexOf(this.head);
    if (this.position < 0) throw new Error("another process emptied it");
    return openSync(path, "r+");
  }

  private line(): string {
    const counts = [...this.counts].map(([name, count]) => `${name} ${String(count).padStart(DIGITS, "0")}`);
    return `${this.head} ${counts.join(" ")}\n`;
  }
}
