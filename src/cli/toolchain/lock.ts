import { closeSync, openSync } from "node:fs";
import { tryLock } from "../../io/flock.ts";

/**
 * Runs `body` while holding an exclusive lock on a file. The kernel (`flock`) releases the lock of a killed process;
 * the file stays. On a file system without locks, `body` runs at once.
 */
export async function withLock<Result>(path: string, onWait: () => void, body: () => Promise<Result>): Promise<Result> {
  const descriptor = openSync(path, "a");
  try {
    if (tryLock(descriptor) === "held") {
      onWait();
      while (tryLock(descriptor) === "held") await Bun.sleep(200);
    }
    return await body();
  } finally {
    closeSync(descriptor);
  }
}
