/**
 * Locks a folder between processes. The operating system holds the lock while the process has the lock file open. After
 * a crash or `kill -9`, the file remains, but not the lock.
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

/** The name of the lock file in a folder. */
export const LOCK_FILE = "lock";

/** The system functions that {@link lockFolder} uses. */
export interface LockSystem {
  readonly tryLock: typeof tryLock;
  /** The type number of the file system on Linux; undefined on other systems. */
  readonly kindOf: (folder: string) => number | undefined;
}

const hostSystem: LockSystem = {
  tryLock,
  kindOf: (folder) => (process.platform === "linux" ? statfsSync(folder).type : undefined),
};

/**
 * Locks a folder until the result is disposed of, or the process ends. It warns if the file system has no locks, or may
 * not share them with other machines.
 *
 * @throws {FileError} `locked` if another process has the lock, with the id of that process. @throws {FileError} if the
 * lock file can't be written.
 */
export function lockFolder(operation: string, folder: string, system: LockSystem = hostSystem): Disposable {
  const path = join(folder, LOCK_FILE);
  for (;;) {
    const file = withFileErrors(operation, path, () => openSync(path, "a+"));
    const result = system.tryLock(file);
    if (result === "locked" && !isAt(file, path)) {
      closeSync(file); // the previous holder removed it in the meantime
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
      if (isAt(file, path)) unlinkSync(path); // while locked: the next holder checks that the file still exists
      closeSync(file);
    },
  };
}

/** Whether a path still refers to an open file. */
function isAt(file: number, path: string): boolean {
  const [opened, found] = [fstatSync(file), statSync(path, { throwIfNoEntry: false })];
  return opened.ino === found?.ino && opened.dev === found.dev;
}

/** statfs(2)'s type numbers of network file systems, whose locks may work on one machine only, or not at all. */
const networks: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "SMB",
  4266872130: "SMB",
  16914839: "9P",
  1702057286: "FUSE",
  198183888: "Lustre",
};

/** @param network the network file system of the folder; null for a file system without locks */
function warnOfSharing(folder: string, network: string | undefined | null): void {
  if (network === null)
    warnOnce(`${folder} is on a file system without locks: a second process may use it at the same time`);
  else if (network) warnOnce(`${folder} is on ${network}: a process on another machine may ignore its lock`);
}

interface Holder {
  readonly pid: number;
  readonly host: string;
}

const PATIENCE_MILLISECONDS = 500;

/** Names the process in the lock file. Waits a little, since a new holder may not have written its name yet. */
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
    return undefined; // the file is not written yet, or was removed
  }
}
