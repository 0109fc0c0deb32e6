/** Passes `process.env` on to dylibs, which read the C library's environment. */
import { FFIType } from "bun:ffi";
import { softwareDevice } from "./environment.ts";
import { cString, openLibc } from "./libc.ts";

/** Variables that the dylibs read: their settings, and where caches, temporary files and compilers are. */
const names = [...Object.keys(softwareDevice), "ORCHARD_FINDINGS", "XDG_CACHE_HOME", "HOME", "TMPDIR", "PATH"];

/**
 * Makes the C library's environment equal to `process.env` for the variables that dylibs read. Bun keeps assignments to
 * `process.env` to JavaScript, so a dylib would otherwise see only the variables with which the process started.
 */
export function exportEnvironment(values: Readonly<Record<string, string | undefined>> = process.env): void {
  const { ptr, cstring, i32 } = FFIType;
  const libc = openLibc({
    getenv: { args: [ptr], returns: cstring },
    setenv: { args: [ptr, ptr, i32], returns: i32 },
    unsetenv: { args: [ptr], returns: i32 },
  });
  if (!libc) return; // dylibs then see the variables with which the process started
  for (const name of names) {
    const value = values[name];
    const known = libc.getenv(cString(name))?.toString();
    if (value === known) continue;
    if (value === undefined) libc.unsetenv(cString(name));
    else libc.setenv(cString(name), cString(value), 1);
  }
}

/** Sets an environment variable that other native libraries read by `getenv`. Does nothing if it is already set. */
export function defaultNative(name: string, value: string): void {
  const { ptr, i32 } = FFIType;
  openLibc({ setenv: { args: [ptr, ptr, i32], returns: i32 } })?.setenv(cString(name), cString(value), 0);
}
