import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { withFileErrors } from "../../io/file_errors.ts";
import type { Listener, RunEvent } from "../events.ts";

/** The log's name in the folder of a run. */
export const LOG_FILE = "log.jsonl";

/** One JSON object a line for each event, with the time it happened. A session that goes on with a run appends. */
export class JsonLog implements Listener {
  private readonly path: string;
  private readonly file: number;

  constructor(folder: string) {
    this.path = join(folder, LOG_FILE);
    const before = textOf(this.path);
    this.file = openSync(this.path, "a");
    if (before !== "" && !before.endsWith("\n")) this.write("\n");
  }

  /** @throws {FileError} where the disk is full; a part of the line may be there then. */
  on(event: RunEvent): void {
    this.write(lineOf(event));
  }

  close(): void {
    closeSync(this.file);
  }

  /** All of it: the system may take a part at a time, where room lacks say. */
  private write(text: string): void {
    const bytes = Buffer.from(text);
    withFileErrors("train", this.path, () => {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.file, bytes, done);
    });
  }
}

/** The events of a run's log, none where there is none. Lines that were cut off, by a full disk or a killed process, are passed over. */
export const readLog = (folder: string): RunEvent[] => textOf(join(folder, LOG_FILE)).split("\n").flatMap(eventIn);

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

function eventIn(line: string): RunEvent[] {
  try {
    return [JSON.parse(line) as RunEvent];
  } catch {
    return [];
  }
}

const lineOf = (event: RunEvent): string => `${JSON.stringify({ time: new Date().toISOString(), ...event }, finite)}\n`;

/** JSON has no NaN and no ∞: they are written as words, so that no reader takes them for a missing number. */
const finite = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
