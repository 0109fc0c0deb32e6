import { ftruncateSync, openSync, rmSync, statSync } from "node:fs";
import { DebugFile, writeWhole } from "./debug_file.ts";

const END = "\n]\n";

/**
 * A JSON array on disk that is whole after each element: one write puts the next element and the bracket over the
 * bracket that was there. So it can be read while the process runs, and whenever it ends.
 */
export class TraceFile {
  private readonly file: DebugFile;
  /** Where the closing bracket is; 0: there is nothing yet. */
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

  /** After an element for which there was no room. */
  private closeAgain(descriptor: number): void {
    ftruncateSync(descriptor, this.end);
    if (this.end > 0) writeWhole(descriptor, END, this.end);
  }
}

/**
 * A file of its own: another process that still writes to one of this name goes on with that one, which no longer has
 * a name.
 */
function createFile(path: string): number {
  const known = statSync(path, { throwIfNoEntry: false });
  if (known && !known.isFile()) throw new Error("it is there and no file");
  rmSync(path, { force: true });
  return openSync(path, "wx");
}
