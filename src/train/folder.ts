/** The folders of runs. */

import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { orchardCommand } from "../core/commands.ts";
import { ArgumentError } from "../core/errors.ts";
import { fileError, withFileErrors } from "../io/file_errors.ts";
import { lockFolder } from "../io/lock.ts";

/** The default parent folder of runs, in the working directory. */
export const RUNS = "runs";

export const checkpointsIn = (run: string): string => join(run, "checkpoints");

const isRun = (folder: string): boolean => existsSync(checkpointsIn(folder));

/** A run's folder, locked for this process until it is disposed of. */
export interface RunFolder extends Disposable {
  readonly path: string;
}

/**
 * Creates the folder of a new run: `named`, or a folder named after the time.
 *
 * @throws {ArgumentError} if the folder already has a run. @throws {FileError} `locked` if another process is creating
 * one; also if the folder can't be created.
 */
export function makeRunFolder(named: string | undefined, now = new Date()): RunFolder {
  const path = named === undefined ? makeNewFolder(join(RUNS, timestamp(now))) : resolve(named);
  if (isRun(path)) throw runExists(path);
  withFileErrors("train", path, () => mkdirSync(path, { recursive: true }));
  const folder = lockRun(path);
  try {
    if (isRun(path)) throw runExists(path); // another process created a run and has ended
    withFileErrors("train", path, () => mkdirSync(checkpointsIn(path)));
    return folder;
  } catch (error) {
    folder[Symbol.dispose]();
    throw error;
  }
}

/** Locks a run's folder. @throws {FileError} `locked`, with the process ID, if another process trains in it. */
export const lockRun = (path: string): RunFolder => ({ path, ...lockFolder("train", path) });

function runExists(path: string): ArgumentError {
  const advice = `resume it with --resume ${path}, or name another folder with --out`;
  return new ArgumentError("train", "runExists", `${path} already has a run; ${advice}`);
}

/** Runs that are started within a second get names that end in -2, -3 and so on. */
function makeNewFolder(name: string): string {
  withFileErrors("train", RUNS, () => mkdirSync(RUNS, { recursive: true }));
  for (let count = 1; ; count++) {
    const path = resolve(count === 1 ? name : `${name}-${count}`);
    if (existsSync(path)) continue;
    try {
      mkdirSync(path);
      return path;
    } catch (cause) {
      if (!existsSync(path)) throw fileError("train", path, cause);
    }
  }
}

/** The time in UTC, such as `2026-01-31-235959`. */
const timestamp = (now: Date): string => now.toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");

/** Returns the given run, or the latest in {@link RUNS}. @throws {ArgumentError} if there is none. */
export function findRun(operation: string, named: string | undefined): string {
  const folder = named === undefined ? latestRun() : resolve(named);
  if (folder !== undefined && isRun(folder)) return folder;
  const missing = folder === undefined ? `there is no run in ${resolve(RUNS)}` : `${folder} has no run`;
  throw new ArgumentError(operation, "noRun", `${missing}; start one with \`${orchardCommand("train")}\``);
}

function latestRun(): string | undefined {
  if (!existsSync(RUNS)) return undefined;
  const runs = readdirSync(RUNS).map((name) => resolve(RUNS, name));
  const byTime = (folder: string) => statSync(checkpointsIn(folder)).mtimeMs;
  return runs.filter(isRun).sort((a, b) => byTime(b) - byTime(a))[0];
}
