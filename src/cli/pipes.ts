/** Output to pipes whose reader may end first, as `head` does. */
import { codeOf } from "../core/causes.ts";

/** The exit status that a shell reports for a process ended by SIGPIPE. */
const ENDED_BY_PIPE = 128 + 13;

/**
 * Runs a command, and ends the process silently if the reader of its output has closed the pipe. Other stream errors
 * are ignored: a closed terminal is reported by a signal, whose handler can still save.
 */
export async function endingWithReader(body: () => Promise<unknown>): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", endOfReader);
  await body().catch((error: unknown) => {
    endOfReader(error);
    throw error;
  });
}

function endOfReader(error: unknown): void {
  if (codeOf(error) === "EPIPE") process.exit(ENDED_BY_PIPE);
}
