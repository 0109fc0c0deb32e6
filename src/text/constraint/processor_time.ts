/** Limits this process's CPU time with setitimer(2). */
import { FFIType, ptr } from "bun:ffi";
import { openLibc } from "../../core/libc.ts";

/** setitimer(2)'s `ITIMER_VIRTUAL`, which counts only this process's user CPU time. */
const VIRTUAL = 1;

const { i32, ptr: pointer } = FFIType;
const libc = openLibc({ setitimer: { args: [i32, pointer, pointer], returns: i32 } });
if (!libc) throw new Error("constraints: the C library has no setitimer, which limits their processor time");
const { setitimer } = libc;

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
