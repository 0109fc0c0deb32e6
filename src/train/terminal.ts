/** The terminal that standard error is, if it is one. */
import { writeSync } from "node:fs";

const SHOW_CURSOR = "\x1b[?25h";

/** Shows the cursor again, which the progress bar hides. At once: the process may end right after. */
export function showCursor(): void {
  if (!process.stderr.isTTY) return;
  try {
    writeSync(2, SHOW_CURSOR);
  } catch {
    // the terminal was closed
  }
}

const ignore = () => undefined;

/** The progress bar may write to a terminal that was closed, before or after SIGHUP comes: the run goes on to save. */
export function ignoreClosedTerminal(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.off("error", ignore);
    stream.on("error", ignore);
  }
}
