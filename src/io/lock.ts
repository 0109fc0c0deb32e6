/**
 * A lock of a folder between processes. The kernel holds it for as long as the process has the lock file open, so that
 * a crash or `kill -9` leaves no lock behind, though it leaves the file.
 */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { FileError } from "../core/errors.ts";
import { warnOnce } from "../core/warn.ts";
import { isAlive } from "./atomic.ts";
import { withFileErrors } from "./file_errors.ts";
import { tryLock } from "./flock.ts";

/** The file in a folder that is locked. */
export const LOCK_FILE = "lock";

/** What {@link lockFolder} asks the system for. */
export interface LockSystem {
  readonly tryLock: typeof tryLock;
  /** The number of the file system's kind, on Linux; undefined elsewhere, where it has no meaning. */
  readonly kindOf: (folder: string) => number | undefined;
}

const ownSystem: LockSystem = {
  tryLock,
  kindOf: (folder) => (process.platform === "linux" ? statfsSync(folder).type : undefined),
};

/**
 * Locks a folder until the result is disposed of, or the process ends. Where the file system has no locks, or may not
 * share them with other machines, a warning says so.
 *
 * @throws {FileError} `locked` if another process has it, with the number of that process. @throws {FileError} where
 * the lock file cannot be written.
 */
export function lockFolder(operation: string, folder: string, system: LockSystem = ownSystem): Disposable {
  const path = join(folder, LOCK_FILE);
  for (;;) {
    const file = withFileErrors(operation, path, () => openSync(path, "a+"));
    const result = system.tryLock(file);
    if (result === "locked" && !isAt(file, path)) {
      closeSync(file); // the holder before removed it in the meantime
      continue;
    }
    if (result !== "held") {
      warnOfSharing(folder, result === "locked" ? networks[system.kindOf(folder) ?? 0] : null);
      return holding(operation, file, path);
    }
    closeSync(file);
    throw new FileError(operation, "locked", folder, `${holderOf(path)} is using it; wait until it ends, or end it`);
  }
}

function holding(operation: string, file: number, path: string): Disposable {
  withFileErrors(operation, path, () => {
    ftruncateSync(file);
    writeSync(file, JSON.stringify({ pid: process.pid, host: hostname() } satisfies Holder));
  });
  let isOpen = true;
  return {
    [Symbol.dispose]: () => {
      if (!isOpen) return;
      isOpen = false;
      if (isAt(file, path)) unlinkSync(path); // while it is locked: who locks it next looks whether it is still there
      closeSync(file);
    },
  };
}

/** Whether a path is still that of an open file. */
function isAt(file: number, path: string): boolean {
  const [opened, found] = [fstatSync(file), statSync(path, { throwIfNoEntry: false })];
  return opened.ino === found?.ino && opened.dev === found.dev;
}

/** statfs(2)'s numbers of network file systems. Their locks may hold on one machine alone, or not at all. */
const networks: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "SMB",
  4266872130: "SMB",
  16914839: "9P",
  1702057286: "FUSE",
  198183888: "Lustre",
};

/** @param network the kind of network file system that the folder is on; null for a file system without locks */
function warnOfSharing(folder: string, network: string | undefined | null): void {
  if (network === null)
    warnOnce(`${folder} is on a file system without locks: nothing keeps a second process from using it`);
  else if (network) warnOnce(`${folder} is on ${network}: a process on another machine may not be kept from using it`);
}

interface Holder {
  readonly pid: number;
  readonly host: string;
}

const PATIENCE_MILLISECONDS = 500;

/** Who the lock file names. The holder may have locked it a moment ago, with the name of the one before still in it. */
function holderOf(path: string): string {
  for (const end = Date.now() + PATIENCE_MILLISECONDS; Date.now() < end; Bun.sleepSync(10)) {
    const holder = readHolder(path);
    if (holder && holder.host !== hostname()) return `process ${holder.pid} on ${holder.host}`;
    if (holder && isAlive(holder.pid)) return `process ${holder.pid}`;
  }
  return "another process";
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Holder;
  } catch {
    return undefined; // not written yet, or removed
  }
}
