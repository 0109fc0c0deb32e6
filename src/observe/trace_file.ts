import { ftruncateSync, openSync, rmSync, statSync } from "node:fs";
import { DebugFile, writeWhole } from "./debug_file.ts";

const END = "\n]\n";

/**
 * A JSON array on disk that is complete after each element: one write replaces the closing bracket by the next element
 * and a new bracket. So the file is valid while the process runs, and after it ends in any way.
 */
export class TraceFile {
  private readonly file: DebugFile;
  /** The position of the closing bracket; 0 if the file is empty. */
  private end = 0;

  constructor(path: string) {
    this.file = new DebugFile(path, createFile);
  }

  /** @param element as JSON */
  add(element: string): void {
    this.file.use((descriptor) => {
      const text = `${this.end === 0 ? "[\n" : ",\n"}${element}`;
      try {
        this.end += writeWhole(descriptor, text + END, this.end) - END.length;
      } catch (error) {
        this.closeAgain(descriptor);
        throw error;
      }
    });
  }

  /** Restores the closing bracket after an element that could not be written. */
  private closeAgain(descriptor: number): void {
    ftruncateSync(descriptor, this.end);
    if (this.end > 0) writeWhole(descriptor, END, this.end);
  }
}

/**
 * Creates a new file. If another process still writes to a file of this name, that file loses its name, and the process
 * continues to write to it.
 */
function createFile(path: string): number {
  const known = statSync(path, { throwIfNoEntry: false });
  if (known && !known.isFile()) throw new Error("it exists and is not a file");
  rmSync(path, { force: true });
  return openSync(path, "wx");
}
