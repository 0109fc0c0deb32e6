import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Listener, RunEvent } from "../events.ts";

/** The log's name in the folder of a run. */
export const LOG_FILE = "log.jsonl";

/** One JSON object a line for each event, with the time it happened. A session that goes on with a run appends. */
export class JsonLog implements Listener {
  private readonly file: number;

  constructor(folder: string) {
    this.file = openSync(join(folder, LOG_FILE), "a");
  }

  on(event: RunEvent): void {
    writeSync(this.file, lineOf(event));
  }

  close(): void {
    closeSync(this.file);
  }
}

const lineOf = (event: RunEvent): string => `${JSON.stringify({ time: new Date().toISOString(), ...event }, finite)}\n`;

/** JSON has no NaN and no ∞: they are written as words, so that no reader takes them for a missing number. */
const finite = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
