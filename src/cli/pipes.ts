/** Output into pipes whose reader ends first, as `head` does. */

/** What a shell shows of a process that SIGPIPE ended. */
const ENDED_BY_PIPE = 128 + 13;

/** Runs a command, which ends without a trace where nobody reads what it prints. */
export async function endingWithReader(body: () => Promise<unknown>): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", endOrThrow);
  await body().catch(endOrThrow);
}

function endOrThrow(error: unknown): never {
  if ((error as NodeJS.ErrnoException | undefined)?.code === "EPIPE") process.exit(ENDED_BY_PIPE);
  throw error;
}
