/**
 * Atomic file writes. A new file is written under a temporary name in the same folder, synced to the disk, and renamed.
 * A reader, and a machine after a crash, sees either the complete old file or the complete new one.
 */
import {
  closeSync,
  fsync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileError } from "./file_errors.ts";

/** Writes a file sequentially. */
export class FileWriter {
  /** The number of bytes written so far. */
  length = 0;
  private readonly observers: ((bytes: Uint8Array) => void)[] = [];

  constructor(private readonly descriptor: number) {}

  /** Appends all of the bytes. */
  write(bytes: Uint8Array): void {
    writeFully(this.descriptor, bytes, this.length);
    this.length += bytes.byteLength;
    for (const observe of this.observers) observe(bytes);
  }

  /** Calls a function with all bytes that are written from now on, such as to hash them. */
  observe(observer: (bytes: Uint8Array) => void): void {
    this.observers.push(observer);
  }

  /** Overwrites earlier bytes. */
  patch(bytes: Uint8Array, position: number): void {
    writeFully(this.descriptor, bytes, position);
  }
}

/** Writes all of the bytes, in as many system calls as it takes. */
function writeFully(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.byteLength; )
    done += writeSync(descriptor, bytes, done, bytes.byteLength - done, position + done);
}

const sync = (descriptor: number): Promise<void> =>
  new Promise((resolve, reject) => fsync(descriptor, (error) => (error ? reject(error) : resolve())));

/** The temporary files that this process is writing. */
const inProgress = new Set<string>();
let counter = 0;

/**
 * Writes a file atomically. If that fails, an existing file is unchanged and the temporary file is removed.
 *
 * @param write receives the empty file
 * @throws {FileError} `diskFull` and others. @throws any error of `write`.
 */
export async function writeAtomically(
  operation: string,
  path: string,
  write: (file: FileWriter) => void | Promise<void>,
): Promise<void> {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path)}.${process.pid}.${counter++}.tmp`);
  inProgress.add(temporary);
  try {
    removeStale(folder);
    await writeSynced(temporary, write);
    renameSync(temporary, path);
    syncFolder(folder);
  } catch (cause) {
    removeIfPossible(temporary);
    throw fileError(operation, path, cause, "; nothing was written, and an existing file is unchanged");
  } finally {
    inProgress.delete(temporary);
  }
}

async function writeSynced(path: string, write: (file: FileWriter) => void | Promise<void>): Promise<void> {
  const descriptor = openSync(path, "wx");
  try {
    await write(new FileWriter(descriptor));
    await sync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Syncs a folder to the disk, which makes new names in it durable. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Removes a file if it exists. */
export function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
  }
}

/** Removes a file after a failure. Errors are ignored, so that the failure itself is reported. */
export function removeIfPossible(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The file was never created, or the same failure prevents its removal.
  }
}

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT";

const temporaryName = /^\..+\.(\d+)\.\d+\.tmp$/;
/** A live writer modifies its file more often than this. */
const MAX_IDLE_MILLISECONDS = 3_600_000;

/** Removes the temporary files of writers that were killed or crashed. */
function removeStale(folder: string): void {
  for (const name of readdirSync(folder)) {
    const process = temporaryName.exec(name)?.[1];
    if (process !== undefined && isStale(join(folder, name), Number(process))) remove(join(folder, name));
  }
}

function isStale(path: string, writer: number): boolean {
  if (writer === process.pid) return !inProgress.has(path);
  if (!isAlive(writer)) return true;
  const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
  return Date.now() - mtimeMs > MAX_IDLE_MILLISECONDS; // the process id was reused
}

/** Whether a process with this id runs on this machine. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (cause) {
    return cause instanceof Error && "code" in cause && cause.code === "EPERM";
  }
}
