import { dlopen } from "bun:ffi";
import { closeSync, openSync } from "node:fs";

const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;

const libc = () =>
  dlopen(process.platform === "darwin" ? "/usr/lib/libSystem.B.dylib" : "libc.so.6", {
    flock: { args: ["i32", "i32"], returns: "i32" },
  });

/**
 * Runs `body` while holding an exclusive lock on a file. The kernel (`flock`) releases the lock of a killed process;
 * the file stays.
 */
export async function withLock<Result>(path: string, onWait: () => void, body: () => Promise<Result>): Promise<Result> {
  const { flock } = libc().symbols;
  const descriptor = openSync(path, "a");
  try {
    if (flock(descriptor, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) !== 0) {
      onWait();
      while (flock(descriptor, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) !== 0) await Bun.sleep(200);
    }
    return await body();
  } finally {
    closeSync(descriptor);
  }
}
