import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { withFileErrors } from "../../io/file_errors.ts";
import type { Listener, RunEvent } from "../events.ts";

/** The file name of the log in a run's folder. */
export const LOG_FILE = "log.jsonl";

/** Writes each event as a line of JSON, with its time. A resumed session appends to the file. */
export class JsonLog implements Listener {
  private readonly path: string;
  private readonly file: number;

  constructor(folder: string) {
    this.path = join(folder, LOG_FILE);
    const before = textOf(this.path);
    this.file = openSync(this.path, "a");
    if (before !== "" && !before.endsWith("\n")) this.write("\n");
  }

  /** @throws {FileError} if the disk is full. A part of the line may have been written then. */
  on(event: RunEvent): void {
    this.write(lineOf(event));
  }

  close(): void {
    closeSync(this.file);
  }

  /** Writes all of the text, in as many system calls as it takes. */
  private write(text: string): void {
    const bytes = Buffer.from(text);
    withFileErrors("train", this.path, () => {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.file, bytes, done);
    });
  }
}

/**
 * Returns the events in a run's log; empty if there is no log. Lines truncated by a full disk or a killed process are
 * skipped.
 */
export const readLog = (folder: string): RunEvent[] => textOf(join(folder, LOG_FILE)).split("\n").flatMap(eventIn);

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

function eventIn(line: string): RunEvent[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

const lineOf = (event: RunEvent): string => `${JSON.stringify({ time: new Date().toISOString(), ...event }, finite)}\n`;

/** NaN and ∞, which JSON cannot represent, are written as strings: null would look like a missing number. */
const finite = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
