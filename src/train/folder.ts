/** The folders of runs. */
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ArgumentError } from "../core/errors.ts";
import { withFileErrors } from "../io/file_errors.ts";

/** The default parent folder of runs, in the working directory. */
export const RUNS = "runs";

export const checkpointsIn = (run: string): string => join(run, "checkpoints");

const isRun = (folder: string): boolean => existsSync(checkpointsIn(folder));

/**
 * Creates the folder of a new run: the one that is named, or one named by the time.
 *
 * @throws {ArgumentError} if the folder already has a run. @throws {FileError}
 */
export function makeRunFolder(named: string | undefined, now = new Date()): string {
  const folder = resolve(named ?? join(RUNS, timestamp(now)));
  if (isRun(folder)) {
    const advice = `resume it with --resume ${folder}, or name another folder with --out`;
    throw new ArgumentError("train", "runExists", `${folder} already has a run; ${advice}`);
  }
  withFileErrors("train", folder, () => mkdirSync(checkpointsIn(folder), { recursive: true }));
  return folder;
}

/** The time in UTC, such as `2026-01-31-235959`. */
const timestamp = (now: Date): string => now.toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");

/** The run that is named, or the latest in {@link RUNS}. @throws {ArgumentError} if there is none. */
export function findRun(operation: string, named: string | undefined): string {
  const folder = named === undefined ? latestRun() : resolve(named);
  if (folder !== undefined && isRun(folder)) return folder;
  const missing = folder === undefined ? `there is no run in ${resolve(RUNS)}` : `${folder} has no run`;
  throw new ArgumentError(operation, "noRun", `${missing}; start one with \`orchard train\``);
}

function latestRun(): string | undefined {
  if (!existsSync(RUNS)) return undefined;
  const runs = readdirSync(RUNS).map((name) => resolve(RUNS, name));
  const byTime = (folder: string) => statSync(checkpointsIn(folder)).mtimeMs;
  return runs.filter(isRun).sort((a, b) => byTime(b) - byTime(a))[0];
}
