/** Output into pipes whose reader ends first, as `head` does. */

/** What a shell shows of a process that SIGPIPE ended. */
const ENDED_BY_PIPE = 128 + 13;

/**
 * Runs a command, which ends without a trace where nobody reads what it prints. Of a terminal that was closed a signal
 * tells, and what handles that goes on: to save, it needs no terminal.
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
