/**
 * Files that are either the old one or the new one, whole, whatever happens on the way: the new one is written under another name in the same
 * folder, brought to the disk, and then takes the old one's name, which is one step for every reader and after every crash.
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
import { promisify } from "node:util";
import { fileError } from "./file_errors.ts";

/** A file that is being written from its beginning to its end. */
export class FileWriter {
  /** Bytes so far. */
  length = 0;
  private readonly observers: ((bytes: Uint8Array) => void)[] = [];

  constructor(private readonly descriptor: number) {}

  /** Appends all of the bytes, in as many system calls as it takes. */
  write(bytes: Uint8Array): void {
    writeWhole(this.descriptor, bytes, this.length);
    this.length += bytes.byteLength;
    for (const observe of this.observers) observe(bytes);
  }

  /** Has a function see what is written from now on, such as a hash. */
  observe(observer: (bytes: Uint8Array) => void): void {
    this.observers.push(observer);
  }

  /** Changes bytes that were written before. */
  patch(bytes: Uint8Array, position: number): void {
    writeWhole(this.descriptor, bytes, position);
  }
}

function writeWhole(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.byteLength; )
    done += writeSync(descriptor, bytes, done, bytes.byteLength - done, position + done);
}

const sync = promisify(fsync);
/** Names of the temporary files that this process writes now. */
const underWay = new Set<string>();
let made = 0;

/**
 * Writes a file, and has it take its name once it is whole and on the disk. Where that fails, whatever had the name before is unchanged, and
 * nothing else is left.
 *
 * @param write gets the empty file
 * @throws {FileError} `diskFull` and others. @throws whatever `write` throws.
 */
export async function writeAtomically(
  operation: string,
  path: string,
  write: (file: FileWriter) => void | Promise<void>,
): Promise<void> {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path)}.${process.pid}.${made++}.tmp`);
  underWay.add(temporary);
  try {
    removeStale(folder);
    await writeSynced(temporary, write);
    renameSync(temporary, path);
    syncFolder(folder);
  } catch (cause) {
    remove(temporary);
    throw fileError(operation, path, cause, "; nothing was written, and what was there is unchanged");
  } finally {
    underWay.delete(temporary);
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

/** A new name is on the disk once its folder is. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Removes a file, where it is still there. */
export function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
  }
}

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT";

const temporaryName = /^\..+\.(\d+)\.\d+\.tmp$/;
/** A writer that is alive writes more often than that. */
const IDLE_MILLISECONDS = 3_600_000;

/** Removes the temporary files of writers that are gone: killed, or on a machine that went down. */
function removeStale(folder: string): void {
  for (const name of readdirSync(folder)) {
    const process = temporaryName.exec(name)?.[1];
    if (process !== undefined && isStale(join(folder, name), Number(process))) remove(join(folder, name));
  }
}

function isStale(path: string, writer: number): boolean {
  if (writer === process.pid) return !underWay.has(path);
  if (!isAlive(writer)) return true;
  const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
  return Date.now() - mtimeMs > IDLE_MILLISECONDS; // another process has the number by now
}

function isAlive(processNumber: number): boolean {
  try {
    return process.kill(processNumber, 0);
  } catch (cause) {
    return cause instanceof Error && "code" in cause && cause.code === "EPERM";
  }
}
