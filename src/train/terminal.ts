/** Handles the terminal on standard error. */
import { writeSync } from "node:fs";

const SHOW_CURSOR = "\x1b[?25h";

/** Shows the cursor that the progress bar hides. Synchronous, since the process may end right after. */
export function showCursor(): void {
  if (!process.stderr.isTTY) return;
  try {
    writeSync(2, SHOW_CURSOR);
  } catch {
    // the terminal was closed
  }
}

const ignore = () => undefined;

/** Ignores errors from writing to a closed terminal, before or after SIGHUP, so that the run can save. */
export function ignoreClosedTerminal(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.off("error", ignore);
    stream.on("error", ignore);
  }
}
