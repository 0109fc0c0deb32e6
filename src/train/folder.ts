/** Where runs are: a folder for each. */
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ArgumentError } from "../core/errors.ts";
import { withFileErrors } from "../io/file_errors.ts";

/** Where runs go that name no folder, in the working directory. */
export const RUNS = "runs";

export const checkpointsIn = (run: string): string => join(run, "checkpoints");

const isRun = (folder: string): boolean => existsSync(checkpointsIn(folder));

/** A new run's folder: the one that is named, or one named by the time. @throws {ArgumentError} where a run is there already. @throws {FileError} */
export function makeRunFolder(named: string | undefined, now = new Date()): string {
  const folder = resolve(named ?? join(RUNS, timestamp(now)));
  if (isRun(folder)) {
    const advice = `go on with it by --resume ${folder}, or name another folder by --out`;
    throw new ArgumentError("train", "runExists", `${folder} holds a run; ${advice}`);
  }
  withFileErrors("train", folder, () => mkdirSync(checkpointsIn(folder), { recursive: true }));
  return folder;
}

/** Such as `2026-01-31-235959`, by the machine's clock. */
const timestamp = (now: Date): string => now.toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");

/** The run that is named, or the latest under {@link RUNS}. @throws {ArgumentError} where there is none. */
export function findRun(operation: string, named: string | undefined): string {
  const folder = named === undefined ? latestRun() : resolve(named);
  if (folder !== undefined && isRun(folder)) return folder;
  const missing = folder === undefined ? `there is no run under ${resolve(RUNS)}` : `${folder} holds no run`;
  throw new ArgumentError(operation, "noRun", `${missing}; \`orchard train\` makes one`);
}

function latestRun(): string | undefined {
  if (!existsSync(RUNS)) return undefined;
  const runs = readdirSync(RUNS).map((name) => resolve(RUNS, name));
  const byTime = (folder: string) => statSync(checkpointsIn(folder)).mtimeMs;
  return runs.filter(isRun).sort((a, b) => byTime(b) - byTime(a))[0];
}
