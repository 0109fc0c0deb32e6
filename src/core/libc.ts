/** Opens the C library, for system calls that Bun and Node.js lack. */
import { dlopen, type FFIFunction } from "bun:ffi";

const musl = `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`;
/** The file names of the C library: macOS's, or glibc's and musl's. */
const libcNames: readonly string[] = process.platform === "darwin" ? ["libSystem.B.dylib"] : ["libc.so.6", musl];

/**
 * Returns functions of the C library; undefined if it can't be opened or lacks one of them.
 *
 * @param names file names to try, in this order
 */
export function openLibc<const Functions extends Readonly<Record<string, FFIFunction>>>(
  functions: Functions,
  names: readonly string[] = libcNames,
) {
  for (const name of names) {
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // try the next file name
    }
  }
  return undefined;
}

/** Returns a text as a null-terminated C string. */
export const cString = (value: string): Buffer => Buffer.from(`${value}\0`);
