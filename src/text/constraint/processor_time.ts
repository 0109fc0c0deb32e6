/** The system call setitimer(2), which ends this process when it has used so much of the processor. */
import { dlopen, FFIType, ptr } from "bun:ffi";

/** setitimer(2)'s `ITIMER_VIRTUAL`: the time in which this process itself computes, whatever else runs. */
const VIRTUAL = 1;

const isMac = process.platform === "darwin";
const musl = `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`;
const names = isMac ? ["libSystem.B.dylib"] : ["libc.so.6", musl];

function open() {
  for (const [at, name] of names.entries())
    try {
      return dlopen(name, { setitimer: { args: [FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 } })
        .symbols;
    } catch (cause) {
      if (at === names.length - 1) throw cause;
    }
  throw new Error("unreachable");
}

const { setitimer } = open();

/**
 * Ends this process by SIGVTALRM, whose default nothing can delay, after so many seconds of the processor; 0 takes that
 * back.
 */
export function limitProcessorTime(seconds: number): void {
  const whole = Math.floor(seconds);
  // struct itimerval: seconds and microseconds of the interval, which is none, and of the first time.
  const times = new BigInt64Array([0n, 0n, BigInt(whole), BigInt(Math.round((seconds - whole) * 1e6) % 1_000_000)]);
  setitimer(VIRTUAL, ptr(times), null);
}
