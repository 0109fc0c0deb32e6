/** Locks a blob of the cache between processes, with flock(2) on the files that Hugging Face's tools lock too. */
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { withFileErrors } from "../file_errors.ts";
import { tryLock } from "../flock.ts";

const POLL_MILLISECONDS = 100;

/**
 * Waits for the lock of a blob. The lock file remains afterwards, since another process may be waiting for it.
 *
 * @throws {FileError} if the lock file can't be written. @throws the reason of the signal.
 */
export async function lockBlob(
  cache: string,
  folder: string,
  hash: string,
  signal: AbortSignal | undefined,
): Promise<Disposable> {
  const path = join(cache, ".locks", folder, `${hash}.lock`);
  const file = withFileErrors("pull", path, () => {
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, "a");
  });
  try {
    while (tryLock(file) === "held") await wait(POLL_MILLISECONDS, undefined, { signal });
  } catch (cause) {
    closeSync(file);
    throw cause;
  }
  return { [Symbol.dispose]: () => closeSync(file) };
}
