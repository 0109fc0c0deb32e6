/** The system call flock(2), which Node's API lacks. */
import { FFIType, type Pointer, read } from "bun:ffi";
import { openLibc } from "../core/libc.ts";

/** flock(2)'s `LOCK_EX | LOCK_NB`, on Linux and macOS. */
const EXCLUSIVE_NO_WAIT = 2 | 4;
/** The values of errno if another open file has the lock, and if a signal interrupted the call. */
const [HELD, INTERRUPTED] = [process.platform === "darwin" ? 35 : 11, 4];

interface Libc {
  flock(file: number, operation: number): number;
  errno(): Pointer | null;
}

/**
 * Locks an open file until it is closed or the process ends, even by a crash.
 *
 * @returns `held` if another process, or another open file of this process, has the lock; `unsupported` if the file
 * system or the operating system has no locks
 */
export function tryLock(file: number): "locked" | "held" | "unsupported" {
  libc ??= open();
  if (libc === null) return "unsupported";
  for (;;) {
    if (libc.flock(file, EXCLUSIVE_NO_WAIT) === 0) return "locked";
    const errno = read.i32(libc.errno()!);
    if (errno !== INTERRUPTED) return errno === HELD ? "held" : "unsupported";
  }
}

let libc: Libc | null | undefined;

function open(): Libc | null {
  const errno = process.platform === "darwin" ? "__error" : "__errno_location";
  const symbols = openLibc({
    flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    [errno]: { args: [], returns: FFIType.ptr },
  } as const);
  return symbols ? { flock: symbols.flock, errno: symbols[errno] as Libc["errno"] } : null;
}
