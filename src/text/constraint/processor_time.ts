/** Limits this process's CPU time with setitimer(2). */
import { dlopen, FFIType, ptr } from "bun:ffi";

/** setitimer(2)'s `ITIMER_VIRTUAL`, which counts only this process's user CPU time. */
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
 * Ends this process with SIGVTALRM after some seconds of CPU time; 0 removes the limit. Nothing can delay the signal's
 * default action.
 */
export function limitProcessorTime(seconds: number): void {
  const whole = Math.floor(seconds);
  // struct itimerval: seconds and microseconds of the interval (none) and of the first expiry.
  const times = new BigInt64Array([0n, 0n, BigInt(whole), BigInt(Math.round((seconds - whole) * 1e6) % 1_000_000)]);
  setitimer(VIRTUAL, ptr(times), null);
}
