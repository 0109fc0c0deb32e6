/**
 * Log files. If one can't be written, a warning is logged once, and the program continues.
 */
import { openSync, writeSync } from "node:fs";
import { warnOnce } from "../core/warn.ts";

/** A file that is opened when it is first needed, and abandoned at the first failure. */
export class DebugFile {
  private descriptor: number | undefined;
  private isAbandoned = false;

  /** @param open opens the file, and returns its descriptor */
  constructor(
    readonly path: string,
    private readonly open: (path: string) => number,
  ) {}

  /** Calls a function with the open file, unless it was abandoned. */
  use(body: (descriptor: number) => void): void {
    if (this.isAbandoned) return;
    try {
      this.descriptor ??= this.open(this.path);
      body(this.descriptor);
    } catch (error) {
      this.isAbandoned = true;
      const why = error instanceof Error ? error.message : String(error);
      warnOnce(`${this.path} can't be written, so nothing more is recorded there: ${why}`);
    }
  }
}

/**
 * A file to which several processes append lines, each with one write, so that lines are never interleaved.
 */
export const appended = (path: string): DebugFile => new DebugFile(path, (name) => openSync(name, "a"));

/** Writes all of a text. @throws {Error} if only a part was written. */
export function writeWhole(descriptor: number, text: string, position: number | null = null): number {
  const bytes = Buffer.from(text);
  const written = writeSync(descriptor, bytes, 0, bytes.length, position);
  if (written !== bytes.length) throw new Error(`only ${written} of ${bytes.length} bytes were written`);
  return written;
}
