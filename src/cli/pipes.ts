/** Output into pipes whose reader ends first, as `head` does. */

/** What a shell shows of a process that SIGPIPE ended. */
const ENDED_BY_PIPE = 128 + 13;

/**
 * Runs a command, and ends the process silently when the reader of its output has gone. A closed terminal is reported
 * by a signal instead, whose handler can still save: other errors of the streams are ignored here.
 */
export async function endingWithReader(body: () => Promise<unknown>): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", endOfReader);
  await body().catch((error: unknown) => {
    endOfReader(error);
    throw error;
  });
}

function endOfReader(error: unknown): void {
  if ((error as NodeJS.ErrnoException | undefined)?.code === "EPIPE") process.exit(ENDED_BY_PIPE);
}
