/** Repeats requests after transient errors. */
import { setTimeout as wait } from "node:timers/promises";
import { DownloadError } from "./errors.ts";

/** How often to repeat a request. */
export interface RetryOptions {
  /** The number of consecutive attempts without progress before giving up. */
  readonly attempts: number;
  /** The wait before the second attempt; it doubles with each attempt. */
  readonly waitMilliseconds: number;
  readonly signal: AbortSignal | undefined;
}

/** The errors after which another attempt may succeed. */
const passing: ReadonlySet<string> = new Set(["stalled", "brokenOff", "unavailable", "tooShort"]);
/** The errors after which a first request is repeated. A hub that can't be reached is reported at once. */
export const busy: ReadonlySet<string> = new Set(["stalled", "unavailable"]);

/** A server that asks for a longer pause is not asked again in the same call. */
const LONGEST_PAUSE_MILLISECONDS = 300_000;

/**
 * Runs a function until it succeeds. The wait is the server's `retry-after` if it is longer.
 *
 * @param position returns a number that grows with progress, such as the bytes so far
 * @param codes the errors after which to try again
 * @throws the last error, after too many attempts or for a permanent error.
 */
export async function retried<Result>(
  { attempts, waitMilliseconds, signal }: RetryOptions,
  body: () => Promise<Result>,
  position: () => number = () => 0,
  codes: ReadonlySet<string> = passing,
): Promise<Result> {
  for (let failures = 0; ; ) {
    const before = position();
    try {
      return await body();
    } catch (cause) {
      signal?.throwIfAborted();
      failures = position() > before ? 1 : failures + 1;
      if (!(cause instanceof DownloadError && codes.has(cause.code)) || failures >= attempts) throw cause;
      const pause = Math.max(cause.retryMilliseconds ?? 0, waitMilliseconds * 2 ** (failures - 1));
      if (pause > LONGEST_PAUSE_MILLISECONDS) throw cause;
      await wait(pause, undefined, { signal });
    }
  }
}
